"""Statements of kernels of nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, For, If, Stmt, Store
from shaderad.plan.statements import Written


def assigned(local: nodes.Var, value: Expr) -> Stmt:
    """Sets a local variable."""
    return Assign(name=local.name, value=value)


def zeroed(total: nodes.Var) -> Stmt:
    """Sets a sum to 0."""
    return assigned(total, c.zero(total.type))


def plus(total: nodes.Var, value: Expr) -> Stmt:
    """Adds to a sum."""
    return assigned(total, c.apply(ops.ADD, total, value))


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


def appended(
    combined: Callable[[Expr, Expr], Expr], total: nodes.Var, value: Expr, has_total: Expr
) -> Iterator[Stmt]:
    """Lets `value` come after `total`, or be the total if there is none."""
    both, alone = assigned(total, combined(total, value)), assigned(total, value)
    holds = c.number_of(has_total)
    if holds is None:
        yield If(condition=has_total, then=(both,), otherwise=(alone,))
    else:
        yield both if holds else alone


def guarded(condition: Expr | None, body: Iterable[Stmt]) -> Sequence[Stmt]:
    """Does `body` if the condition holds, or there is none."""
    holds = True if condition is None else c.number_of(condition)
    if condition is None or holds is not None:
        return [*body] if holds else []
    return [If(condition=condition, then=(*body,), otherwise=())]


def counted(
    counter: nodes.Var, start: Expr, stop: Expr, body: Sequence[Stmt], step: int | Expr = 1
) -> Stmt:
    """``for counter in range(start, stop, step)``."""
    step = c.whole(step) if isinstance(step, int) else step
    return For(variable=counter.name, start=start, stop=stop, step=step, body=(*body,))
