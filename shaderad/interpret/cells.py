"""Values of the kernel language as NumPy arrays over threads.

A value is a tree: structs, tuples, pairs and pointers are dicts of their parts, everything else is
one `Cell`. Invariant: axis 0 of a cell's data counts threads, then come the axes of the local
arrays around it from the outside in, then its own (a vector one, a matrix two). So an array of
structs is a struct of arrays, and ``value[index]`` works on axis 1 whatever the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from shaderad.ir import types
from shaderad.ir.types import Kind, Type, is_differentiable, tangent

AnyArray = NDArray[Any]
_DTYPES = {Kind.DOUBLE: np.float64, Kind.INT: np.int32, Kind.UINT: np.uint32, Kind.BOOL: np.bool_}


class Cell:
    """One array of values; compared by identity, which is how a tape knows it."""

    __slots__ = ("data", "is_tracked")

    def __init__(self, data: AnyArray, *, is_tracked: bool = False) -> None:
        self.data = data
        self.is_tracked = is_tracked
        """Whether a tape says how it depends on the inputs."""

    @property
    def is_float(self) -> bool:
        return self.data.dtype.kind == "f"


Value = Union[Cell, "dict[str, Value]"]


def cell(value: Value) -> Cell:
    """A value that is known to be no struct."""
    assert isinstance(value, Cell)
    return value


def parts(value: Value) -> dict[str, Value]:
    """A value that is known to be a struct, tuple or pair."""
    assert isinstance(value, dict)
    return value


def truth(value: Value) -> AnyArray:
    """The data of a bool a thread."""
    return cell(value).data


def dtype_of(scalar: types.Scalar, precision: Any) -> np.dtype[Any]:
    """How a scalar is held; half and float both in `precision`."""
    return np.dtype(_DTYPES.get(scalar.kind, precision))


def filled(t: Type, lead: tuple[int, ...], precision: Any, fill: Any = 0) -> Value:
    """A value of type `t` with the same number everywhere; `lead` are its leading axes."""
    if isinstance(t, types.LocalArray):
        return filled(t.element, (*lead, t.count), precision, fill)
    fields = fields_of(t)
    if fields is not None:
        return {name: filled(f, lead, precision, fill) for name, f in fields}
    if isinstance(t, types.Vector):
        lead = (*lead, t.count)
    elif isinstance(t, types.Matrix):
        lead = (*lead, t.row_count, t.column_count)
    scalar = types.scalar_of(t)
    assert scalar is not None
    return Cell(np.full(lead, fill, dtype_of(scalar, precision)))


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
    """A value made cell by cell."""
    if isinstance(value, Cell):
        return change(value)
    return {name: mapped(change, part) for name, part in value.items()}


def combined(change: Callable[[Cell, Cell], Cell], first: Value, second: Value) -> Value:
    """A value made cell by cell out of two of one type."""
    if isinstance(first, Cell):
        return change(first, cell(second))
    others = parts(second)
    return {name: combined(change, part, others[name]) for name, part in first.items()}


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
    """What of a value of type `t` has derivatives: the form of ``tangent(t)``."""
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
    """How many threads a value is for."""
    return len(next(cells(value)).data)
