"""Expressions -> values for the threads that evaluate them.

Invariant: operands are evaluated once and in order, the other side of a choice never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shaderad.interpret import primitives
from shaderad.interpret.cells import (
    AnyArray,
    Cell,
    Value,
    cell,
    cells,
    combined,
    data_of,
    dtype_of,
    fields_of,
    mapped,
    parts,
    thread_count,
)
from shaderad.interpret.derivatives import DiffCall, call, forward_diff
from shaderad.interpret.machine import Frame, Machine, Rows, read, spread
from shaderad.interpret.memory import ElementRows, elements_at, elements_behind
from shaderad.interpret.reports import ReportKind
from shaderad.ir import nodes, ops, types
from shaderad.ir.tables import check_rows
from shaderad.rules import PARTIALS, carries_derivative


def evaluate(machine: Machine, frame: Frame, e: nodes.Expr, rows: Rows) -> Value:
    """The value of `e` in `rows`, of which there is at least one."""
    return _EVALUATE[type(e)](machine, frame, e, rows)


def _const(machine: Machine, frame: Frame, e: nodes.Const, rows: Rows) -> Value:
    dtype, value = _dtype(machine, e), e.value
    if dtype.kind == "u":
        value = int(value) & 0xFFFFFFFF
    elif e.type in _ROUNDED and machine.rounds_constants:
        value = _ROUNDED[e.type](value)
    return Cell(np.full(len(rows), value, dtype))


_ROUNDED: dict[types.Type, Any] = {types.FLOAT: np.float32, types.HALF: np.float16}


def _dtype(machine: Machine, e: nodes.Expr) -> np.dtype[Any]:
    """The NumPy type of the components of `e`."""
    scalar = types.scalar_of(e.type)
    assert scalar is not None
    return dtype_of(scalar, machine.precision)


def _zero(machine: Machine, frame: Frame, e: nodes.Zero, rows: Rows) -> Value:
    return machine.zero(e.type, len(rows))


def _var(machine: Machine, frame: Frame, e: nodes.Var, rows: Rows) -> Value:
    return read(machine, frame, e.name, rows)


def _apply(machine: Machine, frame: Frame, e: nodes.Apply, rows: Rows) -> Value:
    args = [cell(evaluate(machine, frame, a, rows)) for a in e.args]
    data = [a.data for a in args]
    by_zero = primitives.divides_by_zero(e.op, data)
    if by_zero is not None:
        threads = frame.threads[rows[by_zero]]
        machine.reports.add(ReportKind.DIVISION, e.span, e.op.name, threads)
    if e.op in _MIXED:
        args = _in_one_shape(machine, args)
        data = [a.data for a in args]
    result = primitives.evaluate(e.op, data, _dtype(machine, e))
    if not types.is_float(e.type) or not carries_derivative(e.op) or not machine.tape.tracks(*args):
        return Cell(result)
    return machine.tape.apply(PARTIALS[e.op], result, args)


_MIXED = frozenset({ops.SELECT, ops.POWI})
"""Ops whose first or last operand is one scalar for all components."""


def _in_one_shape(machine: Machine, args: Sequence[Cell]) -> list[Cell]:
    shaped = primitives.by_component([a.data for a in args])
    return [a if a.data is s else Cell(s) for a, s in zip(args, shaped, strict=True)]


def _logical(machine: Machine, frame: Frame, e: nodes.Logical, rows: Rows) -> Value:
    result = data_of(evaluate(machine, frame, e.left, rows)).copy()
    undecided = np.flatnonzero(result if e.is_and else ~result)
    if undecided.size:
        result[undecided] = data_of(evaluate(machine, frame, e.right, rows[undecided]))
    return Cell(result)


def _conditional(machine: Machine, frame: Frame, e: nodes.Conditional, rows: Rows) -> Value:
    condition = data_of(evaluate(machine, frame, e.condition, rows))
    if condition.all():
        return evaluate(machine, frame, e.if_true, rows)
    if not condition.any():
        return evaluate(machine, frame, e.if_false, rows)
    tape, count = machine.tape, len(rows)
    yes, no = np.flatnonzero(condition), np.flatnonzero(~condition)
    if_true = evaluate(machine, frame, e.if_true, rows[yes])
    if_false = evaluate(machine, frame, e.if_false, rows[no])
    return combined(lambda a, b: tape.put(spread(tape, b, no, count), yes, a), if_true, if_false)


def _cast(machine: Machine, frame: Frame, e: nodes.Cast, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    dtype, before = _dtype(machine, e), value.data.dtype
    if dtype == before:
        return value
    if dtype.kind == before.kind == "f":
        return machine.tape.rearrange(value, lambda x: x.astype(dtype), lambda x: x.astype(before))
    return Cell(primitives.converted(value.data, dtype))


def _bitcast(machine: Machine, frame: Frame, e: nodes.Bitcast, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    return Cell(primitives.reread(value.data, _dtype(machine, e)))


def _construct(machine: Machine, frame: Frame, e: nodes.Construct, rows: Rows) -> Value:
    values = [evaluate(machine, frame, p, rows) for p in e.parts]
    fields = fields_of(e.type)
    if fields is not None:
        return {name: value for (name, _), value in zip(fields, values, strict=True)}
    shape = cell(machine.zero(e.type, len(rows))).data.shape
    return machine.tape.join([cell(v) for v in values], shape)


def _splat(machine: Machine, frame: Frame, e: nodes.Splat, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    shape = cell(machine.zero(e.type, len(rows))).data.shape
    axes = tuple(range(1, len(shape)))
    return machine.tape.rearrange(
        value,
        lambda x: np.broadcast_to(np.expand_dims(x, axes), shape),
        lambda x: np.sum(x, axis=axes),
    )


def _field(machine: Machine, frame: Frame, e: nodes.Field, rows: Rows) -> Value:
    return parts(evaluate(machine, frame, e.value, rows))[e.name]


def columns(components: str) -> int | list[int]:
    """The component number of a swizzle of one letter, the list of them for several."""
    numbers = ["xyzw".index(c) for c in components]
    return numbers[0] if len(numbers) == 1 else numbers


def _swizzle(machine: Machine, frame: Frame, e: nodes.Swizzle, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    is_unique = len(set(e.components)) == len(e.components)
    return machine.tape.take(value, (slice(None), columns(e.components)), is_unique=is_unique)


def _element(machine: Machine, frame: Frame, e: nodes.Element, rows: Rows) -> Value:
    value = evaluate(machine, frame, e.value, rows)
    index = data_of(evaluate(machine, frame, e.index, rows))
    return element(machine, value, element_place(machine, frame, e.index, index, value, rows))


def element_place(
    machine: Machine,
    frame: Frame,
    e: nodes.Expr,
    index: AnyArray,
    value: Value,
    rows: Rows,
) -> ElementRows:
    """The elements at `index` of axis 1 of `value`; reports indices out of range at `e`."""
    length = next(cells(value)).data.shape[1]
    place = elements_at([index.astype(np.int64)], (length,))
    _report(machine, frame, e.span, "", place, rows)
    return place


def element(machine: Machine, value: Value, place: ElementRows) -> Value:
    """``value[index]``, 0 where the index is out of range."""
    tape, count = machine.tape, thread_count(value)
    key = (place.rows, place.elements)
    return mapped(
        lambda c: spread(tape, tape.take(c, key, is_unique=True), place.rows, count), value
    )


def _load(machine: Machine, frame: Frame, e: nodes.Load, rows: Rows) -> Value:
    stored = machine.memory[e.buffer]
    place = buffer_place(machine, frame, e, rows)
    tape, count = machine.tape, len(rows)
    return mapped(
        lambda c: spread(tape, tape.take(c, place.elements), place.rows, count), stored.value
    )


def buffer_place(
    machine: Machine,
    frame: Frame,
    access: nodes.Load | nodes.Store | nodes.Accumulate | nodes.AccumulateGradient,
    rows: Rows,
) -> ElementRows:
    """The elements that an access selects; reports indices out of range."""
    stored = machine.memory[access.buffer]
    if isinstance(access.indices[0], nodes.PointerIndex):
        place = _pointer_place(machine, frame, access.indices[0], rows)
        _report(machine, frame, access.span, stored.buffer.shown_name, place, rows)
        return place
    indices = [data_of(evaluate(machine, frame, i, rows)).astype(np.int64) for i in access.indices]
    place = elements_at(indices, stored.shape)
    _report(machine, frame, access.span, access.buffer, place, rows)
    return place


def _pointer_place(
    machine: Machine, frame: Frame, e: nodes.PointerIndex, rows: Rows
) -> ElementRows:
    pointer = parts(evaluate(machine, frame, e.pointer, rows))
    numbers = [pointer["base"], pointer["count"], evaluate(machine, frame, e.index, rows)]
    base, count, index = (data_of(value).astype(np.int64) for value in numbers)
    return elements_behind(base, count, index)


def _pointer_length(machine: Machine, frame: Frame, e: nodes.PointerLength, rows: Rows) -> Value:
    count = parts(evaluate(machine, frame, e.pointer, rows))["count"]
    return Cell(data_of(count).astype(np.int32))


def _report(
    machine: Machine, frame: Frame, span: nodes.Span, name: str, place: ElementRows, rows: Rows
) -> None:
    if place.missed is not None:
        missed, index, length = place.missed
        machine.reports.out_of_range(span, name, frame.threads[rows[missed]], index, length)


def _buffer_length(machine: Machine, frame: Frame, e: nodes.Length, rows: Rows) -> Value:
    return Cell(np.full(len(rows), machine.memory[e.buffer].shape[e.axis], np.int32))


def _call(machine: Machine, frame: Frame, e: nodes.Call, rows: Rows) -> Value:
    args = [evaluate(machine, frame, a, rows) for a in e.args]
    return call(machine, e.function, args, frame.threads[rows])


def _forward_diff(machine: Machine, frame: Frame, e: nodes.ForwardDiff, rows: Rows) -> Value:
    args = [evaluate(machine, frame, a, rows) for a in e.args]
    pairs = [isinstance(a.type, types.Pair) for a in e.args]
    return forward_diff(machine, DiffCall(e.function, args, pairs, frame.threads[rows]))


def _make_pair(machine: Machine, frame: Frame, e: nodes.MakePair, rows: Rows) -> Value:
    primal = evaluate(machine, frame, e.primal, rows)
    return {"p": primal, "d": evaluate(machine, frame, e.derivative, rows)}


def _pair_part(machine: Machine, frame: Frame, e: nodes.PairPart, rows: Rows) -> Value:
    return parts(evaluate(machine, frame, e.value, rows))[e.part]


def _detach(machine: Machine, frame: Frame, e: nodes.Detach, rows: Rows) -> Value:
    return mapped(lambda c: Cell(c.data), evaluate(machine, frame, e.value, rows))


_EVALUATE: dict[type[nodes.Expr], Callable[[Machine, Frame, Any, Rows], Value]] = {
    nodes.Const: _const,
    nodes.Zero: _zero,
    nodes.Var: _var,
    nodes.Apply: _apply,
    nodes.Logical: _logical,
    nodes.Conditional: _conditional,
    nodes.Cast: _cast,
    nodes.Bitcast: _bitcast,
    nodes.Construct: _construct,
    nodes.Splat: _splat,
    nodes.Field: _field,
    nodes.Swizzle: _swizzle,
    nodes.Element: _element,
    nodes.Load: _load,
    nodes.Length: _buffer_length,
    nodes.PointerLength: _pointer_length,
    nodes.Call: _call,
    nodes.ForwardDiff: _forward_diff,
    nodes.MakePair: _make_pair,
    nodes.PairPart: _pair_part,
    nodes.Detach: _detach,
}
# `Load` evaluates the first; the second is made after the front end, for Slang alone.
check_rows(_EVALUATE, nodes.EXPRESSIONS, but=(nodes.PointerIndex, nodes.KnownNumber))
