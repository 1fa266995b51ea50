"""Values in both sweeps: those of assignments, and of calls, which the reverse sweep pulls.

An expression of the forward sweep may be needed in the reverse sweep too. Parts that both sweeps
read are computed once and kept in locals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body, Shared, is_cheap
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Function, Stmt
from shaderad.ir.types import VOID, Type, is_differentiable, memory_of
from shaderad.ir.walk import indices, map_indices
from shaderad.rules.derivatives import CalledAdjoints
from shaderad.rules.nodes import Adjoint, Pull, Split
from shaderad.rules.pulling.cotangents import (
    Additions,
    Target,
    add_to,
    add_to_gradient,
    additions,
    reached,
    target_of,
)
from shaderad.rules.pulling.names import VersionedNames

Back = Callable[[Expr], Expr]
"""Rewrites an expression of the forward sweep for the reverse sweep."""


class ValueSweeps:
    """Both sweeps over the values of one body."""

    def __init__(
        self,
        adjoints: CalledAdjoints,
        body: Body,
        types: Mapping[str, Type],
        active: Iterable[str],
        initial_names: Iterable[str],
        bars: Mapping[str, str],
        memory: int,
        result: tuple[str, Expr] | None = None,
    ) -> None:
        """Args:
        adjoints: The adjoints of the kernel's functions.
        body: Receives the forward sweep.
        types: The type of each name.
        active: The names with cotangents.
        initial_names: Names that have values before the body.
        bars: Names -> names of their cotangents, for the parameters of the adjoint.
        memory: Bytes for the states of one loop.
        result: The local that receives the return value, and its cotangent.
        """
        self._adjoints = adjoints
        self._body = body
        self._names = VersionedNames(body, types, active, adjoints.wanted, initial_names, bars)
        self._result = result
        self._loops = 0
        """The nesting depth of loops around the current statement."""
        self._tape: list[tuple[Stmt, ...]] = []
        self._memory = memory
        self.kept: dict[str, nodes.Span] = {}
        """The locals that save values of loops -> the lines of the loops."""
        self.splits: dict[Function, Split] = {}
        """Splits whose parts are called, by `Split.keeping`."""
        self._loads: dict[str, nodes.Load] = {}
        """Locals that hold loaded elements; their cotangents go to the gradients of arrays."""
        self._elements: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        """Elements that the current block has loaded."""
        self._numbers: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        """Linear indices that the current block has checked."""

    @property
    def bars(self) -> dict[str, str]:
        """Names -> names of their cotangents."""
        return self._names.bars

    # -- expressions shared by both sweeps ----------------------------------------------------

    def _forward(
        self,
        values: tuple[Expr, ...],
        later: Iterable[Expr],
        write: Callable[[list[Expr]], None],
        name: nodes.Var | None = None,
    ) -> Shared:
        """Passes `values` to `write`; parts that `later` shares with them get names.

        `name` is the name that `write` gives to the first value, if any.
        """
        shared = Shared((*values, *later))
        order = {id(node): node for v in values for node in in_order(v)}
        for node in order.values():
            if name is None or node is not values[0]:
                shared.bind(node, self._body)
        new = [shared.rewritten.get(id(v)) or shared.rebuilt(v) for v in values]
        write(new)
        if name is not None:
            shared.rewritten[id(values[0])] = new[0] if is_cheap(new[0]) else name
        return shared

    def _back(self, shared: Shared, write: Callable[[Back], None]) -> None:
        """Adds the statements of `write` to the reverse sweep."""
        chunk, _ = self._body.captured(lambda: write(lambda e: shared.of(e, self._body)))
        self._tape.append(chunk)

    def _add_all(self, added: Additions, back: Back) -> None:
        for target, value in added:
            self._add(target, back(value), back)

    def _add(self, target: Target, value: Expr, back: Back) -> None:
        """Adds `value` to the cotangent of `target`, or to the gradient of its array."""
        path = map_indices(target.path, back)
        load = self._loads.get(target.name)
        if load is not None:
            add_to_gradient(self._body, load, path, value)
        else:
            add_to(self._body, self._names.bar(target.name), path, value)

    def _pulled(
        self,
        value: Expr,
        bar: Expr,
        write: Callable[[list[Expr]], None],
        before: Stmt | None = None,
    ) -> None:
        """Passes `value` to `write`, and its cotangent `bar` back, after the statement `before`."""
        added = additions(self._names, value, bar)

        def reverse(back: Back) -> None:
            if before is not None:
                self._body.add(before)
            self._add_all(added, back)

        self._back(self._forward((value,), operands_of(added), write), reverse)

    # -- assignments --------------------------------------------------------------------------

    def _assigned(
        self,
        version: str,
        path: tuple[nodes.Step, ...],
        value: Expr,
        span: nodes.Span,
        *,
        is_taken_once: bool = False,
    ) -> None:
        """``version<path> = value``, in both sweeps.

        With `is_taken_once`, the reverse sweep does not read the cotangent of the part again.
        """
        is_pulled = self._names.is_active(version) and is_differentiable(value.type)
        added: Additions = []
        taken: nodes.Var | None = None
        if is_pulled:
            base = self._names.base_of(version)
            bar = reached(self._names.bar(version), path)
            added = additions(self._names, value, bar)
            own = [t for t, _ in added if self._names.base_of(t.name) == base]
            # If `value` reads the name that is written, `bar` is copied before it is cleared.
            if (own or indices(path)) and (path or any(t.path for t in own)):
                taken = self._body.local(f"{base}_taken", bar.type)
                added = additions(self._names, value, taken)

        def write(new: list[Expr]) -> None:
            self._body.assign(version, new[0], span, path)

        is_whole = not path and not c.holds_array(value.type)
        name = nodes.Var(type=value.type, name=version) if is_whole else None
        shared = self._forward((value,), operands_of(added), write, name)
        if is_pulled:
            keeps = is_taken_once and taken is not None
            self._back(shared, lambda back: self._reverse(version, path, added, taken, back, keeps))

    def _reverse(
        self,
        version: str,
        path: tuple[nodes.Step, ...],
        added: Additions,
        taken: nodes.Var | None,
        back: Back,
        keeps_bar: bool,
    ) -> None:
        """The reverse sweep of an assignment."""
        bar = self._names.bar(version)
        part = reached(bar, path)
        if taken is not None:
            self._body.assign(taken.name, part)
            if not keeps_bar:
                self._body.assign(bar.name, c.zero(part.type), path=path)
            self._add_all(added, back)
            return
        base = self._names.base_of(version)
        own = None
        for target, value in added:
            if self._names.base_of(target.name) == base:
                own = back(value)
            else:
                self._add(target, back(value), back)
        if own is None:
            self._body.assign(bar.name, c.zero(part.type), path=path)
        elif own != bar:
            self._body.assign(bar.name, own)

    # -- calls --------------------------------------------------------------------------------

    def _call(self, e: nodes.Call, version: str) -> None:
        """``version = f(args)``, in both sweeps; `version` is empty if `f` has no result."""
        is_pulled = self._names.is_active(version) or self._adjoints.has_cotangents(e.function)
        if is_pulled and isinstance(e.function, Pull):
            self._call_of_pull(e, e.function, version)
            return
        call = replace(e, function=self._adjoints.primal(e.function))

        def write(args: list[Expr]) -> None:
            if version:
                self._body.assign(version, replace(call, args=tuple(args)), e.span)

        if not is_pulled:
            self._forward(e.args, (), write)
            return
        bars, after = self._argument_bars(e)
        later = (*e.args, *operands_of(after))
        split = self._split(e, version, frozenset(bars))
        if split is None:
            adjoint, saved = self._adjoints.adjoint(e.function, frozenset(bars)), []
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
        """The adjoint that does not recompute the function, if its saved values fit into memory.

        In a loop the iteration is recomputed anyway, and `Replay` saves the result of the call.
        """
        if self._loops or not version or not is_differentiable(e.type) or c.holds_array(e.type):
            return None
        split = self._adjoints.split(e.function, bars)
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
        """``version = f_pull(x, y_bar)``, in both sweeps: see `Pull`."""
        pushed = self._adjoints.derivatives.pushed(f.primal, f.wanted)
        count = len(f.primal.parameters)
        x, y_bar = e.args[:count], e.args[count:]
        bars, after = self._argument_bars(replace(e, function=pushed, args=x))
        y_bar_bars = [
            self._names.local("moved", b.type) for b in y_bar if self._names.is_active_expr(b)
        ]
        for bar, bar_bar in zip(y_bar, y_bar_bars, strict=bool(y_bar_bars)):
            after += additions(self._names, bar, bar_bar)
        later = (*e.args, *operands_of(after))

        def write(args: list[Expr]) -> None:
            self._body.assign(version, replace(e, args=tuple(args)), e.span)

        def reverse(back: Back) -> None:
            bar = self._names.bar(version)
            z = self._body.named(f"{version}_taken", bar)
            self._clear(bar)
            dots = (c.field(z, str(k)) for k in range(len(f.wanted)))
            args = (*(back(a) for a in x), *dots)
            for bar_bar in y_bar_bars:
                both = nodes.Call(type=pushed.result, function=pushed, args=args, span=e.span)
                self._body.assign(bar_bar.name, c.field(both, "1"))
            if bars or not self._adjoints.wanted.isdisjoint(pushed.buffers):
                seed = [
                    nodes.Construct(type=pushed.result, parts=(c.zero(b.type), back(b)))
                    for b in y_bar
                ]
                adjoint = self._adjoints.adjoint(pushed, frozenset(bars))
                self._adjoint_call(adjoint, (*args, *seed), bars, e.span)
            self._add_all(after, back)

        self._back(self._forward(e.args, later, write), reverse)

    def _adjoint_call(
        self,
        adjoint: Adjoint,
        args: tuple[Expr, ...],
        bars: dict[int, nodes.Var],
        span: nodes.Span,
    ) -> None:
        """Calls an adjoint, which adds to `bars`; those that are temporaries are cleared first."""
        own_bars = set(self._names.bars.values())
        for bar in bars.values():
            if bar.name not in own_bars:
                self._clear(bar)
        args = (*args, *(bars[k] for k in sorted(bars)))
        call = nodes.Call(type=VOID, function=adjoint, args=args, span=span)
        self._body.add(nodes.Evaluate(call=call, span=span))

    def _argument_bars(self, e: nodes.Call) -> tuple[dict[int, nodes.Var], Additions]:
        """The variables that receive the cotangents of active arguments, by position.

        For an argument that is a name, this is the cotangent of the name. Any other argument gets a
        local; the additions, returned second, pass its cotangent on.
        """
        bars: dict[int, nodes.Var] = {}
        after: Additions = []
        for k, arg in enumerate(e.args):
            if not self._names.is_active_expr(arg):
                continue
            target = target_of(arg)
            is_name = target is not None and not target.path and target.name not in self._loads
            own = self._names.bar(target.name) if target is not None and is_name else None
            if own is not None and own not in bars.values():
                bars[k] = own
            else:
                stem = f"{e.function.parameters[k].name}_bar"
                bars[k] = self._body.local(stem, arg.type)
                after += additions(self._names, arg, bars[k])
        return bars, after

    def _call_back(
        self,
        e: nodes.Call,
        adjoint: Adjoint,
        saved: list[nodes.Var],
        version: str,
        bars: dict[int, nodes.Var],
        after: Additions,
        back: Back,
    ) -> None:
        """Calls the adjoint with the cotangent of the result, and clears that cotangent."""
        args = [*(back(a) for a in e.args), *saved]
        has_bar = version and is_differentiable(e.type)
        result_bar = self._names.bar(version) if has_bar else None
        is_taken = result_bar in bars.values()
        if result_bar is not None and is_taken:
            args.append(self._body.named("taken", result_bar))
            self._clear(result_bar)
        elif result_bar is not None:
            args.append(result_bar)
        self._adjoint_call(adjoint, tuple(args), bars, e.span)
        if result_bar is not None and not is_taken:
            self._clear(result_bar)
        self._add_all(after, back)

    def _clear(self, bar: nodes.Var) -> None:
        self._body.assign(bar.name, c.zero(bar.type))


def operands_of(added: Additions) -> list[Expr]:
    """The cotangents that are added, and the indices of their targets."""
    return [bar for _, bar in added] + [i for target, _ in added for i in indices(target.path)]
