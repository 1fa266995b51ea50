"""Expressions as DAGs: each node is visited once, however many parents it has."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.walk import children, map_children


def in_order(e: Expr) -> list[Expr]:
    """Every node of `e` once, operands first. Iterative, because fused expressions are deep."""
    ordered: dict[int, Expr] = {}
    stack = [(e, False)]
    while stack:
        node, is_ready = stack.pop()
        if id(node) in ordered:
            continue
        if is_ready:
            ordered[id(node)] = node
        else:
            stack.append((node, True))
            stack += [(child, False) for child in children(node)[::-1]]
    return list(ordered.values())


def variables(e: Expr) -> frozenset[str]:
    """Names that `e` reads."""
    return frozenset(node.name for node in in_order(e) if isinstance(node, nodes.Var))


def substitute(e: Expr, by_name: Mapping[str, Expr]) -> Expr:
    """`e` with its variables replaced; shared nodes stay shared."""
    new: dict[int, Expr] = {}
    for node in in_order(e):
        if isinstance(node, nodes.Var):
            new[id(node)] = by_name.get(node.name, node)
        else:
            new[id(node)] = map_children(node, lambda child: new[id(child)])
    return new[id(e)]


def has_choice(e: Expr) -> bool:
    """True if `e` holds a conditional or a `select`."""
    return any(
        isinstance(node, nodes.Conditional)
        or (isinstance(node, nodes.Apply) and node.op == ops.SELECT)
        for node in in_order(e)
    )
