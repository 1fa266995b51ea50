"""Statements that add a cotangent to a local, or to the gradient of an array."""

from __future__ import annotations

from collections.abc import Iterator

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Step
from shaderad.ir.types import LocalArray, Struct, Tuple, is_differentiable, is_float
from shaderad.ir.walk import path_value
from shaderad.rules import composing as c
from shaderad.rules.body import Body


def add_to(body: Body, bar: nodes.Var, path: tuple[Step, ...], value: Expr) -> None:
    """``bar<path> += value``; structs, tuples and local arrays part by part."""
    t = value.type
    if c.is_zero(value) or not is_differentiable(t):
        return
    if is_float(t):
        total = nodes.Apply(type=t, op=ops.ADD, args=(reached(bar, path), value))
        body.add(nodes.Assign(name=bar.name, path=path, value=total, span=body.span))
        return
    for step, part in _parts(body, value):
        add_to(body, bar, (*path, step), part)


def add_to_gradient(body: Body, load: nodes.Load, path: tuple[Step, ...], value: Expr) -> None:
    """``gradient[i]<path> += value`` for the element ``i`` that `load` reads."""
    t = value.type
    if c.is_zero(value) or not is_differentiable(t):
        return
    if is_float(t):
        body.add(
            nodes.AccumulateGradient(
                buffer=load.buffer, indices=load.indices, path=path, value=value, span=load.span
            )
        )
        return
    for step, part in _parts(body, value):
        add_to_gradient(body, load, (*path, step), part)


def reached(name: nodes.Var, path: tuple[Step, ...]) -> Expr:
    """``name<path>`` as a value."""
    value = path_value(name, path)
    assert value is not None
    return value


def _parts(body: Body, value: Expr) -> Iterator[tuple[Step, Expr]]:
    """Step and value of each field or element of `value`."""
    value = body.bound(value)
    t = value.type
    if isinstance(t, LocalArray):
        for k in range(t.count):
            yield nodes.ElementStep(index=c.whole(k)), c.element(value, c.whole(k))
        return
    assert isinstance(t, Struct | Tuple)
    for name, _ in c.named_parts(t):
        yield nodes.FieldStep(name=name), c.field(value, name)
