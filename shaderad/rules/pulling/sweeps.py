"""The forward and the reverse sweep over statements without jumps.

In the forward sweep each assignment defines a new version of its name, so that the reverse sweep
finds every value that partial derivatives need. Local arrays are written in place; the reverse
sweep restores each replaced value. A name has one cotangent, to which uses of the name add. The
reverse of an assignment takes that cotangent, clears it, and adds to the cotangents of operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from shaderad.bodies.liveness import live_before
from shaderad.bodies.outputs import AlreadyRead, CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import nodes
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import INT, UINT, Void, is_differentiable
from shaderad.ir.walk import all_expressions, children, map_children, map_indices, reads, statements
from shaderad.rules.expressions import active_parts
from shaderad.rules.nodes import Cotangent
from shaderad.rules.pulling.cotangents import parts_of, reached
from shaderad.rules.pulling.loops import Repeated, assigned_names
from shaderad.rules.pulling.named_calls import with_named_calls
from shaderad.rules.pulling.names import reached_from
from shaderad.rules.pulling.replays import Replay
from shaderad.rules.pulling.sinking import Sinking
from shaderad.rules.pulling.values import ValueSweeps


class Sweeps(ValueSweeps):
    """Both sweeps over the statements of one body."""

    _sinking: Sinking
    _carried: frozenset[str] = frozenset()
    """Names that the loops around the current statement carry into their next iteration."""
    _counter: str | None = None
    """The variable of the only loop around the current statement, if it takes each value once."""
    _writes: Counter[str]
    """The number of assignments with a derivative to each name."""

    def run(self, body: tuple[Stmt, ...], results: Mapping[str, str] = MappingProxyType({})) -> int:
        """Emits both sweeps and returns the position at which the reverse sweep starts.

        `results` maps names to locals that receive their values after the forward sweep.
        """
        body = with_named_calls(body, self._names)
        assigned = (s for s in statements(body) if isinstance(s, nodes.Assign))
        self._writes = Counter(s.name for s in assigned if self._names.is_active_expr(s.value))
        self._sinking = Sinking(body, self._names, self._adjoints.seeds)
        back = self.block(body, {})
        for name, out in results.items():
            value = nodes.Var(type=self._names.type_of(name), name=self._names.read(name))
            self._body.assign(out, value)
        start = len(self._body.statements)
        self._body.statements += back
        return start

    def block(
        self,
        body: tuple[Stmt, ...],
        targets: Mapping[str, str],
        note: Callable[[Stmt], None] = lambda s: None,
    ) -> tuple[Stmt, ...]:
        """Emits the forward sweep of a block and returns its reverse sweep.

        `targets` maps names to versions that must hold their values after the block; `note` is
        called with each statement after it has been emitted.
        """
        outer = self._tape
        outer_reads = self._numbers, self._elements
        self._numbers, self._elements = dict(self._numbers), dict(self._elements)
        last = {n: k for k, s in enumerate(body) for n in assigned_names((s,)) if n in targets}
        backs: list[tuple[Stmt, ...]] = []
        for position, s in enumerate(body):
            self._tape = []
            self._body.span = s.span
            own = {n: t for n, t in targets.items() if last.get(n) == position}
            _WRITE[type(s)](self, s, own)
            note(s)
            backs.append(tuple(s for part in reversed(self._tape) for s in part))
        self._tape = outer
        self._numbers, self._elements = outer_reads
        return self._sinking.reverse_of(body, backs, self._carried)

    # -- expressions before they are pulled ---------------------------------------------------

    def _value(self, e: Expr) -> Expr:
        """`e` in current versions; active calls, conditionals and loads become locals."""
        order = in_order(e)
        active = active_parts(order, self._names.varies, self._names.wanted)
        active = reached_from(e, active) | self._effects(order, active)
        new: dict[int, Expr] = {}
        stack = [(e, False)]
        while stack:
            node, is_ready = stack.pop()
            if id(node) in new:
                continue
            if isinstance(node, nodes.Conditional) and id(node) in active:
                new[id(node)] = self._choice(node)
            elif is_ready:
                renamed = self._names.renamed(map_children(node, lambda child: new[id(child)]))
                new[id(node)] = self._extracted(renamed, is_active=id(node) in active)
            else:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(children(node))]
        return new[id(e)]

    def _effects(self, order: list[Expr], active: set[int]) -> set[int]:
        """Ids of calls that write cotangents, of their active arguments, and of their users."""
        effects: set[int] = set()
        for e in order:
            if isinstance(e, nodes.Call) and self._adjoints.has_cotangents(e.function):
                effects.add(id(e))
                effects = effects.union(*(reached_from(a, active) for a in e.args))
            elif any(id(part) in effects for part in children(e)):
                effects.add(id(e))
        return effects

    def _extracted(self, e: Expr, *, is_active: bool) -> Expr:
        if isinstance(e, AlreadyRead):
            check = CheckIndex(type=UINT, buffer=e.buffer, indices=e.indices, span=e.span)
            self._body.add(nodes.Evaluate(call=check, span=e.span))
            return e.value
        if isinstance(e, nodes.Call) and is_active:
            result = self._names.local("value", e.type)
            self._call(e, result.name)
            return result
        if isinstance(e, nodes.Load) and is_active:
            return self._loaded(e)
        return e

    def _loaded(self, e: nodes.Load) -> Expr:
        """A local that holds the element; each element is loaded once."""
        key = (e.buffer, e.indices)
        if key in self._elements and self._names.are_settled(e.indices):
            return self._elements[key]
        load = replace(e, indices=(self._number(e.buffer, e.indices, e.span),))
        name = self._names.local(e.buffer, e.type)
        self._body.assign(name.name, load, self._body.span)
        self._elements[key] = name
        self._loads[name.name] = load
        return name

    def _number(self, buffer: str, indices: tuple[Expr, ...], span: nodes.Span) -> Expr:
        """The linear index of an element, which is computed and checked once."""
        key = (buffer, indices)
        if key not in self._numbers or not self._names.are_settled(indices):
            check = CheckIndex(type=UINT, buffer=buffer, indices=indices, span=span)
            name = self._body.bound(check, f"{buffer}_at")
            is_inside = isinstance(indices[0], InRange)
            self._numbers[key] = nodes.KnownNumber(type=INT, number=name, is_inside=is_inside)
        return self._numbers[key]

    def _choice(self, e: nodes.Conditional) -> Expr:
        """The result of an ``if`` statement with the sides as branches."""
        result = self._names.local("chosen", e.type)
        then, otherwise = (
            (nodes.Assign(name=result.name, value=side, span=e.span),)
            for side in (e.if_true, e.if_false)
        )
        choice = nodes.If(condition=e.condition, then=then, otherwise=otherwise, span=e.span)
        self.branch(choice, {result.name: result.name})
        return result

    # -- assignments --------------------------------------------------------------------------

    def assign(self, s: nodes.Assign, targets: Mapping[str, str]) -> None:
        path = self._path(s.path)
        if isinstance(s.value, nodes.Call) and not path and self._names.is_active_expr(s.value):
            call = replace(s.value, args=tuple(map(self._value, s.value.args)))
            restore = self._restore(s.name, ())
            version = self._start(s.name, (), targets)
            self._call(call, version)
        else:
            value = self._value(s.value)
            restore = self._restore(s.name, path)
            version = self._start(s.name, path, targets)
            self._assigned(version, path, value, s.span, is_taken_once=self._fills_once(s))
        self._names.versions[s.name] = version
        if restore is not None:
            self._tape.append((restore,))

    def _fills_once(self, s: nodes.Assign) -> bool:
        """True if each element of an array is assigned at most once, by `s` in a loop over them."""
        match s.path[:1]:
            case (nodes.ElementStep(index=nodes.KnownNumber(number=nodes.Var(name=index))),):
                is_own_element = index == self._counter and s.name not in reads((s,))
                is_single = self._writes[s.name] == 1 and s.name not in self._names.boundary
                return is_own_element and is_single
            case _:
                return False

    def _path(self, path: tuple[nodes.Step, ...]) -> tuple[nodes.Step, ...]:
        """`path` in current versions, with its indices bound to names."""
        return map_indices(path, lambda i: self._body.bound(self._names.now(i), "index"))

    def _start(self, name: str, path: tuple[nodes.Step, ...], targets: Mapping[str, str]) -> str:
        """The version that a write assigns; for a partial write, initialised with the old value."""
        current = self._names.versions.get(name)
        if self._names.is_array(name):
            return current or self._names.new_version(name, targets)
        version = self._names.new_version(name, targets)
        if path and current is not None and current != version:
            self._body.assign(version, self._names.current(name), self._body.span)
        return version

    def _restore(self, name: str, path: tuple[nodes.Step, ...]) -> Stmt | None:
        """Saves the part of a local array that a write replaces; returns its restoration."""
        if not self._names.is_array(name) or name not in self._names.versions:
            return None
        current = self._names.current(name)
        old = self._body.named(f"{name}_old", reached(current, path), self._body.span)
        return nodes.Assign(name=current.name, path=path, value=old, span=self._body.span)

    def evaluate(self, s: nodes.Evaluate, _: Mapping[str, str]) -> None:
        call = s.call
        if not isinstance(call, nodes.Call):
            self._body.add(replace(s, call=self._names.now(call)))
            return
        call = replace(call, args=tuple(map(self._value, call.args)))
        if not isinstance(call.type, Void):
            self._call(call, self._names.local("unused", call.type).name)
        elif self._adjoints.has_cotangents(call.function):
            self._call(call, "")

    # -- writes to arrays ---------------------------------------------------------------------

    def store(self, s: nodes.Store | nodes.Accumulate, _: Mapping[str, str]) -> None:
        """The forward sweep omits the write; the reverse sweep reads the element's cotangent."""
        self._stored(s, s.value, "")
        if isinstance(s, nodes.Accumulate) and s.tangent is not None:
            self._stored(s, s.tangent, s.tangent_buffer)

    def _stored(self, s: nodes.Store | nodes.Accumulate, stored: Expr, of: str) -> None:
        if not is_differentiable(stored.type) or s.buffer not in self._adjoints.seeds:
            return
        value = self._value(stored)
        if not self._names.is_active_expr(value):
            return
        index = self._number(s.buffer, tuple(map(self._names.now, s.indices)), s.span)
        path, number = self._path(s.path), None
        if isinstance(s, NumberedAccumulate):
            number = self._body.bound(self._names.now(s.number), "write")
        cotangent = Cotangent(type=value.type, buffer=s.buffer, indices=(index,), path=path,
                              write_number=number, of=of, span=s.span)  # fmt: skip
        bar = self._body.local("cotangent", value.type)
        read = nodes.Assign(name=bar.name, value=parts_of(cotangent), span=s.span)
        self._pulled(value, bar, lambda new: None, read)

    # -- control flow -------------------------------------------------------------------------

    def branch(self, s: nodes.If, targets: Mapping[str, str]) -> None:
        condition = self._value(s.condition)
        if not isinstance(condition, nodes.Var | nodes.Const):
            condition = self._body.named("holds", condition, s.span)
        self._read_before(s)
        for name in assigned_names((s,)):
            if self._names.is_array(name) and name not in self._names.versions:
                self._names.versions[name] = self._names.new_version(name, targets)
        before = dict(self._names.versions)
        joined: dict[str, str] = {}
        for name in assigned_names((s,)):
            if self._names.is_array(name):
                continue
            joined[name] = self._names.new_version(name, targets)
            current = before.get(name)
            if current is not None and current != joined[name] and not _is_always_bound(s, name):
                value = nodes.Var(type=self._names.type_of(name), name=current)
                self._body.assign(joined[name], value, s.span)
        sides: list[tuple[tuple[Stmt, ...], tuple[Stmt, ...]]] = []
        for block in (s.then, s.otherwise):
            self._names.versions = dict(before)
            sides.append(self._body.captured(lambda b=block: self.block(b, joined)))
        self._names.versions = {**before, **joined}
        (then, then_back), (otherwise, otherwise_back) = sides
        if then or otherwise:
            self._body.add(replace(s, condition=condition, then=then, otherwise=otherwise))
        if then_back or otherwise_back:
            back = nodes.If(
                condition=condition, then=then_back, otherwise=otherwise_back, span=s.span
            )
            self._tape.append((back,))

    def loop(self, s: nodes.For | nodes.While, targets: Mapping[str, str]) -> None:
        """The loop, which saves states in the forward sweep, and its reverse (`loops.py`)."""
        written = assigned_names((s,))
        before = self._enter_loop(s, written, targets)
        after = dict(self._names.versions)
        run = Repeated(self._body, self._adjoints, after, s, before, self._memory)
        if not self._has_derivative(s):
            self._body.statements += run.forward(())
            return
        run.start()
        for name in written:
            if not self._names.is_array(name):
                self._names.versions[name] = self._names.fresh_version(name)
        if isinstance(s, nodes.For):
            self._names.versions[s.variable] = run.restart(s.variable)
        # Local arrays are restored to their values before the loop, even if it does not read them.
        exposed = live_before(s.body, frozenset())
        carried = [n for n in written if n in exposed or self._names.is_array(n)]
        versions = dict(self._names.versions)
        states = run.states({n: self._names.type_of(n) for n in carried}, versions)
        self.kept.update({state.kept.name: s.span for state in states})
        replay = Replay(self._body, self._names)
        self._loops += 1
        outer = self._carried, self._counter
        self._carried |= exposed
        variable = s.variable if isinstance(s, nodes.For) and self._loops == 1 else None
        self._counter = None if variable in written else variable
        again, back = self._body.captured(lambda: self.block(s.body, {}, replay.note))
        self._carried, self._counter = outer
        self._loops -= 1
        self._names.versions = after
        keeping = tuple(map(run.keep, states))
        if run.keeps_all or not states:
            again = replay.shortened(again, back, run)
            results = [r for group in replay.kept.values() for r in group]
            self.kept.update({r.kept.name: s.span for r in results})
            self._body.statements += run.forward(keeping, replay.kept)
            first: list[Stmt] = []
            reached: list[Stmt] = [run.restore(state) for state in states]
        else:
            self._body.statements += [*keeping, *run.forward(())]
            first, reached = run.reached(states, versions)
        self._tape.append((*first, run.backward((*reached, *again, *back))))

    def _enter_loop(
        self, s: nodes.For | nodes.While, written: list[str], targets: Mapping[str, str]
    ) -> dict[str, str]:
        """Makes new versions of the names that the loop writes; returns the versions before it."""
        self._read_before(s)
        before = dict(self._names.versions)
        for name in written:
            if self._names.is_array(name) and name in before:
                continue
            version = self._names.new_version(name, targets)
            if name in before and before[name] != version:
                self._body.assign(version, self._names.current(name), s.span)
            self._names.versions[name] = version
        return before

    def _read_before(self, s: Stmt) -> None:
        """Marks as read the names that `s` reads before it assigns them."""
        for name in live_before((s,), frozenset()):
            self._names.read(name)

    def _has_derivative(self, s: Stmt) -> bool:
        """True if the reverse sweep of a loop is not empty."""
        writes = (t for t in statements((s,)) if isinstance(t, nodes.Store | nodes.Accumulate))
        calls = (e.function for e in all_expressions((s,)) if isinstance(e, nodes.Call))
        return (
            not self._names.active.isdisjoint(assigned_names((s,)))
            or any(t.buffer in self._adjoints.seeds for t in writes)
            or any(map(self._adjoints.has_cotangents, calls))
        )

    def result(self, s: nodes.Return, _: Mapping[str, str]) -> None:
        """The reverse sweep starts with the cotangent of the return value."""
        if s.value is not None and self._result is not None:
            name, bar = self._result
            write = partial(self._body.assign, name, span=s.span)
            self._pulled(self._value(s.value), bar, lambda new: write(new[0]))

    def check(self, s: nodes.Assert, _: Mapping[str, str]) -> None:
        self._body.add(replace(s, condition=self._names.now(s.condition)))


def _is_always_bound(s: nodes.If, name: str) -> bool:
    """True if both branches assign the whole name unconditionally."""
    return all(
        any(isinstance(t, nodes.Assign) and t.name == name and not t.path for t in block)
        for block in (s.then, s.otherwise)
    )


_WRITE: dict[type[Stmt], Callable[[Sweeps, Any, Mapping[str, str]], None]] = {
    nodes.Assign: Sweeps.assign,
    nodes.Store: Sweeps.store,
    nodes.Accumulate: Sweeps.store,
    NumberedAccumulate: Sweeps.store,
    nodes.Evaluate: Sweeps.evaluate,
    nodes.If: Sweeps.branch,
    nodes.For: Sweeps.loop,
    nodes.While: Sweeps.loop,
    nodes.Return: Sweeps.result,
    nodes.Assert: Sweeps.check,
}
