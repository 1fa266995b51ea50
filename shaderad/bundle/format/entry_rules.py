"""Rules for the description of an entry that the types of its fields do not express.

They are checked when a folder is loaded, before its plans are read. Each check raises ValueError
with the violation.
"""

from __future__ import annotations

from collections.abc import Iterable

from shaderad.arguments.kinds import resource_kind
from shaderad.bundle.format.entries import (
    ARRAY,
    GraphEntry,
    KernelEntry,
)
from shaderad.bundle.format.type_names import TypeReader
from shaderad.execute.schedule import DIM, extent_names
from shaderad.ir.pointers import pointers_in
from shaderad.ir.types import RESOURCES, Access
from shaderad.lower.bindings import BOUNDS


def check_graph(entry: GraphEntry) -> None:
    """Checks names, and that the shapes of the inputs determine every size."""
    _check_entry(entry)
    of_resources = {
        name
        for k, each in enumerate(entry.inputs)
        if each.resource != ARRAY
        for name in resource_kind(RESOURCES[each.resource]).open_extents(k)
    }
    for name in entry.sizes:
        if not (name.isidentifier() and name.isascii()) and name not in of_resources:
            raise ValueError(f"a size `{name}`")
    extents = [extent for each in entry.inputs for extent in each.shape]
    named = {extent for extent in extents if isinstance(extent, str)}
    if named != set(entry.sizes):
        raise ValueError(f"sizes {sorted(named ^ set(entry.sizes))} of no input, or of none alone")
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ValueError("an input of a negative size")


def check_kernel(entry: KernelEntry, types: TypeReader) -> None:
    """Checks names, accesses, shapes, paths, and the targets of pointers."""
    _check_entry(entry)
    _check_unique(entry.index_names, "indices")
    _check_shapes(entry)
    arrays = (*entry.inputs, *entry.outputs)
    rank_by_array = {array.name: len(array.shape) for array in arrays}
    if len(entry.axes_of_launch) not in (0, len(entry.index_names)):
        raise ValueError(f"axes of {len(entry.axes_of_launch)} indices")
    for axis in (axis for axes in entry.axes_of_launch for axis in axes):
        if axis.axis >= rank_by_array.get(axis.array, 0):
            raise ValueError(f"an axis {axis.axis} of `{axis.array}`")
    passed = {p.name for p in entry.parameters if p.kind != "constant"}
    for each in (*arrays, *entry.uniforms):
        if not each.path or each.path[0] not in passed:
            raise ValueError(f"`{each.name}`, which is of no parameter")
    element_by_array = {array.name: types.type(array.type) for array in arrays}
    uniforms = {uniform.name: types.type(uniform.type) for uniform in entry.uniforms}
    for t in (element_by_array | uniforms).values():
        for _, pointer in pointers_in(t, ()):
            if element_by_array.get(pointer.target) != pointer.element:
                raise ValueError(f"a pointer into `{pointer.target}`")


def dim_of(entry: KernelEntry) -> list[str]:
    """The names of the extents of the launch."""
    return extent_names(DIM, len(entry.index_names))


def _check_shapes(entry: KernelEntry) -> None:
    dim = dim_of(entry)
    sizes = [*dim]
    for array in (*entry.inputs, *entry.outputs):
        own = extent_names(array.name, len(array.shape))
        if array.shape == own:
            sizes += own
        elif array.access is not Access.OUT or array.shape != dim:
            raise ValueError(f"a shape {array.shape} of `{array.name}`")
    if sorted(sizes) != sorted(entry.sizes):
        raise ValueError(f"sizes {entry.sizes}")
    if any(array.access is not Access.IN for array in entry.inputs):
        raise ValueError("an input that is written")
    if any(array.access in (Access.IN, Access.SCRATCH, Access.GROUP) for array in entry.outputs):
        raise ValueError("an output that is read")


def _check_entry(entry: KernelEntry | GraphEntry) -> None:
    """Checks the fields that kernels and graphs have in common."""
    if entry.bounds not in BOUNDS:
        raise ValueError(f"bounds `{entry.bounds}`")
    for array in entry.inputs:
        if array.resource == ARRAY:
            continue
        if array.resource not in RESOURCES:
            raise ValueError(f"a {array.resource} `{array.name}`")
        if len(array.shape) != RESOURCES[array.resource].rank:
            raise ValueError(f"a shape {array.shape} of `{array.name}`")
    if any(array.resource != ARRAY for array in entry.outputs):
        raise ValueError("an output that is a texture or sampler")
    _check_unique((parameter.name for parameter in entry.parameters), "parameters")
    uniforms = entry.uniforms if isinstance(entry, KernelEntry) else ()
    names = (each.name for each in (*entry.inputs, *uniforms, *entry.outputs))
    _check_unique(names, "arrays")
    for plans in entry.targets.values():
        _check_unique((program.name for program in plans.programs), "programs")


def _check_unique(names: Iterable[str], what: str) -> None:
    """Raises ValueError if a name repeats; `what` is the noun of the message."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two {what} `{name}`")
        seen.add(name)
