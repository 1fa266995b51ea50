"""Expressions -> values for the threads that evaluate them.

Invariant: operands are evaluated once and in order; the other side of a choice is never evaluated.

Primitives compute with the NumPy function of their row in ``ir/ops.py``, except where the language
differs. Ints wrap at 32 bits, dividing them by 0 gives 0, shift counts are taken modulo 32, and a
float outside the range of ints converts to the nearest int.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cell,
    cells,
    combined,
    dtype_of,
    fields_of,
    mapped,
    parts,
)
from shaderad.interpret.derivatives import DiffCall, call, forward_diff
from shaderad.interpret.machine import (
    CallFrame,
    ElementRows,
    ReportKind,
    Rows,
    elements_at,
    elements_behind,
    spread,
)
from shaderad.interpret.tape import Tape
from shaderad.ir import nodes, ops, types
from shaderad.ir.saturation import to_integer
from shaderad.ir.tables import check_rows
from shaderad.rules import PARTIALS, carries_derivative
from shaderad.rules.rows import matrix_product


def evaluate(f: CallFrame, e: nodes.Expr, rows: Rows) -> Value:
    """The value of `e` in `rows`, of which there is at least one."""
    return _EVALUATE[type(e)](f, e, rows)


def _const(f: CallFrame, e: nodes.Const, rows: Rows) -> Value:
    dtype, value = dtype_of(e.type, f.machine.precision), e.value
    if dtype.kind == "u":
        value = int(value) & 0xFFFFFFFF
    elif e.type in _ROUNDED and f.machine.rounds_constants:
        value = _ROUNDED[e.type](value)
    return Cell(np.full(len(rows), value, dtype))


_ROUNDED: dict[types.Type, Any] = {types.FLOAT: np.float32, types.HALF: np.float16}


def _apply(f: CallFrame, e: nodes.Apply, rows: Rows) -> Value:
    args = [cell(evaluate(f, a, rows)) for a in e.args]
    by_zero = _rows_by_zero(e.op, [a.data for a in args])
    f.report(ReportKind.DIVISION, e.span, e.op.name, rows[by_zero])
    if e.op in _MIXED:
        shaped = _by_component([a.data for a in args])
        args = [a if a.data is s else Cell(s) for a, s in zip(args, shaped, strict=True)]
    result = apply_op(e.op, [a.data for a in args], dtype_of(e.type, f.machine.precision))
    if types.is_float(e.type) and carries_derivative(e.op) and f.tape.tracks(*args):
        return f.tape.apply(PARTIALS[e.op], result, args)
    return Cell(result)


_MIXED = frozenset({ops.SELECT, ops.POWI})
"""Ops whose first or last operand is one scalar for all components."""


def _logical(f: CallFrame, e: nodes.Logical, rows: Rows) -> Value:
    result = cell(evaluate(f, e.left, rows)).data.copy()
    undecided = np.flatnonzero(result if e.is_and else ~result)
    if undecided.size:
        result[undecided] = cell(evaluate(f, e.right, rows[undecided])).data
    return Cell(result)


def _conditional(f: CallFrame, e: nodes.Conditional, rows: Rows) -> Value:
    condition = cell(evaluate(f, e.condition, rows)).data
    if condition.all():
        return evaluate(f, e.if_true, rows)
    if not condition.any():
        return evaluate(f, e.if_false, rows)
    yes, no = np.flatnonzero(condition), np.flatnonzero(~condition)
    if_true, if_false = evaluate(f, e.if_true, rows[yes]), evaluate(f, e.if_false, rows[no])
    return combined(
        lambda a, b: f.tape.put(spread(f.tape, b, no, len(rows)), yes, a), if_true, if_false
    )


def _cast(f: CallFrame, e: nodes.Cast, rows: Rows) -> Value:
    value = cell(evaluate(f, e.value, rows))
    dtype, before = dtype_of(e.type, f.machine.precision), value.data.dtype
    if dtype == before:
        return value
    if dtype.kind == before.kind == "f":
        return f.tape.rearrange(value, lambda x: x.astype(dtype), lambda x: x.astype(before))
    return Cell(_converted(value.data, dtype))


def _bitcast(f: CallFrame, e: nodes.Bitcast, rows: Rows) -> Value:
    value = cell(evaluate(f, e.value, rows))
    if e.value.type == types.DOUBLE:
        return Cell(value.data.astype(np.float64)[:, None].view(np.uint32))
    return Cell(reread(value.data, dtype_of(e.type, f.machine.precision)))


def _construct(f: CallFrame, e: nodes.Construct, rows: Rows) -> Value:
    values = [evaluate(f, p, rows) for p in e.parts]
    fields = fields_of(e.type)
    if fields is not None:
        return dict(zip(fields, values, strict=True))
    shape = cell(f.machine.zero(e.type, len(rows))).data.shape
    return f.tape.join([cell(v) for v in values], shape)


def _splat(f: CallFrame, e: nodes.Splat, rows: Rows) -> Value:
    value = cell(evaluate(f, e.value, rows))
    shape = cell(f.machine.zero(e.type, len(rows))).data.shape
    axes = tuple(range(1, len(shape)))
    return f.tape.rearrange(
        value,
        lambda x: np.broadcast_to(np.expand_dims(x, axes), shape),
        lambda x: np.sum(x, axis=axes),
    )


def columns(components: str) -> int | list[int]:
    """The component number of a swizzle of one letter, the list of them for several."""
    numbers = ["xyzw".index(c) for c in components]
    return numbers[0] if len(numbers) == 1 else numbers


def _swizzle(f: CallFrame, e: nodes.Swizzle, rows: Rows) -> Value:
    value = cell(evaluate(f, e.value, rows))
    is_unique = len(set(e.components)) == len(e.components)
    return f.tape.take(value, (slice(None), columns(e.components)), is_unique=is_unique)


def _element(f: CallFrame, e: nodes.Element, rows: Rows) -> Value:
    value = evaluate(f, e.value, rows)
    return element(f.tape, value, element_place(f, e.index, value, rows), len(rows))


def element_place(f: CallFrame, index: nodes.Expr, value: Value, rows: Rows) -> ElementRows:
    """The elements at `index` of axis 1 of `value`; reports indices out of range."""
    length = next(cells(value)).data.shape[1]
    place = elements_at([cell(evaluate(f, index, rows)).data.astype(np.int64)], (length,))
    return _reported(f, index.span, "", place, rows)


def element(tape: Tape, value: Value, place: ElementRows, count: int) -> Value:
    """``value[index]`` of `count` rows, 0 where the index is out of range."""
    key = (place.rows, place.elements)
    return mapped(
        lambda c: spread(tape, tape.take(c, key, is_unique=True), place.rows, count), value
    )


def _load(f: CallFrame, e: nodes.Load, rows: Rows) -> Value:
    place = buffer_place(f, e, rows)

    def load(c: Cell) -> Cell:
        return spread(f.tape, f.tape.take(c, place.elements), place.rows, len(rows))

    return mapped(load, f.machine.memory[e.buffer].value)


def buffer_place(
    f: CallFrame,
    access: nodes.Load | nodes.Store | nodes.Accumulate | nodes.AccumulateGradient,
    rows: Rows,
) -> ElementRows:
    """The elements that an access selects; reports indices out of range."""
    stored = f.machine.memory[access.buffer]
    pointer = access.indices[0]
    if isinstance(pointer, nodes.PointerIndex):
        base_and_count = parts(evaluate(f, pointer.pointer, rows))
        values = [base_and_count["base"], base_and_count["count"], evaluate(f, pointer.index, rows)]
        place = elements_behind(*(cell(v).data.astype(np.int64) for v in values))
    else:
        values = [evaluate(f, i, rows) for i in access.indices]
        place = elements_at([cell(v).data.astype(np.int64) for v in values], stored.shape)
    return _reported(f, access.span, stored.buffer.shown_name, place, rows)


def _reported(
    f: CallFrame, span: nodes.Span, name: str, place: ElementRows, rows: Rows
) -> ElementRows:
    missed, index, length = place.missed
    f.report(ReportKind.BOUNDS, span, name, rows[missed], index, length)
    return place


def _call(f: CallFrame, e: nodes.Call, rows: Rows) -> Value:
    args = [evaluate(f, a, rows) for a in e.args]
    return call(f.machine, e.function, args, f.threads[rows])


def _forward_diff(f: CallFrame, e: nodes.ForwardDiff, rows: Rows) -> Value:
    args = [evaluate(f, a, rows) for a in e.args]
    return forward_diff(f.machine, DiffCall(e.function, args, f.threads[rows]))


_EVALUATE: dict[type[nodes.Expr], Callable[[CallFrame, Any, Rows], Value]] = {
    nodes.Const: _const,
    nodes.Zero: lambda f, e, rows: f.machine.zero(e.type, len(rows)),
    nodes.Var: lambda f, e, rows: f.read(e.name, rows),
    nodes.Apply: _apply,
    nodes.Logical: _logical,
    nodes.Conditional: _conditional,
    nodes.Cast: _cast,
    nodes.Bitcast: _bitcast,
    nodes.Construct: _construct,
    nodes.Splat: _splat,
    nodes.Field: lambda f, e, rows: parts(evaluate(f, e.value, rows))[e.name],
    nodes.Swizzle: _swizzle,
    nodes.Element: _element,
    nodes.Load: _load,
    nodes.Length: lambda f, e, rows: Cell(
        np.full(len(rows), f.machine.memory[e.buffer].shape[e.axis], np.int32)
    ),
    nodes.PointerLength: lambda f, e, rows: Cell(
        cell(parts(evaluate(f, e.pointer, rows))["count"]).data.astype(np.int32)
    ),
    nodes.Call: _call,
    nodes.TextureCall: _call,
    nodes.ForwardDiff: _forward_diff,
    nodes.MakePair: lambda f, e, rows: {
        "p": evaluate(f, e.primal, rows),
        "d": evaluate(f, e.derivative, rows),
    },
    nodes.PairPart: lambda f, e, rows: parts(evaluate(f, e.value, rows))[e.part],
    nodes.Detach: lambda f, e, rows: mapped(lambda c: Cell(c.data), evaluate(f, e.value, rows)),
}
# `Load` evaluates the first; the others are made after the front end, for Slang alone.
check_rows(_EVALUATE, nodes.EXPRESSIONS, but=(
    nodes.PointerIndex, nodes.KnownNumber, nodes.TeamLane, nodes.OfTeam, nodes.OfLane,
    nodes.OfLaneBelow, nodes.LookBack,
))  # fmt: skip


# -- primitives ---------------------------------------------------------------------------------


def apply_op(op: ops.Op, args: Sequence[AnyArray], dtype: np.dtype[Any]) -> AnyArray:
    """``op(*args)`` for arrays whose axis 0 counts threads."""
    is_integer = args[0].dtype.kind in "iu"
    special = (_ON_INTEGERS.get(op) if is_integer else None) or _SPECIAL.get(op)
    with np.errstate(all="ignore"):
        data = np.asarray(op.numpy(*args) if special is None else special(*args))
        if dtype.kind in "iu" and data.dtype.kind == "f":
            return to_integer(data, dtype)
        return data.astype(dtype, copy=False)


def _by_component(args: Sequence[AnyArray]) -> list[AnyArray]:
    """Operands in one shape: the scalar of each thread is repeated in every component."""
    rank = max(a.ndim for a in args)
    shape = next(a.shape for a in args if a.ndim == rank)
    return [
        a if a.ndim == rank else np.broadcast_to(a.reshape(a.shape + (1,) * (rank - a.ndim)), shape)
        for a in args
    ]


def _converted(data: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """A `Cast` to scalars of `dtype`."""
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and data.dtype.kind == "f":
            return to_integer(data, dtype)
        return data != 0 if dtype.kind == "b" else data.astype(dtype)


def reread(data: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """The same 32 bits read as another scalar type; floats count as ``float``."""
    bits = data.astype(np.float32) if data.dtype.kind == "f" else data
    target = np.float32 if dtype.kind == "f" else dtype
    return np.ascontiguousarray(bits).view(target).astype(dtype)


def _rows_by_zero(op: ops.Op, args: Sequence[AnyArray]) -> AnyArray:
    """The rows of `args` that divide an int by 0."""
    if op not in (ops.FLOOR_DIV, ops.MOD) or args[1].dtype.kind not in "iu":
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.any((args[1] == 0).reshape(len(args[1]), -1), axis=1))


def _floor_divide(a: AnyArray, b: AnyArray) -> AnyArray:
    if a.dtype.kind == "u":
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b))
    # The smallest int divided by -1 wraps.
    plain = (b != 0) & (b != -1)
    return np.where(plain, a // np.where(plain, b, 1), np.where(b == 0, 0, np.negative(a)))


def _modulo(a: AnyArray, b: AnyArray) -> AnyArray:
    plain = b != 0
    if a.dtype.kind == "i":
        plain &= b != -1
    return np.where(plain, a % np.where(plain, b, 1), 0)


def _shift_left(a: AnyArray, count: AnyArray) -> AnyArray:
    return np.left_shift(a, count & 31)


def _shift_right(a: AnyArray, count: AnyArray) -> AnyArray:
    return np.right_shift(a, count & 31)


def _inverse(m: AnyArray) -> AnyArray:
    is_singular = (np.linalg.det(m) == 0)[..., None, None]
    inverse = np.linalg.inv(np.where(is_singular, np.eye(m.shape[-1], dtype=m.dtype), m))
    return np.where(is_singular, np.nan, inverse)


_ON_INTEGERS: dict[ops.Op, Callable[..., Any]] = {
    ops.FLOOR_DIV: _floor_divide,
    ops.MOD: _modulo,
    ops.SHIFT_LEFT: _shift_left,
    ops.SHIFT_RIGHT: _shift_right,
}
_SPECIAL: dict[ops.Op, Callable[..., Any]] = {
    ops.MATMUL: matrix_product,
    ops.INVERSE: _inverse,
    ops.ANY_OF: partial(np.any, axis=-1),
    ops.ALL_OF: partial(np.all, axis=-1),
}
