"""Pushes the statements of kernels: adds statements that compute tangents.

``x = e`` gets ``x_dot = e_dot``, and ``a[j] = e`` gets ``a_dot[j] = e_dot``; control flow stays.
Invariant: value and tangent are both computed before either is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL, Tuple, Type, Void, is_differentiable
from shaderad.ir.walk import map_indices, path_value
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.expressions import in_order
from shaderad.rules.pushing.expressions import ExpressionPusher
from shaderad.rules.pushing.functions import PushedFunctions


def push_body(
    functions: PushedFunctions,
    body: Body,
    statements: tuple[Stmt, ...],
    types: Mapping[str, Type],
    constants: frozenset[str] = frozenset(),
) -> None:
    """Adds `statements`, with tangents, to `body`.

    Args:
        functions: The pushed functions of the kernel.
        body: Receives the statements.
        statements: To push.
        types: The type of each name that they assign.
        constants: Names without tangents.
    """
    StatementPusher(functions, body, types, constants).block(statements)


class StatementPusher:
    """Pushes the statements of one body."""

    def __init__(
        self,
        functions: PushedFunctions,
        body: Body,
        types: Mapping[str, Type],
        constants: frozenset[str],
    ) -> None:
        self._functions = functions
        self._body = body
        self._types = types
        self._expressions = ExpressionPusher(functions, body, constants)
        self._after: tuple[Stmt, ...] = ()
        """Statements that the innermost loop runs after each iteration."""

    def block(self, statements: tuple[Stmt, ...]) -> None:
        for s in statements:
            self._body.span = s.span
            _WRITE[type(s)](self, s)

    def _captured(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return self._body.captured(lambda: self.block(statements))[0]

    # -- writes -------------------------------------------------------------------------------

    def assign(self, s: nodes.Assign) -> None:
        value, dot = self._expressions.both(s.value)
        path = self._fixed(s.path, s.name)
        primal = replace(s, path=path, value=value)
        if not is_differentiable(s.value.type):
            self._body.add(primal)
            return
        dot = self._before_write(value, dot, s.name)
        self._body.add(primal)
        name = self._body.dot(s.name)
        t = self._body.local_types[name] = self._types[s.name]
        # No self-assignment: reverse mode would save the name in each iteration of a loop.
        if dot != path_value(nodes.Var(type=t, name=name), path):
            self._body.add(nodes.Assign(name=name, path=path, value=dot, span=s.span))

    def store(self, s: nodes.Store) -> None:
        value, dot = self._expressions.both(s.value)
        primal = replace(s, indices=self._indices(s), path=self._fixed(s.path), value=value)
        name = self._functions.dots.get(s.buffer)
        if name is None or not is_differentiable(s.value.type):
            self._body.add(primal)
            return
        dot = self._before_write(value, dot, s.buffer)
        self._body.add(primal)
        self._body.add(replace(primal, buffer=name, value=dot))

    def accumulate(self, s: nodes.Accumulate) -> None:
        value, dot = self._expressions.both(s.value)
        primal = replace(s, indices=self._indices(s), path=self._fixed(s.path), value=value)
        name = self._functions.dots.get(s.buffer)
        if name is None or not is_differentiable(s.value.type):
            self._body.add(primal)
            return
        dot = c.zero(value.type) if dot is None else dot
        if s.buffer in self._functions.extremes:
            self._extreme(s, primal, dot)
            return
        self._body.add(primal)
        self._body.add(replace(primal, buffer=name, value=dot))

    def _extreme(self, s: nodes.Accumulate, primal: nodes.Accumulate, dot: Expr) -> None:
        """A write to Min or Max with its tangent, and with the tangent of a tangent that it has."""
        dots = self._functions.dots
        if s.tangent is not None:
            tangent, tangent_dot = self._expressions.full(s.tangent)
            self._body.add(replace(primal, tangent=tangent))
            name = dots[s.tangent_buffer]
            self._body.add(replace(primal, tangent=tangent_dot, tangent_buffer=name))
        self._body.add(replace(primal, tangent=dot, tangent_buffer=dots[s.buffer]))

    def _before_write(self, value: Expr, dot: Expr | None, written: str) -> Expr:
        """The tangent, bound to a local if it reads `written`."""
        if dot is None:
            return c.zero(value.type)
        for part in in_order(dot):
            is_name = isinstance(part, nodes.Var) and part.name == written
            if is_name or (isinstance(part, nodes.Load) and part.buffer == written):
                bound = self._body.local("tangent", dot.type)
                self._body.add(nodes.Assign(name=bound.name, value=dot, span=self._body.span))
                return bound
        return dot

    def _indices(self, s: nodes.Store | nodes.Accumulate) -> tuple[Expr, ...]:
        return tuple(self._expressions.fixed(i) for i in s.indices)

    def _fixed(self, path: tuple[nodes.Step, ...], assigned: str = "") -> tuple[nodes.Step, ...]:
        return map_indices(path, lambda i: self._expressions.fixed(i, assigned))

    # -- calls, checks, results ---------------------------------------------------------------

    def evaluate(self, s: nodes.Evaluate) -> None:
        call = s.call
        is_plain = not isinstance(call, nodes.Call) or not self._functions.has_effect(call.function)
        if is_plain or not isinstance(call, nodes.Call):
            self._body.add(replace(s, call=self._expressions.primal(call)))
        elif isinstance(call.type, Void):
            args = [self._expressions.both(a) for a in call.args]
            self._body.add(replace(s, call=self._expressions.pushed_call(call, args)))
        else:
            self._expressions.both(call)

    def check(self, s: nodes.Assert) -> None:
        self._body.add(replace(s, condition=self._expressions.primal(s.condition)))

    def omit(self, s: nodes.Print) -> None:
        """Only the primal prints."""

    def result(self, s: nodes.Return) -> None:
        if s.value is None or not is_differentiable(s.value.type):
            value = None if s.value is None else self._expressions.primal(s.value)
            self._body.add(replace(s, value=value))
            return
        parts = self._expressions.full(s.value)
        both = nodes.Construct(type=Tuple(tuple(p.type for p in parts)), parts=parts, span=s.span)
        self._body.add(replace(s, value=both))

    # -- control flow -------------------------------------------------------------------------

    def branch(self, s: nodes.If) -> None:
        condition = self._expressions.primal(s.condition)
        then, otherwise = self._captured(s.then), self._captured(s.otherwise)
        self._body.add(replace(s, condition=condition, then=then, otherwise=otherwise))

    def for_loop(self, s: nodes.For) -> None:
        start, stop, step = (self._expressions.primal(e) for e in (s.start, s.stop, s.step))
        body = self._loop_body(s.body, ())
        self._body.add(replace(s, start=start, stop=stop, step=step, body=body))

    def while_loop(self, s: nodes.While) -> None:
        """Statements of the condition run before the loop and after each iteration."""
        head, condition = self._body.captured(lambda: self._expressions.primal(s.condition))
        if head:
            holds = self._body.local("goes_on", BOOL)
            head = (*head, nodes.Assign(name=holds.name, value=condition, span=s.span))
            self._body.statements += head
            condition = holds
        self._body.add(replace(s, condition=condition, body=self._loop_body(s.body, head)))

    def _loop_body(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The pushed `body`, which runs `after` before the next iteration."""
        outer, self._after = self._after, after
        try:
            return (*self._captured(body), *after)
        finally:
            self._after = outer

    def continue_loop(self, s: nodes.Continue) -> None:
        self._body.statements += self._after
        self._body.add(s)

    def keep(self, s: Stmt) -> None:
        self._body.add(s)


_WRITE: dict[type[Stmt], Callable[[StatementPusher, Any], None]] = {
    nodes.Assign: StatementPusher.assign,
    nodes.Store: StatementPusher.store,
    nodes.Accumulate: StatementPusher.accumulate,
    NumberedAccumulate: StatementPusher.accumulate,
    nodes.Evaluate: StatementPusher.evaluate,
    nodes.Assert: StatementPusher.check,
    nodes.Print: StatementPusher.omit,
    nodes.Return: StatementPusher.result,
    nodes.If: StatementPusher.branch,
    nodes.For: StatementPusher.for_loop,
    nodes.While: StatementPusher.while_loop,
    nodes.Break: StatementPusher.keep,
    nodes.Continue: StatementPusher.continue_loop,
}
