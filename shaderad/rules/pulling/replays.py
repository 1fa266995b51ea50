"""Removes slow statements from the iteration that a reverse loop recomputes.

The results of an inner loop, or of a costly call, are saved beside the states if memory permits.
The reverse sweep then restores them and recomputes only what it reverses.
"""

from __future__ import annotations

from collections.abc import Iterator

from shaderad.bodies.liveness import live_before, without_dead
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body
from shaderad.ir.costs import is_costly
from shaderad.ir.nodes import Stmt
from shaderad.ir.walk import writes
from shaderad.rules.pulling.loops import Repeated, State, assigned_names
from shaderad.rules.pulling.names import VersionedNames


class Replay:
    """One recomputed iteration, whose statements are recorded while they are emitted."""

    def __init__(self, body: Body, names: VersionedNames) -> None:
        self._body = body
        self._names = names
        self._parts: list[tuple[int, dict[str, str]]] = []
        """For each statement of the loop: the number of statements emitted up to its end, and the
        names that it assigns, by version."""
        self.kept: dict[int, list[State]] = {}
        """Position of a statement of the loop -> its saved results."""

    def note(self, s: Stmt) -> None:
        """Records that `s` has been emitted."""
        names = (n for n in assigned_names((s,)) if not self._names.is_array(n))
        versions = {self._names.versions[n]: n for n in names}
        self._parts.append((len(self._body.statements), versions))

    def shortened(
        self, again: tuple[Stmt, ...], back: tuple[Stmt, ...], run: Repeated
    ) -> tuple[Stmt, ...]:
        """`again`, which precedes `back`, with saved results in place of slow statements."""
        out: list[Stmt] = []
        after = frozenset(self._names.bars.values())
        after |= live_before((*again, *back), after)
        # Without dead code, because the restored states of inner loops are often unused.
        live = live_before(without_dead(back, after), frozenset())
        for position, part, versions in self._from_last(again):
            written: set[str] = set()
            for s in reversed(part):
                needed = writes((s,)) & live
                results = None
                if _is_slow(s) and needed <= versions.keys() - written:
                    results = run.results(
                        {versions[v]: v for v in sorted(needed)}, self._names.type_of
                    )
                if results is not None:
                    self.kept.setdefault(position, []).extend(results)
                new = (s,) if results is None else tuple(map(run.restore, results))
                out += reversed(new)
                live = live_before(new, live)
                written |= writes((s,))
        return tuple(reversed(out))

    def _from_last(
        self, again: tuple[Stmt, ...]
    ) -> Iterator[tuple[int, tuple[Stmt, ...], dict[str, str]]]:
        for position in reversed(range(len(self._parts))):
            start = self._parts[position - 1][0] if position else 0
            end, versions = self._parts[position]
            yield position, again[start:end], versions


def _is_slow(s: Stmt) -> bool:
    """True if `s` is a loop, or assigns the result of a costly call."""
    if isinstance(s, nodes.For | nodes.While):
        return True
    if not isinstance(s, nodes.Assign) or s.path or c.holds_array(s.value.type):
        return False
    return isinstance(s.value, nodes.Call) and is_costly(s.value.function)
