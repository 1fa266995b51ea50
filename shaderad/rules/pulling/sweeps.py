"""Statements without jumps -> the same statements, forward, and those that go back over them.

Forward, a value that a later statement overwrites goes on under a name of its own, so the way back
finds all values that partial derivatives ask for. Local arrays are places: they are written where
they are, and what a write replaced is put back on the way. Back, a name has one cotangent, which is
added to; a statement that assigns the name takes it, and leaves what its own operands get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from shaderad.bodies.liveness import live_before
from shaderad.bodies.outputs import AlreadyRead, CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import (
    BOOL,
    INT,
    UINT,
    VOID,
    Type,
    Void,
    is_differentiable,
    memory_of,
)
from shaderad.ir.walk import expressions, map_children, path_value, statements
from shaderad.rules import composing as c
from shaderad.rules.body import Body, is_cheap
from shaderad.rules.expressions import in_order, operands
from shaderad.rules.local_arrays import holds_array
from shaderad.rules.pulling.activity import Activity, moving_parts, reached_from, reads_wanted
from shaderad.rules.pulling.cotangents import parts_of
from shaderad.rules.pulling.expressions import Additions, Target, target_of
from shaderad.rules.pulling.functions import Functions
from shaderad.rules.pulling.loops import Repeated, assigned_names
from shaderad.rules.pulling.names import Names
from shaderad.rules.pulling.nodes import Adjoint, Cotangent, Split
from shaderad.rules.pulling.pulls import Pull
from shaderad.rules.pulling.replays import Replay
from shaderad.rules.pulling.sharing import Shared
from shaderad.rules.pulling.sums import add_to, add_to_gradient, reached


class Sweeps:
    """Both sweeps over one body."""

    def __init__(
        self,
        functions: Functions,
        body: Body,
        types: Mapping[str, Type],
        activity: Activity,
        given: Iterable[str],
        bars: Mapping[str, str],
        memory: int,
        result_bar: Expr | None = None,
        result: nodes.Var | None = None,
    ) -> None:
        """Args:
        functions: Those of the kernel.
        body: Where the forward sweep goes.
        types: Of every name.
        activity: What carries derivatives.
        given: Names that have values before the body.
        bars: The cotangents of some names: parameters of the adjoint.
        memory: Bytes for the states of a loop.
        result_bar: The cotangent of what the body returns.
        result: A name for what it returns.
        """
        self._functions = functions
        self._body = body
        self._names = Names(body, types, activity, given, bars)
        self._result_bar, self._result = result_bar, result
        self._loops = 0
        """How many loops are around what is being written."""
        self._tape: list[tuple[Stmt, ...]] = []
        self._memory = memory
        self.kept: dict[str, nodes.Span] = {}
        """The names that keep what loops passed through, and the lines that want them."""
        self.splits: dict[Function, Split] = {}
        """By the first part: the adjoints in two parts that were called."""
        self._loads: dict[str, nodes.Load] = {}
        """The reads that names stand for: their cotangents go to the gradients of arrays."""
        self._elements: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        """Elements that were read, in the block that is being written."""
        self._numbers: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        """Elements whose indices were checked, in the block that is being written."""

    @property
    def bars(self) -> dict[str, str]:
        """By name: that of its cotangent."""
        return self._names.bars

    def run(self, body: tuple[Stmt, ...], results: Mapping[str, str] = MappingProxyType({})) -> int:
        """Adds the forward sweep, then the way back; gives where that starts.

        Args:
            body: All statements.
            results: By name: where its value goes when the forward sweep has ended.
        """
        back = self.block(body, {})
        for name, place in results.items():
            value = nodes.Var(type=self._names.type_of(name), name=self._names.read(name))
            self._body.add(nodes.Assign(name=place, value=value))
        start = len(self._body.statements)
        self._body.statements += back
        return start

    def block(
        self,
        body: tuple[Stmt, ...],
        targets: Mapping[str, str],
        note: Callable[[Stmt], None] = lambda s: None,
    ) -> tuple[Stmt, ...]:
        """Writes the forward sweep and gives the way back.

        Args:
            body: A block.
            targets: By name: the version that holds its value after the block.
            note: Called with each statement of it when it has been written.
        """
        outer, self._tape = self._tape, []
        known = self._numbers, self._elements
        self._numbers, self._elements = dict(self._numbers), dict(self._elements)
        last = {n: k for k, s in enumerate(body) for n in assigned_names((s,)) if n in targets}
        for position, s in enumerate(body):
            self._body.span = s.span
            own = {n: t for n, t in targets.items() if last.get(n) == position}
            _WRITE[type(s)](self, s, own)
            note(s)
        back = tuple(s for part in reversed(self._tape) for s in part)
        self._tape = outer
        self._numbers, self._elements = known
        return back

    # -- expressions before they are pulled ---------------------------------------------------

    def _value(self, e: Expr) -> Expr:
        """`e` with today's names; calls, choices and reads with derivatives stand by themselves."""
        order = in_order(e)
        moves = moving_parts(order, self._names.varies, self._names.wanted)
        moves = reached_from(e, moves) | self._effects(order, moves)
        made: dict[int, Expr] = {}
        stack = [(e, False)]
        while stack:
            node, is_ready = stack.pop()
            if id(node) in made:
                continue
            if isinstance(node, nodes.Conditional) and id(node) in moves:
                made[id(node)] = self._choice(node)
            elif is_ready:
                new = map_children(node, lambda child: made[id(child)])
                made[id(node)] = self._apart(self._names.renamed(new), is_moving=id(node) in moves)
            else:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(operands(node))]
        return made[id(e)]

    def _effects(self, order: list[Expr], moves: set[int]) -> set[int]:
        """The parts that lead to a call that writes what has cotangents, and what it moves with."""
        found: set[int] = set()
        for e in order:
            if isinstance(e, nodes.Call) and self._functions.has_cotangents(e.function):
                found.add(id(e))
                found = found.union(*(reached_from(a, moves) for a in e.args))
            elif any(id(part) in found for part in operands(e)):
                found.add(id(e))
        return found

    def _apart(self, e: Expr, *, is_moving: bool) -> Expr:
        if isinstance(e, AlreadyRead):
            check = CheckIndex(type=UINT, buffer=e.buffer, indices=e.indices, span=e.span)
            self._body.add(nodes.Evaluate(call=check, span=e.span))
            return e.value
        if isinstance(e, nodes.Call) and is_moving:
            result = self._names.local("value", e.type)
            self._call(e, result.name)
            return result
        if isinstance(e, nodes.Load) and is_moving:
            return self._loaded(e)
        return e

    def _loaded(self, e: nodes.Load) -> Expr:
        """An element under a name, which is read once."""
        key = (e.buffer, e.indices)
        known = self._elements.get(key)
        if known is not None and self._names.are_settled(e.indices):
            return known
        at = replace(e, indices=(self._number(e.buffer, e.indices, e.span),))
        name = self._names.local(e.buffer, e.type)
        self._body.add(nodes.Assign(name=name.name, value=at, span=self._body.span))
        self._elements[key] = name
        self._loads[name.name] = at
        return name

    def _number(self, buffer: str, indices: tuple[Expr, ...], span: nodes.Span) -> Expr:
        """The number of an element, which is asked and checked once."""
        key = (buffer, indices)
        if key not in self._numbers or not self._names.are_settled(indices):
            check = CheckIndex(type=UINT, buffer=buffer, indices=indices, span=span)
            name = self._body.bound(check, f"{buffer}_at")
            is_inside = isinstance(indices[0], InRange)
            self._numbers[key] = nodes.KnownNumber(type=INT, number=name, is_inside=is_inside)
        return self._numbers[key]

    def _choice(self, e: nodes.Conditional) -> Expr:
        """Each side in a branch: what is not chosen has no derivative."""
        result = self._names.local("chosen", e.type)
        then, otherwise = (
            (nodes.Assign(name=result.name, value=side, span=e.span),)
            for side in (e.if_true, e.if_false)
        )
        choice = nodes.If(condition=e.condition, then=then, otherwise=otherwise, span=e.span)
        self._branch(choice, {result.name: result.name})
        return result

    # -- assignments --------------------------------------------------------------------------

    def assign(self, s: nodes.Assign, targets: Mapping[str, str]) -> None:
        path = self._path(s.path)
        if isinstance(s.value, nodes.Call) and not path and self._names.moves(s.value):
            args = tuple(self._value(a) for a in s.value.args)
            before = self._replaced(s.name, ())
            version = self._start(s.name, (), targets)
            self._call(replace(s.value, args=args), version)
            self._names.versions[s.name] = version
            self._put_back(before)
            return
        value = self._value(s.value)
        before = self._replaced(s.name, path)
        version = self._start(s.name, path, targets)
        self._assigned(version, path, value, s.span)
        self._names.versions[s.name] = version
        self._put_back(before)

    def _path(self, path: tuple[nodes.Step, ...]) -> tuple[nodes.Step, ...]:
        return tuple(
            nodes.ElementStep(index=self._body.bound(self._names.now(step.index), "index"))
            if isinstance(step, nodes.ElementStep)
            else step
            for step in path
        )

    def _start(self, name: str, path: tuple[nodes.Step, ...], targets: Mapping[str, str]) -> str:
        """The version that a write goes to; where only a part is written, with the rest in it."""
        current = self._names.versions.get(name)
        if holds_array(self._names.type_of(name)):
            return current or self._names.new_version(name, targets)
        version = self._names.new_version(name, targets)
        if path and current is not None and current != version:
            t = self._names.type_of(name)
            value = nodes.Var(type=t, name=current)
            self._body.add(nodes.Assign(name=version, value=value, span=self._body.span))
        return version

    def _replaced(self, name: str, path: tuple[nodes.Step, ...]) -> Stmt | None:
        """What puts back what a write to a place replaces."""
        if not holds_array(self._names.type_of(name)) or name not in self._names.versions:
            return None
        place = path_value(
            nodes.Var(type=self._names.type_of(name), name=self._names.versions[name]), path
        )
        assert place is not None
        old = self._body.local(f"{name}_old", place.type)
        self._body.add(nodes.Assign(name=old.name, value=place, span=self._body.span))
        return nodes.Assign(
            name=self._names.versions[name], path=path, value=old, span=self._body.span
        )

    def _put_back(self, before: Stmt | None) -> None:
        if before is not None:
            self._tape.append((before,))

    def _assigned(
        self, version: str, path: tuple[nodes.Step, ...], value: Expr, span: nodes.Span
    ) -> None:
        """``version<path> = value``, and its way back."""
        is_pulled = self._names.is_active(version) and is_differentiable(value.type)
        found: Additions = []
        taken: Expr | None = None
        if is_pulled:
            place = path_value(self._names.bar(version), path)
            assert place is not None
            found, taken = self._taken(version, path, value, place)

        def write(value: Expr) -> None:
            self._body.add(nodes.Assign(name=version, path=path, value=value, span=span))

        is_whole = not path and not holds_array(value.type)
        name = nodes.Var(type=value.type, name=version) if is_whole else None
        parts = [bar for _, bar in found] + [i for target, _ in found for i in _indices(target)]
        values = self._forward((value,), parts, lambda made: write(made[0]), name)
        if is_pulled:
            self._back(values, lambda back: self._give(version, path, found, taken, back))

    def _taken(
        self, version: str, path: tuple[nodes.Step, ...], value: Expr, place: Expr
    ) -> tuple[Additions, Expr | None]:
        """What the cotangent of a write adds; with the name that it takes, where it must be kept
        because the value was made of what is written.
        """
        base = self._names.base_of(version)
        found = self._names.additions(value, place)
        own = [t for t, _ in found if self._names.base_of(t.name) == base]
        is_at_index = any(isinstance(step, nodes.ElementStep) for step in path)
        if (own or is_at_index) and not (path == () and all(t.path == () for t in own)):
            taken = self._body.local(f"{base}_taken", place.type)
            return self._names.additions(value, taken), taken
        return found, None

    def _give(
        self,
        version: str,
        path: tuple[nodes.Step, ...],
        found: Additions,
        taken: Expr | None,
        back: Callable[[Expr], Expr],
    ) -> None:
        bar = self._names.bar(version)
        cleared = nodes.Assign(name=bar.name, path=path, value=c.zero(reached(bar, path).type))
        if isinstance(taken, nodes.Var):
            self._body.add(nodes.Assign(name=taken.name, value=reached(bar, path)))
            self._body.add(cleared)
            for target, value in found:
                self._add(target, back(value), back)
            return
        base = self._names.base_of(version)
        own = None
        for target, value in found:
            if self._names.base_of(target.name) == base:
                own = back(value)
            else:
                self._add(target, back(value), back)
        if own is None:
            self._body.add(cleared)
        elif own != bar:
            self._body.add(nodes.Assign(name=bar.name, value=own))

    # -- what both sweeps share ---------------------------------------------------------------

    def _forward(
        self,
        values: tuple[Expr, ...],
        later: Iterable[Expr],
        write: Callable[[list[Expr]], None],
        name: nodes.Var | None = None,
    ) -> Shared:
        """Writes `values`; what `later` needs of them gets names."""
        later = list(later)
        shared = Shared((*values, *later))
        order = {id(node): node for v in values for node in in_order(v)}
        for node in order.values():
            if name is not None and node is values[0]:
                continue
            shared.bind(node, self._body)
        made = [shared.made.get(id(v)) or shared.rebuilt(v) for v in values]
        write(made)
        if name is not None:
            shared.made[id(values[0])] = made[0] if is_cheap(made[0]) else name
        return shared

    def _back(self, shared: Shared, write: Callable[[Callable[[Expr], Expr]], None]) -> None:
        """Captures what `write` adds, as a part of the way back."""
        chunk, _ = self._body.captured(lambda: write(lambda e: shared.of(e, self._body)))
        self._tape.append(chunk)

    def _add(self, target: Target, value: Expr, back: Callable[[Expr], Expr]) -> None:
        """Adds a cotangent where it belongs."""
        path = tuple(
            nodes.ElementStep(index=back(step.index))
            if isinstance(step, nodes.ElementStep)
            else step
            for step in target.path
        )
        load = self._loads.get(target.name)
        if load is not None:
            add_to_gradient(self._body, load, path, value)
        else:
            add_to(self._body, self._names.bar(target.name), path, value)

    # -- calls --------------------------------------------------------------------------------

    def _call(self, e: nodes.Call, version: str) -> None:
        """``version = f(args)``, and its way back; `version` is empty where `f` has no result."""
        is_pulled = self._names.is_active(version) or self._functions.has_cotangents(e.function)
        if is_pulled and isinstance(e.function, Pull):
            self._call_of_pull(e, e.function, version)
            return
        call = replace(e, function=self._functions.primal(e.function))

        def write(args: list[Expr]) -> None:
            if version:
                value = replace(call, args=tuple(args))
                self._body.add(nodes.Assign(name=version, value=value, span=e.span))

        if not is_pulled:
            self._forward(e.args, (), write)
            return
        bars, after = self._argument_bars(e)
        later = [*e.args, *(bar for _, bar in after)]
        later += [index for target, _ in after for index in _indices(target)]
        split = self._split(e, version, frozenset(bars))
        if split is None:
            adjoint, saved = self._functions.adjoint(e.function, frozenset(bars)), []
            shared = self._forward(e.args, later, write)
        else:
            adjoint = split.adjoint
            saved = [self._body.local(p.name, p.type) for p in split.saved]
            self.kept.update({name.name: e.span for name in saved})
            shared = self._forward(
                e.args, later, lambda args: self._run_keeping(split, args, version, saved, e.span)
            )
        self._back(
            shared, lambda back: self._call_back(e, adjoint, saved, version, bars, after, back)
        )

    def _split(self, e: nodes.Call, version: str, bars: frozenset[int]) -> Split | None:
        """The adjoint of a call that need not run the function again, if there is room.

        In a loop the iteration runs again anyway, and what it came to is kept: see `Replay`.
        """
        if self._loops or not version or not is_differentiable(e.type) or holds_array(e.type):
            return None
        split = self._functions.split(e.function, bars)
        size = 0 if split is None else sum(memory_of(p.type) for p in split.saved)
        return split if size <= self._memory else None

    def _run_keeping(
        self,
        split: Split,
        args: list[Expr],
        version: str,
        saved: list[nodes.Var],
        span: nodes.Span,
    ) -> None:
        """``f_keeping(args, version, saved)``."""
        self.splits[split.keeping] = split
        result = nodes.Var(type=split.keeping.parameters[len(args)].type, name=version)
        args = [*args, result, *saved]
        call = nodes.Call(type=VOID, function=split.keeping, args=tuple(args), span=span)
        self._body.add(nodes.Evaluate(call=call, span=span))

    def _call_of_pull(self, e: nodes.Call, f: Pull, version: str) -> None:
        """``version = f_pull(x, y_bar)``, and its way back: see `rules/pulling/pulls.py`."""
        pushed = self._functions.derivatives.pushed(f.primal, f.wanted)
        count = len(f.primal.parameters)
        x, y_bar = e.args[:count], e.args[count:]
        bars, after = self._argument_bars(replace(e, function=pushed, args=x))
        moved = [self._names.local("moved", b.type) for b in y_bar if self._names.moves(b)]
        for bar, place in zip(y_bar, moved, strict=bool(moved)):
            after += self._names.additions(bar, place)
        later = [*e.args, *(bar for _, bar in after)]
        later += [index for target, _ in after for index in _indices(target)]
        shared = self._forward(e.args, later, lambda args: self._body.add(
            nodes.Assign(name=version, value=replace(e, args=tuple(args)), span=e.span)
        ))  # fmt: skip

        def give(back: Callable[[Expr], Expr]) -> None:
            bar = self._names.bar(version)
            z = self._body.local(f"{version}_taken", bar.type)
            self._body.add(nodes.Assign(name=z.name, value=bar))
            self._clear(bar)
            dots = (c.field(z, str(k)) for k in range(len(f.wanted)))
            args = (*(back(a) for a in x), *dots)
            for place in moved:
                both = nodes.Call(type=pushed.result, function=pushed, args=args, span=e.span)
                self._body.add(nodes.Assign(name=place.name, value=c.field(both, "1")))
            if bars or reads_wanted(pushed, self._functions.wanted):
                seed = [
                    nodes.Construct(type=pushed.result, parts=(c.zero(b.type), back(b)))
                    for b in y_bar
                ]
                adjoint = self._functions.adjoint(pushed, frozenset(bars))
                self._adjoint_call(adjoint, (*args, *seed), bars, e.span)
            for target, value in after:
                self._add(target, back(value), back)

        self._back(shared, give)

    def _adjoint_call(
        self,
        adjoint: Adjoint,
        given: tuple[Expr, ...],
        bars: dict[int, nodes.Var],
        span: nodes.Span,
    ) -> None:
        """Calls an adjoint, which adds to `bars`."""
        known = set(self._names.bars.values())
        for bar in bars.values():
            if bar.name not in known:
                self._clear(bar)
        args = (*given, *(bars[k] for k in sorted(bars)))
        call = nodes.Call(type=VOID, function=adjoint, args=args, span=span)
        self._body.add(nodes.Evaluate(call=call, span=span))

    def _argument_bars(self, e: nodes.Call) -> tuple[dict[int, nodes.Var], Additions]:
        """What takes the cotangent of each argument that has one: its name's, where it is a name.

        Others go through a local; what that adds, then, comes second.
        """
        bars: dict[int, nodes.Var] = {}
        after: Additions = []
        for k, arg in enumerate(e.args):
            if not self._names.moves(arg):
                continue
            target = target_of(arg)
            is_name = target is not None and not target.path and target.name not in self._loads
            own = self._names.bar(target.name) if target is not None and is_name else None
            if own is not None and own not in bars.values():
                bars[k] = own
            else:
                stem = f"{e.function.parameters[k].name}_bar"
                bars[k] = self._body.local(stem, arg.type)
                after += self._names.additions(arg, bars[k])
        return bars, after

    def _call_back(
        self,
        e: nodes.Call,
        adjoint: Adjoint,
        saved: list[nodes.Var],
        version: str,
        bars: dict[int, nodes.Var],
        after: Additions,
        back: Callable[[Expr], Expr],
    ) -> None:
        """Calls the adjoint, which takes the cotangent of the result."""
        args = [*(back(a) for a in e.args), *saved]
        given: Expr | None = None
        if version and is_differentiable(e.type):
            given = self._names.bar(version)
            is_argument = given in bars.values()
            if is_argument:
                taken = self._body.local("taken", given.type)
                self._body.add(nodes.Assign(name=taken.name, value=given))
                self._clear(given)
                given = taken
            args.append(given)
        self._adjoint_call(adjoint, tuple(args), bars, e.span)
        if given is not None and given == self._names.bar(version):
            self._clear(self._names.bar(version))
        for target, value in after:
            self._add(target, back(value), back)

    def _clear(self, bar: nodes.Var) -> None:
        self._body.add(nodes.Assign(name=bar.name, value=c.zero(bar.type)))

    def evaluate(self, s: nodes.Evaluate, _: Mapping[str, str]) -> None:
        call = s.call
        if not isinstance(call, nodes.Call):
            self._body.add(replace(s, call=self._names.now(call)))
            return
        args = tuple(self._value(a) for a in call.args)
        made = replace(call, args=args)
        if not isinstance(call.type, Void):
            self._call(made, self._names.local("unused", call.type).name)
        elif self._functions.has_cotangents(call.function):
            self._call(made, "")

    # -- writes to arrays ---------------------------------------------------------------------

    def store(self, s: nodes.Store | nodes.Accumulate, _: Mapping[str, str]) -> None:
        """Nothing is written again; the cotangent is read where it was."""
        self._stored(s, s.value, "")
        if isinstance(s, nodes.Accumulate) and s.tangent is not None:
            self._stored(s, s.tangent, s.tangent_buffer)

    def _stored(self, s: nodes.Store | nodes.Accumulate, stored: Expr, of: str) -> None:
        if not is_differentiable(stored.type) or s.buffer not in self._functions.seeds:
            return
        value = self._value(stored)
        if not self._names.moves(value):
            return
        index = self._number(s.buffer, tuple(self._names.now(i) for i in s.indices), s.span)
        place = Cotangent(
            type=value.type,
            buffer=s.buffer,
            indices=(index,),
            path=self._path(s.path),
            write_number=self._write_number(s),
            of=of,
            span=s.span,
        )
        held = self._body.local("cotangent", value.type)
        found = self._names.additions(value, held)
        parts = [b for _, b in found] + [i for t, _ in found for i in _indices(t)]
        shared = self._forward((value,), parts, lambda made: None)

        def give(back: Callable[[Expr], Expr]) -> None:
            self._body.add(nodes.Assign(name=held.name, value=parts_of(place), span=s.span))
            for target, part in found:
                self._add(target, back(part), back)

        self._back(shared, give)

    def _write_number(self, s: nodes.Store | nodes.Accumulate) -> Expr | None:
        if not isinstance(s, NumberedAccumulate):
            return None
        return self._body.bound(self._names.now(s.number), "write")

    # -- control flow -------------------------------------------------------------------------

    def branch(self, s: nodes.If, targets: Mapping[str, str]) -> None:
        self._branch(s, targets)

    def _branch(self, s: nodes.If, targets: Mapping[str, str]) -> None:
        condition = self._value(s.condition)
        if not isinstance(condition, nodes.Var | nodes.Const):
            name = self._body.local("holds", BOOL)
            self._body.add(nodes.Assign(name=name.name, value=condition, span=s.span))
            condition = name
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
                self._body.add(nodes.Assign(name=joined[name], value=value, span=s.span))
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
        """The loop again, keeping what each iteration started from; back, each runs once more."""
        written = assigned_names((s,))
        before = self._enter_loop(s, written, targets)
        after = dict(self._names.versions)
        run = Repeated(self._body, self._functions, after, s, before, self._memory)
        if not self._has_derivative(s):
            self._body.statements += run.forward(())
            return
        run.start()
        for name in written:
            if not self._names.is_array(name):
                self._names.versions[name] = self._names.fresh_version(name)
        if isinstance(s, nodes.For):
            self._names.versions[s.variable] = run.restart(s.variable)
        # A place must come back to what it held before the loop, whoever reads it in there.
        exposed = live_before(s.body, frozenset())
        carried = [n for n in written if n in exposed or self._names.is_array(n)]
        versions = dict(self._names.versions)
        states = run.states({n: self._names.type_of(n) for n in carried}, versions)
        self.kept.update({state.kept.name: s.span for state in states})
        replay = Replay(self._body, self._names)
        self._loops += 1
        again, back = self._body.captured(lambda: self.block(s.body, {}, replay.note))
        self._loops -= 1
        self._names.versions = after
        keeping = tuple(map(run.keep, states))
        if run.keeps_all or not states:
            again = replay.shortened(again, back, run)
            results = [r for found in replay.kept.values() for r in found]
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
        """Gives what the loop writes versions of its own; returns those of before."""
        self._read_before(s)
        before = dict(self._names.versions)
        for name in written:
            if self._names.is_array(name) and name in before:
                continue
            version = self._names.new_version(name, targets)
            self._names.versions[name] = version
            if name in before and before[name] != version:
                start = nodes.Var(type=self._names.type_of(name), name=before[name])
                self._body.add(nodes.Assign(name=version, value=start, span=s.span))
        return before

    def _read_before(self, s: Stmt) -> None:
        """Keeps the values that names have before `s` and that it reads, 0 where they have none."""
        for name in live_before((s,), frozenset()):
            self._names.read(name)

    def _has_derivative(self, s: Stmt) -> bool:
        """Whether anything in a loop has a way back."""
        if any(name in self._names.active for name in assigned_names((s,))):
            return True
        for t in statements((s,)):
            if isinstance(t, nodes.Store | nodes.Accumulate) and t.buffer in self._functions.seeds:
                return True
            for e in expressions(t):
                if isinstance(e, nodes.Call) and self._functions.has_cotangents(e.function):
                    return True
        return False

    def give(self, s: nodes.Return, _: Mapping[str, str]) -> None:
        """The result itself is nobody's; its cotangent starts the way back."""
        if s.value is None or self._result_bar is None:
            return
        value = self._value(s.value)
        found = self._names.additions(value, self._result_bar)
        parts = [b for _, b in found] + [i for t, _ in found for i in _indices(t)]
        name = self._result

        def write(made: list[Expr]) -> None:
            if name is not None:
                self._body.add(nodes.Assign(name=name.name, value=made[0], span=s.span))

        shared = self._forward((value,), parts, write)

        def add_all(back: Callable[[Expr], Expr]) -> None:
            for target, bar in found:
                self._add(target, back(bar), back)

        self._back(shared, add_all)

    def hold(self, s: nodes.Assert, _: Mapping[str, str]) -> None:
        self._body.add(replace(s, condition=self._names.now(s.condition)))


def _indices(target: Target) -> list[Expr]:
    return [step.index for step in target.path if isinstance(step, nodes.ElementStep)]


def _is_always_bound(s: nodes.If, name: str) -> bool:
    """Whether both sides assign the whole name, whatever they do inside."""
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
    nodes.Return: Sweeps.give,
    nodes.Assert: Sweeps.hold,
}
