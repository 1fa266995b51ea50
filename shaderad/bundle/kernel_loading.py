"""The kernels of a manifest -> kernels that are called and differentiated by their dispatches."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.bundle import description
from shaderad.bundle.kernel_rules import KernelRules
from shaderad.bundle.loaded_files import Files, bindings, reasons, sites, span_in
from shaderad.bundle.type_names import TypeNames
from shaderad.frontend.kernels import KernelSignature
from shaderad.frontend.launchable import Launchable
from shaderad.ir import nodes
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import BufferType, Struct, Type
from shaderad.lower.artifact import Program
from shaderad.lower.bindings import Lowered, Mode, Resource, Word
from shaderad.session.prebuilt import BuiltModes, Dispatches, PrebuiltKernel


class LoadedKernel(Launchable):
    """A kernel of a folder; it is called and differentiated as the one it was built from."""

    def __init__(self, kernel: PrebuiltKernel) -> None:
        self._kernel = kernel
        self.bounds = kernel.bounds
        self.__name__ = kernel.name

    @property
    def name(self) -> str:
        return self._kernel.name

    @property
    def signature(self) -> KernelSignature:
        parameters = self._kernel.parameters
        return KernelSignature(
            self._kernel.index_names, parameters, (self._kernel.span,) * len(parameters)
        )

    def specialise(self, const_values: Mapping[str, object]) -> nodes.Kernel:
        del const_values  # Compiled in.
        return self._kernel

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.parameters)
        return f"<kernel {self.name}({names}) of {self._kernel.folder}>"


def loaded_kernel(files: Files, types: TypeNames, entry: description.KernelEntry) -> LoadedKernel:
    """One kernel.

    Raises:
        CompileError: SR0722 for a file that is missing or was changed.
        KeyError, ValueError: Where the manifest speaks of what is not there.
    """
    return LoadedKernel(_Reader(files, types, entry).kernel())


class _Reader:
    """One kernel of a manifest."""

    def __init__(self, files: Files, types: TypeNames, entry: description.KernelEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry
        inputs = (*entry.arrays, *entry.uniforms)
        self._rules = KernelRules(entry, {one.name: types.type(one.type) for one in inputs})

    def kernel(self) -> PrebuiltKernel:
        entry = self._entry
        buffers = tuple(self._buffer(one) for one in entry.arrays)
        self._rules.check()
        uniforms = tuple(
            nodes.Uniform(name=u.name, path=(*u.path,), type=self._types.type(u.type))
            for u in entry.uniforms
        )
        type_by_path: dict[tuple[str, ...], Type] = {b.path: b.type for b in buffers}
        type_by_path |= {u.path: u.type for u in uniforms}
        return PrebuiltKernel(
            name=entry.name,
            index_names=(*entry.index_names,),
            parameters=tuple(
                nodes.KernelParameter(name=p.name, type=_gathered(type_by_path, (p.name,), p.type))
                for p in entry.parameters
                if p.kind != "constant"
            ),
            buffers=buffers,
            uniforms=uniforms,
            body=(),
            local_types={},
            span=span_in(entry.file, entry.line),
            folder=str(self._files.folder),
            bounds=entry.bounds,
            wanted=frozenset(
                one.name for one in (*entry.arrays, *entry.uniforms) if one.is_differentiable
            ),
            launch_shaped=frozenset(a.name for a in entry.arrays if a.has_launch_shape),
            by_target={name: self._modes(name, one) for name, one in entry.targets.items()},
            axes=tuple(
                tuple((one.array, one.axis) for one in axes)
                for axes in entry.axes_of_launch or [[]] * len(entry.index_names)
            ),
        )

    def _buffer(self, one: description.ArrayEntry) -> nodes.Buffer:
        t = BufferType(one.access, self._types.type(one.type), one.rank)
        return nodes.Buffer(name=one.name, path=(*one.path,), type=t)

    # -- dispatches ------------------------------------------------------------------------

    def _modes(self, target: str, entry: description.ProgramsEntry) -> BuiltModes:
        by_mode = {
            Mode.PRIMAL: self._dispatches(target, entry.primal),
            Mode.BACKWARD: self._dispatches(target, entry.backward),
            Mode.FORWARD: self._dispatches(target, entry.forward),
        }
        return BuiltModes(by_mode, reasons(entry.no_backward, entry.no_forward))

    def _dispatches(self, target: str, given: list[description.DispatchEntry]) -> Dispatches:
        return tuple(self._dispatch(target, one) for one in given)

    def _dispatch(self, target: str, one: description.DispatchEntry) -> Lowered:
        files = self._files
        self._rules.check_dispatch(one)
        resources = tuple(self._resource(r) for r in one.resources)
        program = Program(
            name=one.entry_point,
            slang=files.text(one.slang),
            workgroup=one.workgroup,
            bindings=bindings(one.parameters, one.resources),
            parameter_words=tuple(w.name for w in one.parameters.words),
            features=frozenset(one.features),
            library=files.library,
            space=files.space(target),
            code=files.code(target, one.file),
        )
        return Lowered(
            program=program,
            mode=one.mode,
            resources=resources,
            words=tuple(_word(w) for w in one.parameters.words),
            sites=sites(one.sites),
            group_limit=one.group_limit,
            is_single_group=one.is_single_group,
            threads_of=one.thread_for_each.removeprefix("word of ").removeprefix("index"),
            strategies=dict(one.strategies),
        )

    def _resource(self, one: description.ResourceEntry) -> Resource:
        return Resource(
            slot=one.slot,
            role=one.role,
            members=tuple(m.name for m in one.members),
            fill_word=one.fill_word,
            is_covered_by_launch=one.is_covered_by_launch,
            types=tuple(self._types.type(m.type) for m in one.members),
        )


def _word(one: description.WordEntry) -> Word:
    return Word(one.kind, one.of, one.index, one.role)


def _gathered(
    type_by_path: Mapping[tuple[str, ...], Type], path: tuple[str, ...], name: str
) -> Type:
    """The type of a parameter; one that comes apart is a struct of its arrays and uniforms."""
    if path in type_by_path:
        return type_by_path[path]
    depth = len(path)
    fields = dict.fromkeys(
        at[depth] for at in type_by_path if at[:depth] == path and POINTED not in at
    )
    return Struct(name, tuple((f, _gathered(type_by_path, (*path, f), f)) for f in fields))
