"""Simplifies sums that start at 0: the first ``x_bar += v`` of a block becomes ``x_bar = v``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import Type, is_float
from shaderad.ir.walk import writes


def tidied(
    body: tuple[Stmt, ...], types: Mapping[str, Type], given: frozenset[str]
) -> tuple[Stmt, ...]:
    """`body` with simplified sums.

    Args:
        body: Statements in which unassigned locals are 0.
        types: The types of locals.
        given: Names that have values before the body.
    """
    unset = {n for n, t in types.items() if is_float(t) and n not in given}
    return _block(body, unset)


def _block(body: tuple[Stmt, ...], unset: set[str]) -> tuple[Stmt, ...]:
    """Removes the names that the block assigns from `unset`, the names that are still 0."""
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, nodes.If):
            sides = [(block, set(unset)) for block in (s.then, s.otherwise)]
            then, otherwise = (_block(block, inside) for block, inside in sides)
            out.append(replace(s, then=then, otherwise=otherwise))
        elif isinstance(s, nodes.For | nodes.While):
            out.append(replace(s, body=_block(s.body, unset - writes(s.body))))
        else:
            out.append(_first(s, unset))
        unset -= writes((s,))
        if isinstance(s, nodes.Evaluate) and isinstance(s.call, nodes.Call):
            unset -= {a.name for a in s.call.args if isinstance(a, nodes.Var)}
    return tuple(out)


def _first(s: Stmt, unset: set[str]) -> Stmt:
    if not isinstance(s, nodes.Assign) or s.path or s.name not in unset:
        return s
    value = s.value
    if not isinstance(value, nodes.Apply) or value.op != ops.ADD:
        return s
    total, more = value.args
    is_first = isinstance(total, nodes.Var) and total.name == s.name
    return replace(s, value=more) if is_first else s
