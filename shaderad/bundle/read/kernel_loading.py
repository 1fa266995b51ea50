"""The kernels of a manifest -> callable kernels whose calls and derivatives run plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shaderad.bundle.format.entries import ArrayEntry, KernelEntry, resource_type
from shaderad.bundle.format.entry_rules import check_kernel, dim_of
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.loaded_files import Files, span_in
from shaderad.bundle.read.plan_loading import built_entry
from shaderad.calls.run_kernel import call_kernel
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.execute.prebuilt import PrebuiltKernel
from shaderad.ir import nodes
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import Access, Struct, Type
from shaderad.language.signatures import KernelSignature, Launchable


class LoadedKernel(Launchable):
    """A kernel of a build; calls and derivatives work as for the original kernel."""

    def __init__(self, kernel: PrebuiltKernel) -> None:
        self._kernel = kernel
        self.bounds = kernel.bounds
        self.__name__ = kernel.name

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> Any:
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
        return f"<kernel {self.name}({names}) of {self._kernel.built.folder}>"


def loaded_kernel(files: Files, types: TypeReader, entry: KernelEntry) -> LoadedKernel:
    """The kernel that `entry` describes.

    Raises:
        CompileError: SR0722, if a file is missing or was changed.
        KeyError, ValueError: The manifest contradicts itself.
    """
    return LoadedKernel(_KernelReader(files, types, entry).kernel())


class _KernelReader:
    """Reads one kernel of a manifest."""

    def __init__(self, files: Files, types: TypeReader, entry: KernelEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry

    def kernel(self) -> PrebuiltKernel:
        entry = self._entry
        check_kernel(entry, self._types)
        buffers = tuple(map(self._buffer, (*entry.inputs, *entry.outputs)))
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
            built_axes=tuple(
                tuple((axis.array, axis.axis) for axis in axes)
                for axes in entry.axes_of_launch or [[]] * len(entry.index_names)
            ),
            built=built_entry(self._files, self._types, entry),
            bounds=entry.bounds,
            launch_shaped=frozenset(
                a.name for a in entry.outputs if a.access is Access.OUT and a.shape == dim_of(entry)
            ),
        )

    def _buffer(self, array: ArrayEntry) -> nodes.Buffer:
        element = self._types.type(array.type)
        t = resource_type(array.resource, array.access, element, len(array.shape))
        return nodes.Buffer(name=array.name, path=(*array.path,), type=t)


def _gathered(
    type_by_path: Mapping[tuple[str, ...], Type], path: tuple[str, ...], name: str
) -> Type:
    """The type of a parameter; a struct of arrays is rebuilt from its arrays and uniforms."""
    if path in type_by_path:
        return type_by_path[path]
    depth = len(path)
    fields = dict.fromkeys(p[depth] for p in type_by_path if p[:depth] == path and POINTED not in p)
    return Struct(name, tuple((f, _gathered(type_by_path, (*path, f), f)) for f in fields))
