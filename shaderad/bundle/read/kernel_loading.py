"""The kernels of a manifest -> kernels that are called and differentiated by their dispatches."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.bundle.format import description
from shaderad.bundle.format.kernel_rules import KernelRules
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.loaded_files import Files, reasons, sites, span_in
from shaderad.device.prebuilt import BuiltModes, Dispatches, PrebuiltKernel
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.execute.call import call_kernel
from shaderad.ir import nodes
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import BufferType, Struct, Type
from shaderad.language.signatures import KernelSignature, Launchable
from shaderad.lower.bindings import Lowered, Mode, Resource, Word


class LoadedKernel(Launchable):
    """A kernel of a build; calls and derivatives work as for the kernel it was built from."""

    def __init__(self, kernel: PrebuiltKernel) -> None:
        self._kernel = kernel
        self.bounds = kernel.bounds
        self.__name__ = kernel.name

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Runs the kernel; arguments and errors are those of `call_kernel`."""
        return call_kernel(self, args, kwargs)

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
        del const_values  # The values are compiled in.
        return self._kernel

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self._kernel.parameters)
        return f"<kernel {self.name}({names}) of {self._kernel.folder}>"


def loaded_kernel(files: Files, types: TypeReader, entry: description.KernelEntry) -> LoadedKernel:
    """The kernel that `entry` describes.

    Raises:
        CompileError: SR0722, if a file is missing or was changed.
        KeyError, ValueError: The manifest contradicts itself.
    """
    return LoadedKernel(_KernelReader(files, types, entry).kernel())


class _KernelReader:
    """Reads one kernel of a manifest."""

    def __init__(self, files: Files, types: TypeReader, entry: description.KernelEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry
        inputs = (*entry.arrays, *entry.uniforms)
        self._rules = KernelRules(entry, {i.name: types.type(i.type) for i in inputs})

    def kernel(self) -> PrebuiltKernel:
        entry = self._entry
        buffers = tuple(map(self._buffer, entry.arrays))
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
                i.name for i in (*entry.arrays, *entry.uniforms) if i.is_differentiable
            ),
            launch_shaped=frozenset(a.name for a in entry.arrays if a.has_launch_shape),
            by_target={name: self._modes(name, each) for name, each in entry.targets.items()},
            axes=tuple(
                tuple((axis.array, axis.axis) for axis in axes)
                for axes in entry.axes_of_launch or [[]] * len(entry.index_names)
            ),
        )

    def _buffer(self, array: description.ArrayEntry) -> nodes.Buffer:
        t = BufferType(array.access, self._types.type(array.type), array.rank)
        return nodes.Buffer(name=array.name, path=(*array.path,), type=t)

    # -- dispatches ------------------------------------------------------------------------

    def _modes(self, target: str, entry: description.ProgramsEntry) -> BuiltModes:
        by_mode = {
            Mode.PRIMAL: self._dispatches(target, entry.primal),
            Mode.BACKWARD: self._dispatches(target, entry.backward),
            Mode.FORWARD: self._dispatches(target, entry.forward),
        }
        return BuiltModes(by_mode, reasons(entry.no_backward, entry.no_forward))

    def _dispatches(self, target: str, entries: list[description.DispatchEntry]) -> Dispatches:
        return tuple(self._dispatch(target, entry) for entry in entries)

    def _dispatch(self, target: str, entry: description.DispatchEntry) -> Lowered:
        self._rules.check_dispatch(entry)
        words = entry.parameters.words
        return Lowered(
            program=self._files.program(target, entry, (w.name for w in words)),
            mode=entry.mode,
            resources=tuple(map(self._resource, entry.resources)),
            words=tuple(Word(w.kind, w.of, w.index, w.role) for w in words),
            sites=sites(entry.sites),
            group_limit=entry.group_limit,
            is_single_group=entry.is_single_group,
            threads_of=entry.thread_for_each.removeprefix("word of ").removeprefix("index"),
            strategies=dict(entry.strategies),
        )

    def _resource(self, entry: description.ResourceEntry) -> Resource:
        return Resource(
            slot=entry.slot,
            role=entry.role,
            members=tuple(m.name for m in entry.members),
            fill_word=entry.fill_word,
            is_covered_by_launch=entry.is_covered_by_launch,
            types=tuple(self._types.type(m.type) for m in entry.members),
        )


def _gathered(
    type_by_path: Mapping[tuple[str, ...], Type], path: tuple[str, ...], name: str
) -> Type:
    """The type of a parameter; a struct of arrays is rebuilt from its arrays and uniforms."""
    if path in type_by_path:
        return type_by_path[path]
    depth = len(path)
    fields = dict.fromkeys(
        at[depth] for at in type_by_path if at[:depth] == path and POINTED not in at
    )
    return Struct(name, tuple((f, _gathered(type_by_path, (*path, f), f)) for f in fields))
