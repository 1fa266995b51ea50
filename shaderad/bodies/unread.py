"""A kernel -> the kernel without Out arrays that nobody reads.

An array is left out if the kernel only stores to it, in its own body. Errors that only the indices
and values of these stores would report are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Kernel, Stmt
from shaderad.ir.types import Access
from shaderad.ir.walk import Block, all_expressions, called, has_effect, statements


@lru_cache(maxsize=256)
def without_unread(kernel: Kernel, unread: frozenset[str]) -> Kernel:
    """`kernel` without the arrays `unread`, but for those that it needs."""
    dropped = unread - {*_needed(kernel)}
    if not dropped or not kernel.has_body:
        return kernel
    buffers = tuple(b for b in kernel.buffers if b.name not in dropped)
    return replace(kernel, buffers=buffers, body=_without(kernel.body, dropped))


def _needed(kernel: Kernel) -> Iterator[str]:
    """The arrays that `kernel` uses for more than storing elements in its body."""
    yield from (b.name for b in kernel.buffers if b.access is not Access.OUT)
    for e in all_expressions(kernel.body):
        if isinstance(e, nodes.Load | nodes.Length):
            yield e.buffer
    for f in called(kernel.body):
        yield from f.buffers
    for s in statements(kernel.body):
        if isinstance(s, nodes.Store) and any(map(has_effect, _operands(s))):
            yield s.buffer


def _operands(s: nodes.Store) -> tuple[Expr, ...]:
    return (*s.indices, s.value)


def _without(body: Block, dropped: frozenset[str]) -> Block:
    return tuple(_stripped(s, dropped) for s in body if not _is_dropped(s, dropped))


def _is_dropped(s: Stmt, dropped: frozenset[str]) -> bool:
    return isinstance(s, nodes.Store) and s.buffer in dropped


def _stripped(s: Stmt, dropped: frozenset[str]) -> Stmt:
    if isinstance(s, nodes.If):
        then, otherwise = _without(s.then, dropped), _without(s.otherwise, dropped)
        return replace(s, then=then, otherwise=otherwise)
    if isinstance(s, nodes.For | nodes.While):
        return replace(s, body=_without(s.body, dropped))
    return s
