"""Evaluates the rules of derivatives on cells, so that their results can be differentiated.

The rows of ``rules/`` are written in NumPy. A `TracedCell` is an array to NumPy, through the
protocols ``__array_ufunc__`` and ``__array_function__``, and a cell to the tape: the second
derivative of an op is the derivative of its row. Invariant: an operation of NumPy that is not in
the tables here is an error, never a lost derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from shaderad.interpret.cells import AnyArray, Cell
from shaderad.ir import ops
from shaderad.rules import PARTIALS, carries_derivative
from shaderad.rules.rows import Row
from shaderad.rules.symbolic import OP_BY_UFUNC

if TYPE_CHECKING:
    from shaderad.interpret.tape import Tape


class TracedCell(NDArrayOperatorsMixin):
    """A cell as an array of NumPy."""

    __slots__ = ("cell", "tape")

    def __init__(self, tape: Tape, cell: Cell) -> None:
        self.tape = tape
        self.cell = cell

    @property
    def data(self) -> AnyArray:
        return self.cell.data

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def __getitem__(self, key: Any) -> TracedCell:
        return TracedCell(self.tape, self.tape.take(self.cell, key, is_unique=True))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        op = OP_BY_UFUNC.get(ufunc)
        if op is None:
            return NotImplemented
        if not carries_derivative(op):
            return ufunc(*(raw(x) for x in inputs))
        if op is ops.MATMUL:
            return _applied(self.tape, op, ufunc, inputs)
        return _applied(self.tape, op, ufunc, _in_one_shape(self.tape, inputs))

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        traced = _FUNCTIONS.get(function)
        return NotImplemented if traced is None else traced(self.tape, *args, **kwargs)


def raw(value: Any) -> Any:
    """The data of a traced cell; other values as they are."""
    return value.data if isinstance(value, TracedCell) else value


def _cell(value: Any) -> Cell:
    return value.cell if isinstance(value, TracedCell) else Cell(np.asarray(value))


def _applied(
    tape: Tape, op: ops.Op, function: Callable[..., Any], args: Sequence[Any]
) -> TracedCell:
    with np.errstate(all="ignore"):
        data = np.asarray(function(*(raw(a) for a in args)))
    return TracedCell(tape, tape.apply(PARTIALS[op], data, [_cell(a) for a in args]))


def _in_one_shape(tape: Tape, inputs: Sequence[Any]) -> list[Any]:
    """The operands of an op by component, broadcast to one shape."""
    arrays = [np.asarray(raw(x)) for x in inputs]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    dtype = np.result_type(*(a for x, a in zip(inputs, arrays, strict=True) if _is_float_array(x)))
    operands: list[Any] = []
    for x, a in zip(inputs, arrays, strict=True):
        if isinstance(x, TracedCell):
            operands.append(TracedCell(tape, _broadcast(tape, x.cell, shape)))
        else:
            is_float = a.dtype.kind == "f"
            operands.append(np.broadcast_to(a if is_float else a.astype(dtype), shape))
    return operands


def _is_float_array(x: Any) -> bool:
    return raw(x).dtype.kind == "f" if hasattr(x, "dtype") else False


def _broadcast(tape: Tape, cell: Cell, shape: tuple[int, ...]) -> Cell:
    before = cell.data.shape
    if before == shape:
        return cell
    added = len(shape) - len(before)
    repeated = tuple(
        k for k, extent in enumerate(shape) if k < added or before[k - added] != extent
    )
    return tape.rearrange(
        cell,
        lambda data: np.broadcast_to(data, shape),
        lambda bar: np.sum(bar, axis=repeated, keepdims=True).reshape(before),
    )


def _where(tape: Tape, condition: Any, a: Any, b: Any) -> Any:
    a, b, mask = _in_one_shape(tape, [a, b, np.asarray(raw(condition), np.float64)])
    return _applied(tape, ops.SELECT, np.where, [mask != 0, a, b])


def _sum(tape: Tape, a: Any, axis: int | tuple[int, ...]) -> TracedCell:
    before = a.shape
    total = tape.rearrange(
        a.cell,
        lambda data: np.sum(data, axis=axis),
        lambda bar: np.broadcast_to(np.expand_dims(bar, axis), before),
    )
    return TracedCell(tape, total)


def _swapaxes(tape: Tape, a: Any, first: int, second: int) -> TracedCell:
    def swap(data: AnyArray) -> AnyArray:
        return np.swapaxes(data, first, second)

    return TracedCell(tape, tape.rearrange(a.cell, swap, swap))


def _expand_dims(tape: Tape, a: Any, axis: int) -> TracedCell:
    cell = tape.rearrange(
        a.cell, lambda data: np.expand_dims(data, axis), lambda bar: np.squeeze(bar, axis)
    )
    return TracedCell(tape, cell)


def _stack(tape: Tape, arrays: Sequence[Any], axis: int) -> TracedCell:
    """Stacks arrays thread by thread, like the parts of a vector or matrix."""
    shape = np.stack([raw(a) for a in arrays], axis=axis).shape
    return TracedCell(tape, tape.join([_cell(a) for a in arrays], shape))


_Traced = (
    Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any] | Callable[[Any, Any, Any, Any], Any]
)
_FUNCTIONS: dict[Any, _Traced] = {
    np.where: _where,
    np.sum: _sum,
    np.swapaxes: _swapaxes,
    np.expand_dims: _expand_dims,
    np.stack: _stack,
    np.clip: lambda tape, a, low, high: _applied(
        tape, ops.CLAMP, ops.CLAMP.numpy, _in_one_shape(tape, [a, low, high])
    ),
    np.cross: lambda tape, a, b: _applied(tape, ops.CROSS, np.cross, [a, b]),
    np.round: lambda _, a: cast("AnyArray", np.round(raw(a))),
    np.zeros_like: lambda _, a: np.zeros_like(raw(a)),
}


def pushed(tape: Tape, row: Row, result: Cell, args: Sequence[Cell], dots: Sequence[Cell]) -> Cell:
    """The tangent of `result`, of an op with derivative `row`, computed on `tape`."""
    dot: Any = row.jvp(
        _array(tape, result), [_array(tape, a) for a in args], [_array(tape, d) for d in dots]
    )
    return dot.cell if isinstance(dot, TracedCell) else Cell(np.asarray(dot, result.data.dtype))


def _array(tape: Tape, cell: Cell) -> Any:
    """`cell` as an argument of a row; a plain array if it is not tracked."""
    return TracedCell(tape, cell) if tape.tracks(cell) else cell.data
