"""Expressions -> values for the threads that evaluate them.

Invariant: operands are evaluated once and in order; a side that is not chosen, never.
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
    combined,
    dtype_of,
    mapped,
    parts,
    thread_count,
    truth,
)
from shaderad.interpret.derivatives import Derived, call, forward_diff
from shaderad.interpret.machine import Frame, Machine, Rows, read, spread
from shaderad.interpret.memory import Place, place, pointed_place
from shaderad.interpret.reports import ReportKind
from shaderad.ir import nodes, ops, types
from shaderad.rules import carries_derivative, row_of


def evaluate(machine: Machine, frame: Frame, e: nodes.Expr, rows: Rows) -> Value:
    """The value of `e` in `rows`, of which there is at least one."""
    return _EVALUATE[type(e)](machine, frame, e, rows)


def _const(machine: Machine, frame: Frame, e: nodes.Const, rows: Rows) -> Value:
    scalar = types.scalar_of(e.type)
    assert scalar is not None
    dtype = dtype_of(scalar, machine.precision)
    value = e.value
    if dtype.kind == "u":
        value = int(value) & 0xFFFFFFFF
    elif scalar.kind in _ROUNDED and machine.rounds_constants:
        value = _ROUNDED[scalar.kind](value)
    return Cell(np.full(len(rows), value, dtype))


_ROUNDED = {types.Kind.FLOAT: np.float32, types.Kind.HALF: np.float16}


def _zero(machine: Machine, frame: Frame, e: nodes.Zero, rows: Rows) -> Value:
    return machine.zero(e.type, len(rows))


def _var(machine: Machine, frame: Frame, e: nodes.Var, rows: Rows) -> Value:
    return read(machine, frame, e.name, rows)


def _apply(machine: Machine, frame: Frame, e: nodes.Apply, rows: Rows) -> Value:
    args = [cell(evaluate(machine, frame, a, rows)) for a in e.args]
    scalar = types.scalar_of(e.type)
    assert scalar is not None
    data = [a.data for a in args]
    by_zero = primitives.divides_by_zero(e.op, data)
    if by_zero is not None:
        threads = frame.threads[rows[by_zero]]
        machine.reports.add(ReportKind.DIVISION, e.span, e.op.name, threads)
    if e.op in _MIXED:
        args = _in_one_shape(machine, args)
        data = [a.data for a in args]
    found = primitives.evaluate(e.op, data, dtype_of(scalar, machine.precision))
    if not types.is_float(e.type) or not carries_derivative(e.op) or not machine.tape.tracks(*args):
        return Cell(found)
    return machine.tape.apply(row_of(e.op, e.span), found, args)


_MIXED = frozenset({ops.SELECT, ops.POWI})
"""Ops whose first or last operand is one scalar for all components."""


def _in_one_shape(machine: Machine, args: Sequence[Cell]) -> list[Cell]:
    shaped = primitives.by_component([a.data for a in args])
    return [a if a.data is s else Cell(s) for a, s in zip(args, shaped, strict=True)]


def _logical(machine: Machine, frame: Frame, e: nodes.Logical, rows: Rows) -> Value:
    found = truth(evaluate(machine, frame, e.left, rows)).copy()
    undecided = found if e.is_and else ~found
    asked = np.flatnonzero(undecided)
    if asked.size:
        found[asked] = truth(evaluate(machine, frame, e.right, rows[asked]))
    return Cell(found)


def _conditional(machine: Machine, frame: Frame, e: nodes.Conditional, rows: Rows) -> Value:
    condition = truth(evaluate(machine, frame, e.condition, rows))
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
    scalar = types.scalar_of(e.type)
    assert scalar is not None
    dtype, before = dtype_of(scalar, machine.precision), value.data.dtype
    if dtype == before:
        return value
    if dtype.kind == before.kind == "f":
        return machine.tape.rearrange(value, lambda x: x.astype(dtype), lambda x: x.astype(before))
    return Cell(primitives.converted(value.data, dtype))


def _bitcast(machine: Machine, frame: Frame, e: nodes.Bitcast, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    scalar = types.scalar_of(e.type)
    assert scalar is not None
    return Cell(primitives.reread(value.data, dtype_of(scalar, machine.precision)))


def _construct(machine: Machine, frame: Frame, e: nodes.Construct, rows: Rows) -> Value:
    given = [evaluate(machine, frame, p, rows) for p in e.parts]
    names = _part_names(e.type)
    if names is not None:
        return dict(zip(names, given, strict=True))
    shape = machine.zero(e.type, len(rows))
    return machine.tape.join([cell(g) for g in given], cell(shape).data.shape)


def _part_names(t: types.Type) -> list[str] | None:
    if isinstance(t, types.Struct):
        return [name for name, _ in t.fields]
    if isinstance(t, types.Tuple):
        return [str(k) for k in range(len(t.elements))]
    return None


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
    """Where the letters of a swizzle stand in a vector."""
    found = ["xyzw".index(c) for c in components]
    return found[0] if len(found) == 1 else found


def _swizzle(machine: Machine, frame: Frame, e: nodes.Swizzle, rows: Rows) -> Value:
    value = cell(evaluate(machine, frame, e.value, rows))
    is_unique = len(set(e.components)) == len(e.components)
    return machine.tape.take(value, (slice(None), columns(e.components)), is_unique=is_unique)


def _element(machine: Machine, frame: Frame, e: nodes.Element, rows: Rows) -> Value:
    value = evaluate(machine, frame, e.value, rows)
    index = truth(evaluate(machine, frame, e.index, rows))
    return element(machine, value, element_place(machine, frame, e.index, index, value, rows))


def element_place(
    machine: Machine,
    frame: Frame,
    e: nodes.Expr,
    index: AnyArray,
    value: Value,
    rows: Rows,
) -> Place:
    """Where `index` points to in axis 1 of `value`; misses are reported at `e`."""
    length = _length(value)
    found = place([index.astype(np.int64)], (length,))
    _report(machine, frame, e.span, "", found, rows)
    return found


def _length(value: Value) -> int:
    while not isinstance(value, Cell):
        value = next(iter(value.values()))
    return value.data.shape[1]


def element(machine: Machine, value: Value, found: Place) -> Value:
    """``value[index]``, 0 where the index is out of range."""
    tape, count = machine.tape, thread_count(value)
    key = (found.rows, found.elements)
    return mapped(
        lambda c: spread(tape, tape.take(c, key, is_unique=True), found.rows, count), value
    )


def _load(machine: Machine, frame: Frame, e: nodes.Load, rows: Rows) -> Value:
    stored = machine.memory[e.buffer]
    found = buffer_place(machine, frame, e, rows)
    tape, count = machine.tape, len(rows)
    return mapped(
        lambda c: spread(tape, tape.take(c, found.elements), found.rows, count), stored.value
    )


def buffer_place(
    machine: Machine,
    frame: Frame,
    access: nodes.Load | nodes.Store | nodes.Accumulate | nodes.AccumulateGradient,
    rows: Rows,
) -> Place:
    """Which elements of its array an access means; misses are reported."""
    stored = machine.memory[access.buffer]
    if isinstance(access.indices[0], nodes.PointerIndex):
        found = _pointed(machine, frame, access.indices[0], rows)
        _report(machine, frame, access.span, stored.buffer.shown_name, found, rows)
        return found
    indices = [truth(evaluate(machine, frame, i, rows)).astype(np.int64) for i in access.indices]
    found = place(indices, stored.shape)
    _report(machine, frame, access.span, access.buffer, found, rows)
    return found


def _pointed(machine: Machine, frame: Frame, e: nodes.PointerIndex, rows: Rows) -> Place:
    pointer = parts(evaluate(machine, frame, e.pointer, rows))
    numbers = [pointer["base"], pointer["count"], evaluate(machine, frame, e.index, rows)]
    base, count, index = (truth(value).astype(np.int64) for value in numbers)
    return pointed_place(base, count, index)


def _pointer_length(machine: Machine, frame: Frame, e: nodes.PointerLength, rows: Rows) -> Value:
    count = parts(evaluate(machine, frame, e.pointer, rows))["count"]
    return Cell(truth(count).astype(np.int32))


def _report(
    machine: Machine, frame: Frame, span: nodes.Span, name: str, found: Place, rows: Rows
) -> None:
    if found.missed is not None:
        missed, index, length = found.missed
        machine.reports.out_of_range(span, name, frame.threads[rows[missed]], index, length)


def _buffer_length(machine: Machine, frame: Frame, e: nodes.Length, rows: Rows) -> Value:
    return Cell(np.full(len(rows), machine.memory[e.buffer].shape[e.axis], np.int32))


def _call(machine: Machine, frame: Frame, e: nodes.Call, rows: Rows) -> Value:
    args = [evaluate(machine, frame, a, rows) for a in e.args]
    return call(machine, e.function, args, frame.threads[rows])


def _forward_diff(machine: Machine, frame: Frame, e: nodes.ForwardDiff, rows: Rows) -> Value:
    args = [evaluate(machine, frame, a, rows) for a in e.args]
    pairs = [isinstance(a.type, types.Pair) for a in e.args]
    return forward_diff(machine, Derived(e.function, args, pairs, frame.threads[rows]))


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
