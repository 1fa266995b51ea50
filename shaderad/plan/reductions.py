"""Reductions of arrays of one shape -> one reduction of structs, a field for each of them.

Invariant: each field has the value that its reduction has alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Node, Reducer, Value
from shaderad.ir.nodes import Expr, Function
from shaderad.ir.types import Struct, Type, is_bool
from shaderad.rules.arrays.scan_operators import combined


@dataclass(frozen=True, kw_only=True, eq=False)
class ReduceFields(Node):
    """``result[r...].f = x[r..., 0].f op x[r..., 1].f op ...`` for each field f, by an operator
    of its own, along the last axis.
    """

    ops: tuple[Reducer, ...]

    def result_types(self) -> tuple[ArrayType, ...]:
        (x,) = self.operands
        return (ArrayType(x.element, x.shape[:-1]),)


Reduction = arrays.Reduce | ReduceFields
"""Nodes that reduce the last axis."""


def joined(nodes: Sequence[arrays.Reduce], elements: Sequence[Value]) -> list[Value]:
    """The result of each of `nodes`, which reduces the `elements` at its place, from one pass."""
    types = [x.element for x in elements]
    fields = tuple((f"total{k}", t) for k, t in enumerate(types))
    packed = Struct("_".join(("totals_of", *map(b.type_name, types))), fields)
    ops = tuple(node.op for node in nodes)
    totals = ReduceFields(operands=(b.struct(packed, elements),), ops=ops)
    return [b.field(totals.result, name) for name, _ in fields]


def operators_of(node: Reduction) -> Sequence[tuple[Reducer, Type]]:
    """The operator and the type of its elements, for each field if each has its own."""
    t = node.results[0].element
    if isinstance(node, arrays.Reduce):
        return [(node.op, t)]
    assert isinstance(t, Struct)
    return [(op, part) for op, (_, part) in zip(node.ops, t.fields, strict=True)]


def combined_elements(node: Reduction, left: Expr, right: Expr) -> Expr:
    """Two elements of `node`, combined."""
    if isinstance(node, arrays.Reduce):
        return combined_by(node.op, left, right)
    parts = zip(node.ops, _fields(left), _fields(right), strict=True)
    return c.construct(left.type, [combined(*part) for part in parts])


def combined_by(op: Reducer, left: Expr, right: Expr) -> Expr:
    """``left op right``; sums of structs by field, whole numbers included."""
    if op == ops.ADD and isinstance(left.type, Struct):
        pairs = zip(_fields(left), _fields(right), strict=True)
        return c.construct(left.type, [combined_by(op, a, b) for a, b in pairs])
    if op == ops.ADD and is_bool(left.type):
        return c.zero(left.type)
    return combined(op, left, right)


def _fields(x: Expr) -> list[Expr]:
    assert isinstance(x.type, Struct)
    return [c.field(x, name) for name, _ in x.type.fields]


def neutral_of(node: Reduction) -> Expr:
    """The reduction of no elements; zero by functions, which have no neutral element."""
    neutrals = [_neutral(*operator) for operator in operators_of(node)]
    return (
        neutrals[0]
        if isinstance(node, arrays.Reduce)
        else c.construct(node.result.element, neutrals)
    )


def _neutral(op: Reducer, t: Type) -> Expr:
    return c.zero(t) if isinstance(op, Function) else c.neutral(op, t)


def has_neutral(node: Reduction) -> bool:
    """True if all operators have a neutral element."""
    return not any(isinstance(op, Function) for op, _ in operators_of(node))
