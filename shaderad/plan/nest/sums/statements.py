"""Statements of kernels of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, Stmt, Store
from shaderad.plan.statements import Written


def zeroed(total: nodes.Var) -> Stmt:
    """Sets a sum to 0."""
    return Assign(name=total.name, value=c.zero(total.type))


def plus(total: nodes.Var, value: Expr) -> Stmt:
    """Adds to a sum."""
    return Assign(name=total.name, value=c.apply(ops.ADD, total, value))


def store(buffer: str, indices: tuple[Expr, ...], value: Expr) -> Stmt:
    """Stores what no other thread stores, or all others store as well."""
    return Store(buffer=buffer, indices=indices, value=value, is_unique=True)


def added_in_turn(
    written: Written, first: int, sums: Sequence[nodes.Var], count: int = 1
) -> Iterator[Stmt]:
    """Computes what is written, and adds it to the sums as soon as it is known.

    The `first` values are only computed; after them come `count` addends of each sum.
    """
    for k, (statements, value) in enumerate(written.in_turn(), start=-first):
        yield from statements
        if k >= 0:
            yield plus(sums[k // count], value)
