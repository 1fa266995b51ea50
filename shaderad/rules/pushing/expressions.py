"""Pushes the expressions of kernels: expression -> (value, tangent).

Primitives follow `rules/expressions.py`; this file adds array accesses, calls with side effects,
and evaluation order. `None` is a zero tangent.
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
from shaderad.rules.pushing.functions import PushedFunctions

Both = tuple[Expr, "Expr | None"]
"""A value and its tangent."""


class ExpressionPusher:
    """Pushes the expressions of one body."""

    def __init__(self, functions: PushedFunctions, body: Body, constants: frozenset[str]) -> None:
        self._functions = functions
        self._body = body
        self._constants = constants
        """Names without tangents."""

    # -- values without tangents --------------------------------------------------------------

    def primal(self, e: Expr) -> Expr:
        """`e`, whose tangent is not used; calls with side effects still update tangents."""
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
        """An index that is used twice; bound to a local if it has calls or reads `assigned`."""
        if isinstance(e, nodes.PointerIndex):
            return map_children(e, lambda part: self.fixed(part, assigned))
        may_change = any(
            isinstance(p, nodes.Call) or (isinstance(p, nodes.Var) and p.name == assigned)
            for p in expressions(e)
        )
        return self._body.bound(self.primal(e), "index") if may_change else e

    def _has_effect(self, e: Expr) -> bool:
        return any(
            isinstance(p, nodes.Call) and self._functions.has_effect(p.function)
            for p in expressions(e)
        )

    # -- values with tangents ---------------------------------------------------------------

    def both(self, e: Expr) -> Both:
        """The value of `e` and its tangent."""
        if not is_differentiable(e.type):
            return self.primal(e), None
        if isinstance(e, nodes.Detach):
            return map_children(e, self.primal), None
        handler = _HANDLERS.get(type(e))
        return handler(self, e) if handler is not None else self._made_of_parts(e)

    def full(self, e: Expr) -> tuple[Expr, Expr]:
        """The value of `e` and its tangent, with `Zero` for `None`."""
        value, dot = self.both(e)
        return value, c.zero(value.type) if dot is None else dot

    def _made_of_parts(self, e: Expr) -> Both:
        pairs = [self.both(child) for child in children(e)]
        values = iter(pairs)
        value = map_children(e, lambda _: next(values)[0])
        dot = push_node(value, [d for _, d in pairs])
        if dot is None:
            return value, None
        value, dot = self._body.shared(value, dot)
        return value, dot

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
        """A short-circuit operator as a branch, because its operands have side effects."""
        result = self._body.local("holds", BOOL)
        self._body.add(nodes.Assign(name=result.name, value=self.primal(e.left), span=e.span))
        block, right = self._body.captured(lambda: self.primal(e.right))
        block = (*block, nodes.Assign(name=result.name, value=right, span=e.span))
        then, otherwise = (block, ()) if e.is_and else ((), block)
        self._body.add(nodes.If(condition=result, then=then, otherwise=otherwise, span=e.span))
        return result

    def conditional(self, e: nodes.Conditional) -> Both:
        """Conditionals of value and tangent; an ``if`` statement if a side emits statements."""
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
        args = [self.both(a) for a in e.args]
        value = replace(e, args=tuple(primal for primal, _ in args))
        is_constant = all(dot is None for _, dot in args)
        if is_constant and not self._functions.reads_tangents(e.function):
            return value, None
        if isinstance(e.function, Pull):
            return self._push_of_pull(value, e.function, args)
        call = self.pushed_call(e, args)
        if not is_differentiable(call.type):
            return self._body.bound(call, "value"), None
        result = self._body.bound(call, "both")
        return c.field(result, "0"), c.field(result, "1")

    def pushed_call(self, e: nodes.Call, args: list[Both]) -> nodes.Call:
        """The call of the pushed function with `args` and their tangents."""
        f = self._functions.of(e.function, _active(args))
        return nodes.Call(type=f.result, function=f, args=_with_tangents(args), span=e.span)

    def _push_of_pull(self, value: nodes.Call, f: Pull, args: list[Both]) -> Both:
        """The tangent of a pulled function (`rules/pulling/pulls.py`)."""
        count = len(f.primal.parameters)
        pushed = self._functions.of(f.primal, _active(args[:count]))
        pulled_args = [*_with_tangents(args[:count])]
        for bar, bar_dot in args[count:]:
            parts = (c.zero(bar.type) if bar_dot is None else bar_dot, bar)
            pulled_args.append(nodes.Construct(type=pushed.result, parts=parts))
        pulled = self._functions.derivatives.pulled(pushed, f.wanted)
        dot = nodes.Call(
            type=pulled.result, function=pulled, args=tuple(pulled_args), span=value.span
        )
        new_value, new_dot = self._body.shared(value, dot)
        return new_value, new_dot


def _active(args: list[Both]) -> frozenset[int]:
    """The positions of arguments with tangents."""
    return frozenset(k for k, (_, dot) in enumerate(args) if dot is not None)


def _with_tangents(args: list[Both]) -> tuple[Expr, ...]:
    """The arguments, then their tangents that are not zero."""
    return (*(value for value, _ in args), *(dot for _, dot in args if dot is not None))


def _chosen(e: nodes.Conditional, condition: Expr, sides: list[Expr]) -> Expr:
    if_true, if_false = sides
    return replace(e, condition=condition, if_true=if_true, if_false=if_false)


_HANDLERS: dict[type[Expr], Callable[[ExpressionPusher, Any], Both]] = {
    nodes.Var: ExpressionPusher.var,
    nodes.Load: ExpressionPusher.load,
    nodes.Conditional: ExpressionPusher.conditional,
    nodes.Call: ExpressionPusher.call,
}
