"""Values of the kernel language as NumPy arrays over threads, to and from values of the host.

A value is a tree: structs, tuples, pairs and pointers are dicts of their parts, everything else is
one `Cell`. Invariant: axis 0 of a cell's data counts threads. The axes of the local arrays around
it follow, the outermost first, then its own: one for a vector, two for a matrix. So an array of
structs is a struct of arrays, and ``value[index]`` works on axis 1 whatever the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, Union, cast

import numpy as np
from numpy.typing import NDArray

from shaderad.ir import types
from shaderad.ir.types import Kind, Type, is_differentiable, tangent

AnyArray = NDArray[Any]
Shape = tuple[int, ...]
_DTYPES = {Kind.DOUBLE: np.float64, Kind.INT: np.int32, Kind.UINT: np.uint32, Kind.BOOL: np.bool_}


class Cell:
    """One array of values; compared by identity, so that a tape can refer to it."""

    __slots__ = ("data", "is_tracked")

    def __init__(self, data: AnyArray, *, is_tracked: bool = False) -> None:
        self.data = data
        self.is_tracked = is_tracked
        """True if a tape has the entries that compute it from the inputs."""

    @property
    def is_float(self) -> bool:
        return self.data.dtype.kind == "f"


Value = Union[Cell, "dict[str, Value]"]


def cell(value: Value) -> Cell:
    """`value`, which is no struct."""
    assert isinstance(value, Cell)
    return value


def parts(value: Value) -> dict[str, Value]:
    """The parts of `value`, which is a struct, tuple, pair or pointer."""
    assert isinstance(value, dict)
    return value


def dtype_of(t: Type, precision: Any) -> np.dtype[Any]:
    """The NumPy type of the components of `t`; half and float both have `precision`."""
    scalar = types.scalar_of(t)
    assert scalar is not None
    return np.dtype(_DTYPES.get(scalar.kind, precision))


def _axes(t: Type) -> Shape:
    """The extents of a vector or matrix; scalars have none."""
    if isinstance(t, types.Vector):
        return (t.count,)
    return (t.row_count, t.column_count) if isinstance(t, types.Matrix) else ()


def fields_of(t: Type) -> dict[str, Type] | None:
    """The parts of a struct, tuple, pair or pointer; `None` for other types."""
    if isinstance(t, types.Struct | types.Tuple):
        return t.type_by_field
    if isinstance(t, types.Pointer):
        return {"base": types.UINT, "count": types.UINT}
    return {"p": t.primal, "d": tangent(t.primal)} if isinstance(t, types.Pair) else None


def zeros(t: Type, lead: Shape, precision: Any) -> Value:
    """The all-zero value of type `t`; `lead` are its leading axes."""
    return _with_axes(None, t, lead, precision)


def mapped(change: Callable[[Cell], Cell], value: Value) -> Value:
    """`value` with `change` applied to each cell."""
    if isinstance(value, Cell):
        return change(value)
    return {name: mapped(change, part) for name, part in value.items()}


def filled(value: Value, fill: Callable[[np.dtype[Any]], Any]) -> Value:
    """`value` with the number ``fill(dtype)`` in place of its numbers."""
    return mapped(lambda c: Cell(np.full_like(c.data, fill(c.data.dtype))), value)


def combined(change: Callable[[Cell, Cell], Cell], first: Value, second: Value) -> Value:
    """``change(a, b)`` for each pair of cells of two values of one type."""
    if isinstance(first, Cell):
        return change(first, cell(second))
    others = parts(second)
    return {name: combined(change, part, others[name]) for name, part in first.items()}


def joined(values: Sequence[Value]) -> Value:
    """The rows of all `values`, one value after the other."""

    def join(a: Cell, b: Cell) -> Cell:
        return Cell(np.concatenate([a.data, b.data]))

    return reduce(lambda a, b: combined(join, a, b), values)


def cells(value: Value) -> Iterator[Cell]:
    """The cells of a value in the order of its fields."""
    if isinstance(value, Cell):
        yield value
    else:
        for part in value.values():
            yield from cells(part)


def rebuilt(value: Value, new: Iterator[Cell]) -> Value:
    """`value` with its cells taken from `new`, in order."""
    return mapped(lambda _: next(new), value)


def float_part(value: Value, t: Type) -> Value:
    """The differentiable parts of a value of type `t`, in the form of ``tangent(t)``."""
    while isinstance(t, types.LocalArray):
        t = t.element
    fields = fields_of(t)
    if fields is None:
        return value
    kept = {n: float_part(parts(value)[n], f) for n, f in fields.items() if is_differentiable(f)}
    if isinstance(t, types.Tuple):
        return {str(k): part for k, part in enumerate(kept.values())}
    return kept


def float_cells(value: Value) -> list[Cell]:
    """The cells of a value that hold floats."""
    return [c for c in cells(value) if c.is_float]


# -- host values ------------------------------------------------------------------------------


def shape_of(data: Any, t: Type, rank: int) -> Shape:
    """The first `rank` extents of an array-like of elements `t`."""
    while isinstance(t, types.LocalArray):
        t = t.element
    fields = fields_of(t)
    if fields is None:
        return np.shape(data)[:rank]
    name, inner = next((n, f) for n, f in fields.items() if _field(data, n) is not None)
    return shape_of(_field(data, name), inner, rank)


def from_host(data: Any, t: Type, shape: Shape, precision: Any) -> Value:
    """The value of an array-like of `shape`, one row per element.

    Structs may be dicts, structured arrays, objects with the fields, or lists of these. A field
    that is missing or `None` is 0.
    """
    return _with_axes(data, t, (prod(shape),), precision)


def _with_axes(data: Any, t: Type, lead: Shape, precision: Any) -> Value:
    if isinstance(t, types.LocalArray):
        return _with_axes(data, t.element, (*lead, t.count), precision)
    fields = fields_of(t)
    if fields is not None:
        return {n: _with_axes(_field(data, n), f, lead, precision) for n, f in fields.items()}
    shape, dtype = (*lead, *_axes(t)), dtype_of(t, precision)
    if data is None:
        return Cell(np.zeros(shape, dtype))
    return Cell(np.asarray(data).astype(dtype).reshape(shape))


def to_host(value: Value, shape: Shape) -> Any:
    """An array of `shape`; for structs a dict of arrays."""
    if isinstance(value, Cell):
        return value.data.reshape(shape + value.data.shape[1:])
    return {name: to_host(part, shape) for name, part in value.items()}


def _field(data: Any, name: str) -> Any:
    """The field `name` of every element; `None` if an element lacks it."""
    if data is None or isinstance(data, Mapping):
        return None if data is None else cast("Mapping[str, Any]", data).get(name)
    if isinstance(data, np.ndarray | np.void):
        return cast("Any", data)[name]
    if isinstance(data, list | tuple):
        columns = [_field(row, name) for row in cast("list[Any]", data)]
        return None if any(c is None for c in columns) else columns
    return getattr(data, name, None)
