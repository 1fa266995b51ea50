"""Loops in the forward sweep, and their counterparts in the reverse sweep.

In the forward sweep each iteration saves its initial state. The reverse sweep visits the iterations
backward. It restores the state of each, recomputes the iteration, and reverses it.

If the states exceed the memory, or the iteration count is unbounded, only a few are saved at a
time. The forward sweep saves the first state. The reverse sweep recomputes from the last saved
state before an iteration, and saves further states at the positions of Griewank and Walther's
`revolve` (ACM TOMS 26, 2000). With n states, each of C(n + r, r) iterations is recomputed at most r
times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from shaderad.bodies.loops import trip_count
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.body import Body
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import INT, LocalArray, Type, memory_of
from shaderad.ir.walk import map_children, map_statement, statements
from shaderad.rules.derivatives import CalledAdjoints
from shaderad.rules.nodes import Leap, ReverseFor

NO_RESULTS: Mapping[int, list[State]] = {}
_CHECKPOINTS = 16
"""The maximum number of states of a loop that does not save all."""


@dataclass(frozen=True, slots=True)
class State:
    """The value of one name at the start of each iteration."""

    now: nodes.Var
    """The name in the forward sweep."""
    kept: nodes.Var
    """The local array of saved values."""
    version: str
    """The name in the reverse sweep."""


class Repeated:
    """One loop in both sweeps."""

    def __init__(
        self,
        body: Body,
        adjoints: CalledAdjoints,
        names: Mapping[str, str],
        loop: nodes.For | nodes.While,
        before: Mapping[str, str],
        memory: int,
    ) -> None:
        """Args:
        body: Receives both sweeps.
        adjoints: The adjoints of the kernel's functions.
        names: The versions of names inside the loop.
        loop: The primal loop.
        before: The versions of names before the loop, which its bounds read.
        memory: Bytes for its states.
        """
        self._body = body
        self._adjoints = adjoints
        self._names = names
        self._loop = loop
        self._before = before
        self._count = self._bound()
        """The maximum iteration count; 0 if unbounded."""
        self._memory = memory
        self._kept_count = 0
        """The number of saved states."""
        self._free_bytes = 0
        """Bytes that remain for results of inner loops."""
        self._trips: nodes.Var | None = None
        """The local that counts iterations, if the loop has no such variable."""
        self._back: nodes.Var | None = None
        """The variable of the reverse loop."""
        self._again: nodes.Var | None = None
        """The variable of a recomputed ``for`` loop, if that is not the iteration number."""
        self._start: Expr = c.whole(0)
        self._step: Expr = c.whole(1)
        self._last: Expr | None = None
        """The number of the last iteration, if it follows from the bounds."""

    def _bound(self) -> int:
        counts = [self._loop.limit]
        if isinstance(self._loop, nodes.For):
            counts.append(trip_count(self._loop))
        bounds = [n for n in counts if n is not None]
        return max(min(bounds), 1) if bounds else 0

    # -- saved states -------------------------------------------------------------------------

    def states(self, carried: Mapping[str, Type], versions: Mapping[str, str]) -> list[State]:
        """Allocates the states of the names that iterations carry."""
        state_bytes = sum(map(memory_of, carried.values()))
        most = self._memory // max(state_bytes, 1)
        fits = 0 < self._count <= most
        self._kept_count = self._count if fits else max(min(most, _CHECKPOINTS), 1)
        self._free_bytes = self._memory - self._kept_count * state_bytes
        return [
            self._state(name, t, self._kept_count, versions[name]) for name, t in carried.items()
        ]

    def _state(self, name: str, t: Type, count: int, version: str) -> State:
        now = nodes.Var(type=t, name=self._names[name])
        return State(now, self._body.local(f"{name}_kept", LocalArray(t, count)), version)

    @property
    def keeps_all(self) -> bool:
        return self._kept_count == self._count

    def keep(self, state: State) -> Stmt:
        """Saves a state in the forward sweep: in each iteration, or before the first."""
        return self._kept(state, state.now, self._position() if self.keeps_all else c.whole(0))

    def restore(self, state: State) -> Stmt:
        return self._restored(state, self._reverse_variable())

    def results(
        self, names: Mapping[str, str], type_of: Callable[[str], Type]
    ) -> list[State] | None:
        """Allocates memory for the values of names after a statement of each iteration.

        `names` maps them to their versions in the reverse sweep. `None` if the memory is exhausted,
        or the loop is unbounded.
        """
        size = sum(memory_of(type_of(name)) for name in names) * self._count
        if not self._count or size > self._free_bytes:
            return None
        self._free_bytes -= size
        return [
            self._state(name, type_of(name), self._count, version)
            for name, version in names.items()
        ]

    def _kept(self, state: State, value: Expr, number: Expr) -> Stmt:
        step = nodes.ElementStep(index=_index_in_range(number))
        return nodes.Assign(name=state.kept.name, path=(step,), value=value, span=self._loop.span)

    def _restored(self, state: State, number: Expr) -> Stmt:
        value = nodes.Element(type=state.now.type, value=state.kept, index=_index_in_range(number))
        return nodes.Assign(name=state.version, value=value, span=self._loop.span)

    def _position(self) -> Expr:
        """The number of the current iteration in the forward sweep."""
        s = self._loop
        if isinstance(s, nodes.For) and self._counts_plainly():
            return nodes.Var(type=INT, name=s.variable)
        return self._counter()

    def _counter(self) -> nodes.Var:
        if self._trips is None:
            self._trips = self._body.local("trips", INT)
        return self._trips

    def _reverse_variable(self) -> nodes.Var:
        if self._back is None:
            self._back = self._body.local("back", INT)
        return self._back

    # -- the two loops ------------------------------------------------------------------------

    def start(self) -> None:
        """Evaluates the bounds that the reverse loop needs, before the loop runs."""
        if isinstance(self._loop, nodes.For):
            self._start = self._bounded("first", self._loop.start)
            self._step = self._bounded("stride", self._loop.step)
        self._last = self._last_of_bounds()
        if self._last is None:
            self._counter()

    def restart(self, variable: str) -> str:
        """The version of the loop's `variable` in the reverse sweep."""
        local = self._body.local(variable, INT)
        if self._counts_plainly():
            self._back = local
        else:
            self._again = local
        return local.name

    def _counts_plainly(self) -> bool:
        """True if the loop variable is the iteration number."""
        s = self._loop
        return isinstance(s, nodes.For) and c.number_of(s.start) == 0 and c.number_of(s.step) == 1

    def _bounded(self, stem: str, e: Expr) -> Expr:
        """The value of a bound before the loop, which may assign its operands."""
        value = self._renamed(e, self._before)
        if isinstance(value, nodes.Var | nodes.Const):
            return value
        return self._body.named(stem, value, self._loop.span)

    def forward(
        self, keeping: tuple[Stmt, ...], results: Mapping[int, list[State]] = NO_RESULTS
    ) -> tuple[Stmt, ...]:
        """The loop in the forward sweep, with a count of its iterations.

        Each iteration starts with `keeping`; `results` maps the position of a statement in the
        body to values that are saved after it.
        """
        s = self._loop
        body = tuple(
            new
            for k, t in enumerate(s.body)
            for new in (*self._forward(t, self._names), *map(self.keep, results.get(k, ())))
        )
        start: list[Stmt] = []
        body = (*keeping, *body)
        if self._trips is not None:
            more = nodes.Apply(type=INT, op=ops.ADD, args=(self._trips, c.whole(1)))
            start = [nodes.Assign(name=self._trips.name, value=c.whole(0), span=s.span)]
            body = (*body, nodes.Assign(name=self._trips.name, value=more, span=s.span))
        loop = replace(s, exits=tuple(self._names.get(n, n) for n in s.exits), body=body)
        if isinstance(loop, nodes.While):
            loop = replace(loop, condition=self._renamed(loop.condition, self._names))
        else:
            bounds = (loop.start, loop.stop, loop.step)
            first, stop, step = (self._renamed(e, self._before) for e in bounds)
            loop = replace(loop, start=first, stop=stop, step=step, is_unrolled=False)
        return (*start, loop)

    def _last_of_bounds(self) -> Expr | None:
        """The number of the last iteration, negative if none runs; `None` if bounds do not say."""
        s = self._loop
        if isinstance(s, nodes.While) or s.exits:
            return None
        count, limit = trip_count(s), s.limit
        if count is not None:
            return c.whole((count if limit is None else min(count, limit)) - 1)
        if c.number_of(s.step) != 1:
            return None
        number = self._bounded("stop", s.stop)
        if c.number_of(self._start) != 0:
            number = c.apply(ops.SUB, number, self._start)
        if limit is not None:
            most = c.whole(limit)
            less = c.conditional(c.apply(ops.LT, number, most), number, most)
            number = replace(less, span=s.span)
        return c.apply(ops.SUB, number, c.whole(1))

    def backward(self, body: tuple[Stmt, ...]) -> Stmt:
        """The reverse loop over `body`, which counts down."""
        s = self._loop
        back = self._reverse_variable()
        last = self._last or c.apply(ops.SUB, self._counter(), c.whole(1))
        if self._again is not None:
            again = nodes.Assign(name=self._again.name, value=self._value_at(back), span=s.span)
            body = (again, *body)
        return ReverseFor(
            variable=back.name, start=last, stop=c.whole(-1), step=c.whole(-1), body=body,
            span=s.span, limit=self._count or None,
        )  # fmt: skip

    def _value_at(self, number: Expr) -> Expr:
        """The loop variable in the iteration `number`."""
        if self._counts_plainly():
            return number
        return c.apply(ops.ADD, self._start, c.apply(ops.MUL, number, self._step))

    def reached(
        self, states: list[State], versions: Mapping[str, str]
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Statements before the reverse loop, and those that recompute the state of an iteration.

        `versions` maps names that the loop assigns to their versions in the reverse sweep.
        """
        s, body = self._loop, self._body
        back = self._reverse_variable()
        top = body.local("top", INT)
        kept_iterations = body.local("kept_at", LocalArray(INT, self._kept_count))
        position, following = body.local("position", INT), body.local("following", INT)

        def assign(name: nodes.Var, value: Expr, path: tuple[nodes.Step, ...] = ()) -> Stmt:
            return nodes.Assign(name=name.name, path=path, value=value, span=s.span)

        def set_following() -> Stmt:
            count = c.apply(ops.SUB, c.apply(ops.ADD, back, c.whole(1)), position)
            free = c.apply(ops.SUB, c.whole(self._kept_count), top)
            leap = Leap(type=INT, count=count, states=free)
            return assign(following, c.apply(ops.ADD, position, leap))

        start = [assign(top, c.whole(0)), assign(kept_iterations, c.zero(kept_iterations.type))]
        keeping: list[Stmt] = [
            assign(top, c.apply(ops.ADD, top, c.whole(1))),
            assign(kept_iterations, position, (nodes.ElementStep(index=_index_in_range(top)),)),
            *(self._kept(state, nodes.Var(type=state.now.type, name=state.version), top)
              for state in states),
            set_following(),
        ]  # fmt: skip
        is_due = c.apply(ops.EQ, position, following)
        step: list[Stmt] = []
        if isinstance(s, nodes.For):
            variable = body.local(s.variable, INT)
            step.append(assign(variable, self._value_at(position)))
            versions = {**versions, s.variable: variable.name}
        step += [
            *(new for t in s.body for new in self._forward(t, versions)),
            assign(position, c.apply(ops.ADD, position, c.whole(1))),
            nodes.If(condition=is_due, then=tuple(keeping), otherwise=(), span=s.span),
        ]
        is_before = c.apply(ops.LT, position, back)
        newest = nodes.Element(type=INT, value=kept_iterations, index=_index_in_range(top))
        is_used = c.apply(ops.EQ, newest, back)
        less = assign(top, c.apply(ops.SUB, top, c.whole(1)))
        return start, [
            assign(position, newest),
            *(self._restored(state, top) for state in states),
            set_following(),
            nodes.While(condition=is_before, body=tuple(step), limit=None, span=s.span),
            nodes.If(condition=is_used, then=(less,), otherwise=(), span=s.span),
        ]

    # -- names --------------------------------------------------------------------------------

    def _forward(self, s: Stmt, names: Mapping[str, str]) -> tuple[Stmt, ...]:
        """`s` under its current names, without writes to arrays and prints."""
        if isinstance(s, nodes.Store | nodes.Accumulate | nodes.Print):
            return ()
        new = map_statement(
            s,
            lambda e: self._renamed(e, names),
            lambda block: tuple(u for t in block for u in self._forward(t, names)),
        )
        if isinstance(new, nodes.Assign):
            new = replace(new, name=names.get(new.name, new.name))
        if isinstance(new, nodes.For | nodes.While):
            new = replace(new, exits=tuple(names.get(n, n) for n in new.exits))
        return (replace(new, is_unrolled=False) if isinstance(new, nodes.For) else new,)

    def _renamed(self, e: Expr, names: Mapping[str, str]) -> Expr:
        new = map_children(e, lambda part: self._renamed(part, names))
        if isinstance(new, nodes.Var):
            return replace(new, name=names.get(new.name, new.name))
        if isinstance(new, nodes.Call):
            return replace(new, function=self._adjoints.primal(new.function))
        return new


def _index_in_range(number: Expr) -> Expr:
    """The number of an iteration as an index that is in range."""
    return nodes.KnownNumber(type=INT, number=number)


def assigned_names(body: Iterable[Stmt]) -> list[str]:
    """The names that a body assigns, in order, without loop variables."""
    return list(dict.fromkeys(s.name for s in statements(body) if isinstance(s, nodes.Assign)))
