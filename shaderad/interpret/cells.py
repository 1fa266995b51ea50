"""Values of the kernel language as NumPy arrays over threads.

A value is a tree: structs, tuples, pairs and pointers are dicts of their parts, everything else is
one `Cell`. Invariant: axis 0 of a cell's data counts threads, then come the axes of the local
arrays around it from the outside in, then its own (a vector one, a matrix two). So an array of
structs is a struct of arrays, and ``value[index]`` works on axis 1 whatever the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from shaderad.ir import types
from shaderad.ir.types import Kind, Type, is_differentiable, tangent

AnyArray = NDArray[Any]
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


def data_of(value: Value) -> AnyArray:
    """The data of `value`, which is no struct."""
    return cell(value).data


def dtype_of(scalar: types.Scalar, precision: Any) -> np.dtype[Any]:
    """The NumPy type of a scalar; half and float both have `precision`."""
    return np.dtype(_DTYPES.get(scalar.kind, precision))


def filled(t: Type, lead: tuple[int, ...], precision: Any, fill: Any = 0) -> Value:
    """A value of type `t` with the number `fill` everywhere; `lead` are its leading axes."""
    if isinstance(t, types.LocalArray):
        return filled(t.element, (*lead, t.count), precision, fill)
    fields = fields_of(t)
    if fields is not None:
        return {name: filled(f, lead, precision, fill) for name, f in fields}
    scalar = types.scalar_of(t)
    assert scalar is not None
    return Cell(np.full((*lead, *axes_of(t)), fill, dtype_of(scalar, precision)))


def axes_of(t: Type) -> tuple[int, ...]:
    """The extents of a vector or matrix; scalars have none."""
    if isinstance(t, types.Vector):
        return (t.count,)
    return (t.row_count, t.column_count) if isinstance(t, types.Matrix) else ()


def fields_of(t: Type) -> tuple[tuple[str, Type], ...] | None:
    """The parts of a struct, tuple, pair or pointer; `None` for other types."""
    if isinstance(t, types.Struct):
        return t.fields
    if isinstance(t, types.Pointer):
        return (("base", types.UINT), ("count", types.UINT))
    if isinstance(t, types.Tuple):
        return tuple((str(k), element) for k, element in enumerate(t.elements))
    if isinstance(t, types.Pair):
        return (("p", t.primal), ("d", tangent(t.primal)))
    return None


def mapped(change: Callable[[Cell], Cell], value: Value) -> Value:
    """`value` with `change` applied to each cell."""
    if isinstance(value, Cell):
        return change(value)
    return {name: mapped(change, part) for name, part in value.items()}


def combined(change: Callable[[Cell, Cell], Cell], first: Value, second: Value) -> Value:
    """``change(a, b)`` for each pair of cells of two values of one type."""
    if isinstance(first, Cell):
        return change(first, cell(second))
    others = parts(second)
    return {name: combined(change, part, others[name]) for name, part in first.items()}


def joined(values: Sequence[Value]) -> Value:
    """The rows of all `values`, one value after the other."""
    return reduce(lambda a, b: combined(_concatenated, a, b), values)


def _concatenated(a: Cell, b: Cell) -> Cell:
    return Cell(np.concatenate([a.data, b.data]))


def cells(value: Value) -> Iterator[Cell]:
    """The cells of a value in the order of its fields."""
    if isinstance(value, Cell):
        yield value
    else:
        for part in value.values():
            yield from cells(part)


def rebuilt(value: Value, new: Iterator[Cell]) -> Value:
    """`value` with its cells taken from `new`, in order."""
    if isinstance(value, Cell):
        return next(new)
    return {name: rebuilt(part, new) for name, part in value.items()}


def float_part(value: Value, t: Type) -> Value:
    """The differentiable parts of a value of type `t`, in the form of ``tangent(t)``."""
    while isinstance(t, types.LocalArray):
        t = t.element
    fields = fields_of(t)
    if fields is None:
        return value
    kept = [(name, f) for name, f in fields if is_differentiable(f)]
    if isinstance(t, types.Tuple):
        return {str(k): float_part(parts(value)[n], f) for k, (n, f) in enumerate(kept)}
    return {name: float_part(parts(value)[name], f) for name, f in kept}


def float_cells(value: Value) -> list[Cell]:
    """The cells of a value that hold floats."""
    return [c for c in cells(value) if c.is_float]


def thread_count(value: Value) -> int:
    """The number of threads of a value."""
    return len(next(cells(value)).data)
