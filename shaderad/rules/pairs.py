"""Lowers pairs to tuples of a primal and its derivative, both of the type of the primal.

Parts without a derivative are 0 in the second element, so no derivative types are needed, and code
that handles pairs becomes ordinary code, which can be differentiated again.
"""

from __future__ import annotations

from dataclasses import replace

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import (
    FloatElements,
    FloatFields,
    LocalArray,
    Pair,
    Struct,
    Tuple,
    Type,
    is_differentiable,
)
from shaderad.ir.walk import all_expressions
from shaderad.rules import composing as c

PRIMAL, DERIVATIVE = "0", "1"
"""Element names of a lowered pair."""


def plain_type(t: Type) -> Type:
    """`t` with tuples for pairs, and primal types for derivative types."""
    if isinstance(t, Pair):
        whole = plain_type(t.primal)
        # A primal without floats holds pointers only: see ir/pointers.py.
        return Tuple((whole, whole)) if is_differentiable(t.primal) else whole
    if isinstance(t, FloatFields | FloatElements):
        return plain_type(t.whole)
    if isinstance(t, LocalArray):
        return LocalArray(plain_type(t.element), t.count)
    if isinstance(t, Tuple):
        return Tuple(tuple(map(plain_type, t.elements)))
    return t


def holds_pairs(body: tuple[Stmt, ...]) -> bool:
    """True if a body constructs or reads pairs, or calls ``fwd_diff``."""
    kinds = nodes.ForwardDiff | nodes.MakePair | nodes.PairPart
    return any(isinstance(e, kinds) for e in all_expressions(body))


def plain(e: Expr, written: Expr) -> Expr:
    """`e` without pairs; its operands are lowered already, those of `written` are not."""
    if isinstance(e, nodes.MakePair):
        return nodes.Construct(type=plain_type(e.type), parts=(e.primal, e.derivative), span=e.span)
    if isinstance(e, nodes.PairPart):
        if isinstance(written, nodes.PairPart) and not _holds_floats(written.value.type):
            return e.value
        return c.field(e.value, PRIMAL if e.part == "p" else DERIVATIVE)
    if isinstance(e, nodes.Construct) and isinstance(written.type, FloatFields):
        return _whole(e, written.type)
    if isinstance(e, nodes.Field) and isinstance(written, nodes.Field):
        name = _whole_name(written)
        whole = e.value.type
        assert isinstance(whole, Struct | Tuple)
        return replace(e, type=dict(c.named_parts(whole))[name], name=name)
    if isinstance(e, nodes.Element) and isinstance(e.value.type, LocalArray):
        return replace(e, type=e.value.type.element)
    t = plain_type(e.type)
    return e if t == e.type else replace(e, type=t)


def _holds_floats(t: Type) -> bool:
    return isinstance(t, Pair) and is_differentiable(t.primal)


def _whole(e: nodes.Construct, t: FloatFields) -> Expr:
    """A derivative of type `t`, converted to the primal type; fields without one are zero."""
    part_by_field = dict(zip(t.type_by_field, e.parts, strict=True))
    whole = plain_type(t)
    assert isinstance(whole, Struct)
    parts = tuple(part_by_field.get(n, nodes.Zero(type=f)) for n, f in whole.fields)
    return nodes.Construct(type=whole, parts=parts, span=e.span)


def _whole_name(e: nodes.Field) -> str:
    """The name of a field in the primal type; derivatives of tuples number their elements anew."""
    if not isinstance(e.value.type, FloatElements):
        return e.name
    parts = c.named_parts(e.value.type.whole)
    return [name for name, t in parts if is_differentiable(t)][int(e.name)]


def plain_path(path: tuple[nodes.Step, ...]) -> tuple[nodes.Step, ...]:
    """The path of an assignment, without `PartStep`."""
    return tuple(
        nodes.FieldStep(name=DERIVATIVE) if isinstance(step, nodes.PartStep) else step
        for step in path
    )
