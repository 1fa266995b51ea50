"""Expressions of kernels -> the same expressions, with their tangents.

Primitives follow `rules/expressions.py`; here is what only kernels have: arrays, calls with
effects, and the order in which things happen. A tangent that is `None` is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shaderad.bodies.outputs import CheckIndex
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr
from shaderad.ir.types import BOOL, INT, UINT, is_differentiable
from shaderad.ir.walk import children, expressions, map_children
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.expressions import push_node
from shaderad.rules.pulling.pulls import Pull
from shaderad.rules.pushing.functions import Functions

Both = tuple[Expr, "Expr | None"]
"""A value and its tangent."""


class Expressions:
    """Expressions of one body."""

    def __init__(self, functions: Functions, body: Body, constants: frozenset[str]) -> None:
        self._functions = functions
        self._body = body
        self._constants = constants
        """Names without a tangent: uniforms that have none."""

    # -- values alone -----------------------------------------------------------------------

    def primal(self, e: Expr) -> Expr:
        """`e` where its tangent is of no interest; calls with effects have them once, here."""
        if not self._has_effect(e):
            return e
        if isinstance(e, nodes.Logical):
            return self._logical(e)
        if isinstance(e, nodes.Conditional):
            return self.conditional(e)[0]
        if isinstance(e, nodes.Call) and self._functions.has_effect(e.function):
            return self.call(e)[0]
        return map_children(e, self.primal)

    def fixed(self, e: Expr, assigned: str = "") -> Expr:
        """An index that is written twice; a local where it calls, or reads what changes."""
        if isinstance(e, nodes.PointerIndex):
            return map_children(e, lambda part: self.fixed(part, assigned))
        parts = list(expressions(e))
        is_moving = any(isinstance(p, nodes.Call) for p in parts) or any(
            isinstance(p, nodes.Var) and p.name == assigned for p in parts
        )
        return self._body.bound(self.primal(e), "index") if is_moving else e

    def _has_effect(self, e: Expr) -> bool:
        return any(
            isinstance(p, nodes.Call) and self._functions.has_effect(p.function)
            for p in expressions(e)
        )

    # -- values with tangents ---------------------------------------------------------------

    def both(self, e: Expr) -> Both:
        """`e` and its tangent."""
        if not is_differentiable(e.type):
            return self.primal(e), None
        if isinstance(e, nodes.Detach):
            return map_children(e, self.primal), None
        handler = _HANDLERS.get(type(e))
        return handler(self, e) if handler is not None else self._made_of_parts(e)

    def full(self, e: Expr) -> tuple[Expr, Expr]:
        """`e` and its tangent, zeros written out."""
        value, dot = self.both(e)
        return value, c.zero(value.type) if dot is None else dot

    def _made_of_parts(self, e: Expr) -> Both:
        found = [self.both(child) for child in children(e)]
        values = iter(found)
        made = map_children(e, lambda _: next(values)[0])
        dot = push_node(made, [d for _, d in found])
        if dot is None:
            return made, None
        made, dot = self._body.shared(made, dot)
        return made, dot

    def var(self, e: nodes.Var) -> Both:
        if e.name in self._constants:
            return e, None
        return e, nodes.Var(type=e.type, name=self._body.dot(e.name), span=e.span)

    def load(self, e: nodes.Load) -> Both:
        value = replace(e, indices=tuple(self.fixed(i) for i in e.indices))
        name = self._functions.dots.get(e.buffer)
        if name is None:
            return value, None
        if e.buffer in self._functions.read_together:
            check = CheckIndex(type=UINT, buffer=e.buffer, indices=value.indices, span=e.span)
            number = self._body.bound(check, f"{e.buffer}_at")
            value = replace(value, indices=(nodes.KnownNumber(type=INT, number=number),))
        return value, replace(value, buffer=name)

    # -- choices ------------------------------------------------------------------------------

    def _logical(self, e: nodes.Logical) -> Expr:
        """The right side, where it has effects, in a branch of its own."""
        result = self._body.local("holds", BOOL)
        self._body.add(nodes.Assign(name=result.name, value=self.primal(e.left), span=e.span))
        block, right = self._body.captured(lambda: self.primal(e.right))
        block = (*block, nodes.Assign(name=result.name, value=right, span=e.span))
        then, otherwise = (block, ()) if e.is_and else ((), block)
        self._body.add(nodes.If(condition=result, then=then, otherwise=otherwise, span=e.span))
        return result

    def conditional(self, e: nodes.Conditional) -> Both:
        """Expressions again where both sides are; else a branch that assigns."""
        condition = self.primal(e.condition)
        sides = [self._body.captured(lambda s=s: self.both(s)) for s in (e.if_true, e.if_false)]
        is_constant = all(dot is None for _, (_, dot) in sides)
        values = [value for _, (value, _) in sides]
        dots = [c.zero(v.type) if dot is None else dot for _, (v, dot) in sides]
        if any(block for block, _ in sides):
            return self._branches(e, condition, [
                (block, value, None if is_constant else dot)
                for (block, _), value, dot in zip(sides, values, dots, strict=True)
            ])  # fmt: skip
        if is_constant:
            return _chosen(e, condition, values), None
        condition = self._body.bound(condition, "holds")
        return _chosen(e, condition, values), _chosen(e, condition, dots)

    def _branches(
        self,
        e: nodes.Conditional,
        condition: Expr,
        sides: list[tuple[tuple[nodes.Stmt, ...], Expr, Expr | None]],
    ) -> Both:
        result = self._body.local("chosen", e.type)
        has_tangent = sides[0][2] is not None
        tangent = self._body.local("chosen_dot", e.type) if has_tangent else None
        blocks: list[tuple[nodes.Stmt, ...]] = []
        for block, value, dot in sides:
            written = [nodes.Assign(name=result.name, value=value, span=e.span)]
            if tangent is not None and dot is not None:
                written.append(nodes.Assign(name=tangent.name, value=dot, span=e.span))
            blocks.append((*block, *written))
        then, otherwise = blocks
        self._body.add(nodes.If(condition=condition, then=then, otherwise=otherwise, span=e.span))
        return result, tangent

    # -- calls --------------------------------------------------------------------------------

    def call(self, e: nodes.Call) -> Both:
        found = [self.both(a) for a in e.args]
        value = replace(e, args=tuple(primal for primal, _ in found))
        is_constant = all(dot is None for _, dot in found)
        if is_constant and not self._functions.reads_tangents(e.function):
            return value, None
        if isinstance(e.function, Pull):
            return self._moved_pull(value, e.function, found)
        return self._results(self.pushed_call(e, found))

    def pushed_call(self, e: nodes.Call, found: list[Both]) -> nodes.Call:
        """The call of the function with tangents, for arguments with theirs."""
        f = self._functions.of(e.function, _moving(found))
        return nodes.Call(type=f.result, function=f, args=_with_tangents(found), span=e.span)

    def _moved_pull(self, value: nodes.Call, f: Pull, found: list[Both]) -> Both:
        """See `rules/pulling/pulls.py`."""
        count = len(f.primal.parameters)
        pushed = self._functions.of(f.primal, _moving(found[:count]))
        args = [*_with_tangents(found[:count])]
        for bar, bar_dot in found[count:]:
            moved = c.zero(bar.type) if bar_dot is None else bar_dot
            args.append(nodes.Construct(type=pushed.result, parts=(moved, bar)))
        pulled = self._functions.derivatives.pulled(pushed, f.wanted)
        dot = nodes.Call(type=pulled.result, function=pulled, args=tuple(args), span=value.span)
        value_made, dot_made = self._body.shared(value, dot)
        return value_made, dot_made

    def _results(self, call: nodes.Call) -> Both:
        """Of a function that gives a tuple of both; of others the value alone."""
        result = self._body.bound(call, "both" if is_differentiable(call.type) else "value")
        if not is_differentiable(call.type):
            return result, None
        return c.field(result, "0"), c.field(result, "1")


def _moving(found: list[Both]) -> frozenset[int]:
    """The positions of arguments that have tangents."""
    return frozenset(k for k, (_, dot) in enumerate(found) if dot is not None)


def _with_tangents(found: list[Both]) -> tuple[Expr, ...]:
    """Arguments, then the tangents of those that have one."""
    return (*(value for value, _ in found), *(dot for _, dot in found if dot is not None))


def _chosen(e: nodes.Conditional, condition: Expr, sides: list[Expr]) -> Expr:
    if_true, if_false = sides
    return replace(e, condition=condition, if_true=if_true, if_false=if_false)


_HANDLERS: dict[type[Expr], Callable[[Expressions, Any], Both]] = {
    nodes.Var: Expressions.var,
    nodes.Load: Expressions.load,
    nodes.Conditional: Expressions.conditional,
    nodes.Call: Expressions.call,
}
