"""Loops -> functions with derivatives of their own (shaders/loops.slang).

A loop that is not unrolled becomes a `LoopFunction`: the state it carries, the values it reads
from outside, its condition and one step. The statement that is left runs it. Nested loops nest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import isqrt

from shaderad.bodies.liveness import live_before, live_in_loop, names_in
from shaderad.bodies.trip_counts import trip_count
from shaderad.ir import ops
from shaderad.ir.nodes import Apply, Assign, Const, Expr, For, If, Stmt, Var, While
from shaderad.ir.types import INT, Tuple, Type, byte_count, is_differentiable
from shaderad.ir.walk import path_value, statements, writes

# Words of state that the backward derivative keeps in full; beyond, checkpoints and recompute.
KEPT_WORDS = 256


class Keeping(Enum):
    """How the backward derivative of a loop gets the states back."""

    ALL = "all"
    CHECKPOINTS = "checkpoints"
    NOTHING = "nothing"
    """Floats are only summed, or none is carried."""
    UNBOUNDED = "unbounded"
    """No limit is known: the loop can be run, not differentiated in reverse."""


@dataclass(frozen=True, kw_only=True)
class LoopFunction:
    """One outlined loop."""

    name: str
    state: tuple[tuple[str, Type], ...]
    captured: tuple[tuple[str, Type], ...]
    loop: For | While
    body: tuple[Stmt, ...]
    """The step, loops inside already outlined."""
    keeping: Keeping
    limit: int | None
    """Most iterations, where known."""
    carries_floats: bool

    @property
    def may_overrun(self) -> bool:
        """Whether the loop may ask for more iterations than the user's limit."""
        known = trip_count(self.loop) if isinstance(self.loop, For) else None
        limit = self.loop.limit
        return limit is not None and (known is None or known > limit)

    @property
    def segments(self) -> tuple[int, int]:
        """Count and length of checkpoint segments, both near the square root of the limit."""
        limit = self.limit or 1
        length = isqrt(max(limit - 1, 0)) + 1
        return (-(-limit // length), length)


@dataclass(frozen=True, kw_only=True)
class RunLoop(Stmt):
    """Runs an outlined loop on the current values of its state and captured names."""

    function: LoopFunction


@dataclass
class Outliner:
    """Outlines the loops of one function; `loops` lists them, inner ones first."""

    stem: str
    types: Mapping[str, Type]
    loops: list[LoopFunction]

    def block(self, body: tuple[Stmt, ...], live: frozenset[str]) -> tuple[Stmt, ...]:
        """`body` with its loops replaced; `live` are the names read after it."""
        out: list[Stmt] = []
        for position, statement in enumerate(body):
            after = live_before(body[position + 1 :], live)
            out.append(self._statement(statement, after))
        return tuple(out)

    def _statement(self, s: Stmt, after: frozenset[str]) -> Stmt:
        if isinstance(s, If):
            return replace(
                s, then=self.block(s.then, after), otherwise=self.block(s.otherwise, after)
            )
        if isinstance(s, For | While):
            needed = live_in_loop(s, after)
            if isinstance(s, For) and s.is_unrolled:
                return replace(s, body=self.block(s.body, needed))
            return RunLoop(function=self._outline(s, needed), span=s.span)
        return s

    def _outline(self, loop: For | While, needed: frozenset[str]) -> LoopFunction:
        written = writes(loop.body)
        asked = names_in([loop.condition]) if isinstance(loop, While) else set[str]()
        own = {loop.variable} if isinstance(loop, For) else set[str]()
        read = live_before(loop.body, frozenset()) | asked
        state = tuple((n, self.types[n]) for n in sorted(written & needed, key=self._order))
        outside = sorted(read - written - own, key=self._order)
        body = self.block(loop.body, needed)
        number = len(self.loops) + 1
        limit = _limit(loop)
        floats = [n for n, t in state if is_differentiable(t)]
        keeping = _keeping(loop, state, floats, limit)
        function = LoopFunction(
            name=f"{self.stem}_loop_{number}",
            state=state,
            captured=tuple((n, self.types[n]) for n in outside),
            loop=loop,
            body=body,
            keeping=keeping,
            limit=limit,
            carries_floats=bool(floats),
        )
        self.loops.append(function)
        return function

    def _order(self, name: str) -> int:
        return list(self.types).index(name)


def _limit(loop: For | While) -> int | None:
    known = trip_count(loop) if isinstance(loop, For) else None
    limits = [n for n in (known, loop.limit) if n is not None]
    return min(limits) if limits else None


def _keeping(
    loop: For | While, state: tuple[tuple[str, Type], ...], floats: list[str], limit: int | None
) -> Keeping:
    asked = names_in([loop.condition]) if isinstance(loop, While) else set[str]()
    if all(name not in asked and only_sums(loop.body, name) for name in floats):
        return Keeping.NOTHING
    if limit is None:
        return Keeping.UNBOUNDED
    words = sum(_words(t) for _, t in state)
    return Keeping.ALL if limit * words <= KEPT_WORDS else Keeping.CHECKPOINTS


def _words(t: Type) -> int:
    """Words of a value that a loop keeps; tuples have no layout, but parts that have one."""
    if isinstance(t, Tuple):
        return sum(map(_words, t.elements))
    return -(-byte_count(t) // 4)


def only_sums(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether `body` touches `name` in no other way than ``name<path> = name<path> + e``."""
    for s in statements(body):
        if isinstance(s, Assign) and s.name == name:
            added = _added(s)
            if added is None or name in names_in([added]) or name in _path_names(s):
                return False
        elif name in _own_names(s):
            return False
    return True


def _own_names(s: Stmt) -> set[str]:
    if isinstance(s, If | While):
        return names_in([s.condition])
    if isinstance(s, For):
        return names_in([s.start, s.stop, s.step])
    return names_in([s])


def _path_names(s: Assign) -> set[str]:
    return names_in([replace(s, value=Const(type=INT, value=0))])


def _added(s: Assign) -> Expr | None:
    value = s.value
    if not isinstance(value, Apply) or value.op not in (ops.ADD, ops.SUB):
        return None
    first, second = value.args
    place = _place(s, first)
    if place is not None and first == place:
        return second
    return first if value.op is ops.ADD and second == _place(s, second) else None


def _place(s: Assign, side: Expr) -> Expr | None:
    root = side
    while not isinstance(root, Var):
        inner = getattr(root, "value", None)
        if not isinstance(inner, Expr):
            return None
        root = inner
    return path_value(Var(type=root.type, name=s.name), s.path)
