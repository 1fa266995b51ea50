"""Moves reverse statements into the branch that alone gives them a cotangent.

In ``t = march(ray)`` before ``if t < far: y = shade(t)``, the cotangent of `t` is 0 unless the
branch runs, so the reverse of `march` follows the reverse of `shade`, in the branch. Invariant: the
reverse of a statement still runs after that of each later statement that assigns one of its names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from shaderad.ir import nodes
from shaderad.ir.nodes import Stmt
from shaderad.ir.walk import (
    Block,
    called,
    children,
    expressions,
    has_own_backward,
    reads,
    statements,
    touched_buffers,
)
from shaderad.rules.pulling.loops import assigned_names
from shaderad.rules.pulling.names import VersionedNames, floats_in


class Sinking:
    """Orders the reverse statements of one body."""

    def __init__(self, body: Block, names: VersionedNames, seeds: frozenset[str]) -> None:
        """Args:
        body: The whole body.
        names: Its names.
        seeds: Written arrays that have cotangents.
        """
        self._names = names
        self._arrays = names.wanted | seeds
        self._readers = _readers(body)

    def reverse_of(self, body: Block, backs: list[Block], carried: frozenset[str]) -> Block:
        """The reverse of a block.

        Args:
            body: Its statements.
            backs: The reverse of each.
            carried: Names that enclosing loops carry into their next iteration.
        """
        backs = list(backs)
        for position, s in reversed(list(enumerate(body))):
            match s, backs[position]:
                case nodes.If(), (nodes.If() as back,):
                    then = back.then + self._sunk(s.then, body[:position], backs, carried)
                    otherwise = self._sunk(s.otherwise, body[:position], backs, carried)
                    otherwise = back.otherwise + otherwise
                    backs[position] = (replace(back, then=then, otherwise=otherwise),)
                case _:
                    pass
        return tuple(s for back in reversed(backs) for s in back)

    def _sunk(
        self, branch: Block, before: Block, backs: list[Block], carried: frozenset[str]
    ) -> Block:
        """The reverse, taken out of `backs`, of the statements that only `branch` depends on."""
        readers = _readers(branch)
        sunk: Block = ()
        passed: set[str] = set()
        for position, s in reversed(list(enumerate(before))):
            own = _readers((s,))
            names = assigned_names((s,))
            is_sunk = (
                passed.isdisjoint((*names, *reads((s,))))
                and all(self._is_local(n, readers[n] + own[n], carried) for n in names)
                and self._is_linear(s)
            )
            if is_sunk:
                readers += own
                sunk += backs[position]
                backs[position] = ()
            else:
                passed.update(names)
        return sunk

    def _is_local(self, name: str, reader_count: int, carried: frozenset[str]) -> bool:
        """True if the whole cotangent of `name` comes from `reader_count` statements."""
        if self._names.is_array(name):
            return False
        return not self._names.is_active(name) or (
            reader_count == self._readers[name] and name not in carried | self._names.boundary
        )

    def _is_linear(self, s: Stmt) -> bool:
        """True if the reverse of `s` does nothing where its cotangents are 0.

        Additions to gradients of arrays would do nothing either, but they stay outside of branches,
        where waves can sum them.
        """
        functions = list(called((s,)))
        buffers = (*touched_buffers((s,)), *(b for f in functions for b in f.buffers))
        return self._arrays.isdisjoint(buffers) and not any(map(has_own_backward, functions))


def _readers(body: Block) -> Counter[str]:
    """The number of statements that read each name as a value into which a derivative may flow."""
    return Counter(name for s in statements(body) for name in _floats_read(s))


def _floats_read(s: Stmt) -> set[str]:
    values: Iterable[nodes.Expr] = children(s)
    if isinstance(s, nodes.If | nodes.For | nodes.While | nodes.Assert | nodes.Print):
        # Conditions and bounds have no derivative, but functions that they call may write arrays.
        values = [e for value in values for e in expressions(value) if isinstance(e, nodes.Call)]
    return {name for value in values for name in floats_in(value)}
