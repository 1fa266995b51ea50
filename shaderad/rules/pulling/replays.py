"""The iteration that a loop runs again on its way back -> the same without its inner loops.

What a loop inside of it, or a call of a function with loops, came to is kept beside the states,
where there is room: the way back then finds it, and runs only what it goes back over.
"""

from __future__ import annotations

from collections.abc import Iterator

from shaderad.bodies.dead_code import without_dead
from shaderad.bodies.liveness import live_before
from shaderad.ir import nodes
from shaderad.ir.nodes import Stmt
from shaderad.ir.walk import has_loops, writes
from shaderad.rules.body import Body
from shaderad.rules.local_arrays import holds_array
from shaderad.rules.pulling.loops import Repeated, State, assigned_names
from shaderad.rules.pulling.names import Names


class Replay:
    """One iteration, whose statements are noted while they are written."""

    def __init__(self, body: Body, names: Names) -> None:
        self._body = body
        self._names = names
        self._parts: list[tuple[int, dict[str, str]]] = []
        """After each statement of the loop: how many were written, and its names by version."""
        self.kept: dict[int, list[State]] = {}
        """By the position of a statement of the loop: what is kept of its results."""

    def note(self, s: Stmt) -> None:
        """Says that `s` has been written."""
        names = (n for n in assigned_names((s,)) if not self._names.is_array(n))
        versions = {self._names.versions[n]: n for n in names}
        self._parts.append((len(self._body.statements), versions))

    def shortened(
        self, again: tuple[Stmt, ...], back: tuple[Stmt, ...], run: Repeated
    ) -> tuple[Stmt, ...]:
        """`again`, which `back` follows, with results in place of what is slow to run."""
        out: list[Stmt] = []
        after = frozenset(self._names.bars.values())
        after |= live_before((*again, *back), after)
        # States that inner loops would be brought back to are often of no use to anyone.
        live = live_before(without_dead(back, after), frozenset())
        for position, part, versions in self._from_last(again):
            written: set[str] = set()
            for s in reversed(part):
                needed = writes((s,)) & live
                found = None
                if _is_slow(s) and needed <= versions.keys() - written:
                    found = run.results(
                        {versions[v]: v for v in sorted(needed)}, self._names.type_of
                    )
                if found is not None:
                    self.kept.setdefault(position, []).extend(found)
                made = (s,) if found is None else tuple(map(run.restore, found))
                out += reversed(made)
                live = live_before(made, live)
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
    """Whether a statement is a loop, or calls what has one."""
    if isinstance(s, nodes.For | nodes.While):
        return True
    if not isinstance(s, nodes.Assign) or s.path or holds_array(s.value.type):
        return False
    if not isinstance(s.value, nodes.Call):
        return False
    return has_loops(s.value.function)
