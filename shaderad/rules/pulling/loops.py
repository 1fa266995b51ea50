"""Loops of the forward sweep, and those that go back over their iterations.

Forward, each iteration keeps what it starts from. Back, the iterations come last first: each starts
from what was kept, runs once more, and is gone back over.

Where there is no room for all states, or nobody knows how many there are, a few are kept. Forward,
that is the first. Back, an iteration is reached from the last state before it, and keeps others on
the way, where Griewank and Walther's `revolve` (ACM TOMS 26, 2000) would: with n of them, each
iteration of C(n + r, r) runs at most r times more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from shaderad.bodies.trip_counts import trip_count
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import INT, LocalArray, Type, memory_of
from shaderad.ir.walk import blocks, map_children, statements
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.pulling.functions import Functions
from shaderad.rules.pulling.nodes import Leap, ReverseFor

NO_RESULTS: Mapping[int, list[State]] = {}
_CHECKPOINTS = 16
"""The most states of a loop that does not keep all."""


@dataclass(frozen=True, slots=True)
class State:
    """What an iteration starts from, of one name."""

    now: nodes.Var
    """Forward."""
    kept: nodes.Var
    version: str
    """Back."""


class Repeated:
    """One loop, forward and back."""

    def __init__(
        self,
        body: Body,
        functions: Functions,
        names: Mapping[str, str],
        loop: nodes.For | nodes.While,
        before: Mapping[str, str],
        memory: int,
    ) -> None:
        """Args:
        body: Where the sweeps go.
        functions: Those of the kernel.
        names: The versions that the loop assigns and reads.
        loop: As it was written.
        before: The versions that its bounds read.
        memory: Bytes for its states.
        """
        self._body = body
        self._functions = functions
        self._names = names
        self._loop = loop
        self._before = before
        self._count = self._bound()
        """Iterations at most; 0 where nobody knows."""
        self._memory = memory
        self._kept_count = 0
        """States that are kept."""
        self._room = 0
        """Bytes for what else is kept of each iteration."""
        self._trips = ""
        """Counts iterations where nothing else does."""
        self._variable = ""
        """Of the loop back."""
        self._again = ""
        """The variable of a `for` loop, as it was in the iteration that is gone back over."""
        self._start: Expr = c.whole(0)
        self._step: Expr = c.whole(1)
        self._last: Expr | None = None
        """The number of the last iteration, where the bounds say it."""

    def _bound(self) -> int:
        counts = [self._loop.limit]
        if isinstance(self._loop, nodes.For):
            counts.append(trip_count(self._loop))
        known = [n for n in counts if n is not None]
        return max(min(known), 1) if known else 0

    # -- what is kept -------------------------------------------------------------------------

    def states(self, carried: Mapping[str, Type], versions: Mapping[str, str]) -> list[State]:
        """The names that iterations carry, with a place for each state that is kept of them."""
        most = self._memory // max(sum(map(memory_of, carried.values())), 1)
        fits = 0 < self._count <= most
        self._kept_count = self._count if fits else max(min(most, _CHECKPOINTS), 1)
        self._room = self._memory - self._kept_count * sum(map(memory_of, carried.values()))
        return [
            State(
                nodes.Var(type=t, name=self._names[name]),
                self._body.local(f"{name}_kept", LocalArray(t, self._kept_count)),
                versions[name],
            )
            for name, t in carried.items()
        ]

    @property
    def keeps_all(self) -> bool:
        return self._kept_count == self._count

    def keep(self, state: State) -> Stmt:
        """Forward, in each iteration, or before the first."""
        return self._kept(state, state.now, self._position() if self.keeps_all else c.whole(0))

    def restore(self, state: State) -> Stmt:
        return self._restored(state, nodes.Var(type=INT, name=self._reverse_variable()))

    def results(
        self, names: Mapping[str, str], type_of: Callable[[str], Type]
    ) -> list[State] | None:
        """A place for what names hold after a statement of each iteration.

        `None` without room, which loops of unknown count never have.

        Args:
            names: By name: the version of it on the way back.
            type_of: Of names.
        """
        size = sum(memory_of(type_of(name)) for name in names) * self._count
        if not self._count or size > self._room:
            return None
        self._room -= size
        return [
            State(
                nodes.Var(type=type_of(name), name=self._names[name]),
                self._body.local(f"{name}_kept", LocalArray(type_of(name), self._count)),
                version,
            )
            for name, version in names.items()
        ]

    def _kept(self, state: State, value: Expr, number: Expr) -> Stmt:
        step = nodes.ElementStep(index=self._at(number))
        return nodes.Assign(name=state.kept.name, path=(step,), value=value, span=self._loop.span)

    def _restored(self, state: State, number: Expr) -> Stmt:
        value = nodes.Element(type=state.now.type, value=state.kept, index=self._at(number))
        return nodes.Assign(name=state.version, value=value, span=self._loop.span)

    def _at(self, number: Expr) -> Expr:
        return nodes.KnownNumber(type=INT, number=number)

    def _position(self) -> Expr:
        """The number of the iteration that starts."""
        s = self._loop
        if isinstance(s, nodes.For) and self._counts_plainly():
            return nodes.Var(type=INT, name=s.variable)
        return self._counter()

    def _counter(self) -> nodes.Var:
        if not self._trips:
            self._trips = self._body.local("trips", INT).name
        return nodes.Var(type=INT, name=self._trips)

    def _reverse_variable(self) -> str:
        if not self._variable:
            self._variable = self._body.local("back", INT).name
        return self._variable

    # -- the two loops ------------------------------------------------------------------------

    def start(self) -> None:
        """Takes what the loop back must know before the loop runs."""
        if isinstance(self._loop, nodes.For):
            self._start = self._bounded("first", self._loop.start)
            self._step = self._bounded("stride", self._loop.step)
        self._last = self._last_of_bounds()
        if self._last is None:
            self._counter()

    def restart(self, variable: str) -> str:
        """The name on the way back of `variable`, which counts the loop."""
        if self._counts_plainly():
            self._variable = self._body.local(variable, INT).name
            return self._variable
        self._again = self._body.local(variable, INT).name
        return self._again

    def _counts_plainly(self) -> bool:
        """Whether the variable of the loop is the number of its iteration."""
        s = self._loop
        return isinstance(s, nodes.For) and c.number_of(s.start) == 0 and c.number_of(s.step) == 1

    def _bounded(self, stem: str, e: Expr) -> Expr:
        """What a bound is before the loop, which may change what it is made of."""
        value = self._renamed(e, self._before)
        if isinstance(value, nodes.Var | nodes.Const):
            return value
        name = self._body.local(stem, e.type)
        self._body.add(nodes.Assign(name=name.name, value=value, span=self._loop.span))
        return name

    def forward(
        self, keeping: tuple[Stmt, ...], results: Mapping[int, list[State]] = NO_RESULTS
    ) -> tuple[Stmt, ...]:
        """The loop as it ran, and how often it did.

        Args:
            keeping: What starts each iteration.
            results: By the position of a statement in the body: what is kept after it.
        """
        s = self._loop
        body = tuple(
            new
            for k, t in enumerate(s.body)
            for new in (*self._forward(t, self._names), *map(self.keep, results.get(k, ())))
        )
        counting: tuple[Stmt, ...] = ()
        start: tuple[Stmt, ...] = ()
        if self._trips:
            counter = self._counter()
            start = (nodes.Assign(name=counter.name, value=c.whole(0), span=s.span),)
            more = nodes.Apply(type=INT, op=ops.ADD, args=(counter, c.whole(1)))
            counting = (nodes.Assign(name=counter.name, value=more, span=s.span),)
        exits = tuple(self._names.get(n, n) for n in s.exits)
        body = (*keeping, *body, *counting)
        if isinstance(s, nodes.While):
            condition = self._renamed(s.condition, self._names)
            return (*start, replace(s, condition=condition, exits=exits, body=body))
        bounds = (self._renamed(e, self._before) for e in (s.start, s.stop, s.step))
        first, stop, step = bounds
        made = replace(
            s, start=first, stop=stop, step=step, exits=exits, body=body, is_unrolled=False
        )
        return (*start, made)

    def _last_of_bounds(self) -> Expr | None:
        """The number of the last iteration, below 0 where none runs; `None` if nothing says."""
        s = self._loop
        if isinstance(s, nodes.While) or s.exits:
            return None
        known, limit = trip_count(s), s.limit
        if known is not None:
            return c.whole((known if limit is None else min(known, limit)) - 1)
        if c.number_of(s.step) != 1:
            return None
        number = self._bounded("stop", s.stop)
        if c.number_of(self._start) != 0:
            number = c.apply(ops.SUB, number, self._start)
        if limit is not None:
            most = c.whole(limit)
            is_less = c.apply(ops.LT, number, most)
            number = nodes.Conditional(
                type=INT, condition=is_less, if_true=number, if_false=most, span=s.span
            )
        return c.apply(ops.SUB, number, c.whole(1))

    def backward(self, body: tuple[Stmt, ...]) -> Stmt:
        """The loop over `body` that counts down."""
        s = self._loop
        back = nodes.Var(type=INT, name=self._reverse_variable())
        last = self._last or c.apply(ops.SUB, self._counter(), c.whole(1))
        if isinstance(s, nodes.For) and not self._counts_plainly():
            moved = c.apply(ops.MUL, back, self._step)
            value = c.apply(ops.ADD, self._start, moved)
            body = (nodes.Assign(name=self._again, value=value, span=s.span), *body)
        return ReverseFor(
            variable=back.name, start=last, stop=c.whole(-1), step=c.whole(-1), body=body,
            span=s.span, limit=self._count or None,
        )  # fmt: skip

    def reached(
        self, states: list[State], versions: Mapping[str, str]
    ) -> tuple[list[Stmt], list[Stmt]]:
        """What comes before the loop back, and what leads to where one of its iterations starts.

        Args:
            states: Some of which are kept.
            versions: Of the names that the loop assigns, as the way back starts from them.
        """
        s, body = self._loop, self._body
        back = nodes.Var(type=INT, name=self._reverse_variable())
        top, at = body.local("top", INT), body.local("kept_at", LocalArray(INT, self._kept_count))
        position, following = body.local("position", INT), body.local("following", INT)

        def assign(name: nodes.Var, value: Expr) -> Stmt:
            return nodes.Assign(name=name.name, value=value, span=s.span)

        def set_following() -> Stmt:
            count = c.apply(ops.SUB, c.apply(ops.ADD, back, c.whole(1)), position)
            free = c.apply(ops.SUB, c.whole(self._kept_count), top)
            leap = Leap(type=INT, count=count, states=free)
            return assign(following, c.apply(ops.ADD, position, leap))

        place = nodes.ElementStep(index=self._at(top))
        start = [
            assign(top, c.whole(0)),
            nodes.Assign(name=at.name, value=nodes.Zero(type=at.type), span=s.span),
        ]
        keeping: list[Stmt] = [
            assign(top, c.apply(ops.ADD, top, c.whole(1))),
            nodes.Assign(name=at.name, path=(place,), value=position, span=s.span),
            *(self._kept(one, nodes.Var(type=one.now.type, name=one.version), top)
              for one in states),
            set_following(),
        ]  # fmt: skip
        is_due = c.apply(ops.EQ, position, following)
        step: list[Stmt] = []
        if isinstance(s, nodes.For):
            value: Expr = position
            if not self._counts_plainly():
                value = c.apply(ops.ADD, self._start, c.apply(ops.MUL, position, self._step))
            variable = body.local(s.variable, INT)
            step.append(assign(variable, value))
            versions = {**versions, s.variable: variable.name}
        step += [
            *(new for t in s.body for new in self._forward(t, versions)),
            assign(position, c.apply(ops.ADD, position, c.whole(1))),
            nodes.If(condition=is_due, then=tuple(keeping), otherwise=(), span=s.span),
        ]
        is_before = c.apply(ops.LT, position, back)
        newest = nodes.Element(type=INT, value=at, index=self._at(top))
        is_used = c.apply(ops.EQ, newest, back)
        less = assign(top, c.apply(ops.SUB, top, c.whole(1)))
        return start, [
            assign(position, newest),
            *(self._restored(one, top) for one in states),
            set_following(),
            nodes.While(condition=is_before, body=tuple(step), limit=None, span=s.span),
            nodes.If(condition=is_used, then=(less,), otherwise=(), span=s.span),
        ]

    # -- names --------------------------------------------------------------------------------

    def _forward(self, s: Stmt, names: Mapping[str, str]) -> tuple[Stmt, ...]:
        """A statement under the names it has, without what it writes to arrays."""
        if isinstance(s, nodes.Store | nodes.Accumulate | nodes.Print):
            return ()
        inner = {
            name: tuple(new for t in getattr(s, name) for new in self._forward(t, names))
            for name in ("then", "otherwise", "body")
            if blocks(s) and hasattr(s, name)
        }
        bare = replace(s, **dict.fromkeys(inner, ())) if inner else s
        made = map_children(bare, lambda e: self._renamed(e, names))
        if isinstance(made, nodes.Assign):
            made = replace(made, name=names.get(made.name, made.name))
        if isinstance(made, nodes.For | nodes.While):
            made = replace(made, exits=tuple(names.get(n, n) for n in made.exits))
        if isinstance(made, nodes.For):
            made = replace(made, is_unrolled=False)
        return (replace(made, **inner) if inner else made,)

    def _renamed(self, e: Expr, names: Mapping[str, str]) -> Expr:
        made = map_children(e, lambda part: self._renamed(part, names))
        if isinstance(made, nodes.Var):
            return replace(made, name=names.get(made.name, made.name))
        if isinstance(made, nodes.Call):
            return replace(made, function=self._functions.primal(made.function))
        return made


def assigned_names(body: Iterable[Stmt]) -> list[str]:
    """The names that a body assigns, in order, without variables of loops."""
    found = {s.name: None for s in statements(body) if isinstance(s, nodes.Assign)}
    return list(found)
