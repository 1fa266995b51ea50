"""Assembles the cotangent of a write from parts that must be read separately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Step
from shaderad.ir.types import (
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    is_differentiable,
)
from shaderad.rules import composing as c
from shaderad.rules.local_arrays import array_of
from shaderad.rules.pulling.nodes import Cotangent


def parts_of(e: Cotangent) -> Expr:
    """`e`, split into scalars if its components are not adjacent, or may have different winners."""
    t, last = e.type, e.path[-1] if e.path else None
    if isinstance(last, nodes.SwizzleStep) and isinstance(t, Vector):
        steps = [nodes.SwizzleStep(components=letter) for letter in last.components]
        return c.construct(t, [
            parts_of(replace(e, path=(*e.path[:-1], step), type=t.element)) for step in steps
        ])  # fmt: skip
    if e.write_number is None or isinstance(t, Scalar):
        return e
    if not is_differentiable(t):
        return c.zero(t)
    parts = [parts_of(replace(e, path=(*e.path, step), type=part)) for step, part in _steps(t)]
    return array_of(t, parts) if isinstance(t, LocalArray) else c.construct(t, parts)


def _steps(t: Type) -> Iterator[tuple[Step, Type]]:
    if isinstance(t, Vector):
        for letter in "xyzw"[: t.count]:
            yield nodes.SwizzleStep(components=letter), t.element
    elif isinstance(t, Matrix):
        for k in range(t.row_count):
            yield nodes.ElementStep(index=c.whole(k)), t.row
    elif isinstance(t, LocalArray):
        for k in range(t.count):
            yield nodes.ElementStep(index=c.whole(k)), t.element
    else:
        assert isinstance(t, Struct | Tuple)
        for name, part in c.named_parts(t):
            yield nodes.FieldStep(name=name), part
