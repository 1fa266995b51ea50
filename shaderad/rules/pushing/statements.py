"""Statements of kernels -> the same statements, with those that keep the tangents.

Of ``x = e`` there is ``x_dot = e_dot`` beside it, of ``a[j] = e`` ``a_dot[j] = e_dot``; loops and
branches run as before. Invariant: a tangent is computed from what its value is computed from,
before either is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL, Tuple, Type, Void, is_differentiable
from shaderad.ir.walk import path_value
from shaderad.rules import composing as c
from shaderad.rules.body import Body
from shaderad.rules.expressions import in_order
from shaderad.rules.pushing.expressions import Expressions
from shaderad.rules.pushing.functions import Functions


def push_body(
    functions: Functions,
    body: Body,
    statements: tuple[Stmt, ...],
    types: Mapping[str, Type],
    constants: frozenset[str] = frozenset(),
) -> None:
    """Adds `statements`, with tangents, to `body`.

    Args:
        functions: Those of the kernel.
        body: Where they go.
        statements: What to push.
        types: Of every name that they assign.
        constants: Names without a tangent.
    """
    Statements(functions, body, types, constants).block(statements)


class Statements:
    """Statements of one body."""

    def __init__(
        self,
        functions: Functions,
        body: Body,
        types: Mapping[str, Type],
        constants: frozenset[str],
    ) -> None:
        self._functions = functions
        self._body = body
        self._types = types
        self._expressions = Expressions(functions, body, constants)
        self._after: tuple[Stmt, ...] = ()
        """What the innermost loop does before its next iteration."""

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
        made = replace(s, path=path, value=value)
        if not is_differentiable(s.value.type):
            self._body.add(made)
            return
        dot = self._before_write(value, dot, s.name)
        self._body.add(made)
        name = self._body.dot(s.name)
        t = self._body.local_types[name] = self._types[s.name]
        # What does not change is left alone: a loop that assigned it would have to keep it.
        if dot != path_value(nodes.Var(type=t, name=name), path):
            self._body.add(nodes.Assign(name=name, path=path, value=dot, span=s.span))

    def store(self, s: nodes.Store) -> None:
        value, dot = self._expressions.both(s.value)
        made = replace(s, indices=self._indices(s), path=self._fixed(s.path), value=value)
        name = self._functions.dots.get(s.buffer)
        if name is None or not is_differentiable(s.value.type):
            self._body.add(made)
            return
        dot = self._before_write(value, dot, s.buffer)
        self._body.add(made)
        self._body.add(replace(made, buffer=name, value=dot))

    def accumulate(self, s: nodes.Accumulate) -> None:
        value, dot = self._expressions.both(s.value)
        made = replace(s, indices=self._indices(s), path=self._fixed(s.path), value=value)
        name = self._functions.dots.get(s.buffer)
        if name is None or not is_differentiable(s.value.type):
            self._body.add(made)
            return
        dot = c.zero(value.type) if dot is None else dot
        if s.buffer in self._functions.extremes:
            self._compete(s, made, dot)
            return
        self._body.add(made)
        self._body.add(replace(made, buffer=name, value=dot))

    def _compete(self, s: nodes.Accumulate, made: nodes.Accumulate, dot: Expr) -> None:
        """A write to Min or Max; where it brings a tangent, the tangent of that comes as well."""
        dots = self._functions.dots
        if s.tangent is not None:
            tangent, tangent_dot = self._expressions.full(s.tangent)
            self._body.add(replace(made, tangent=tangent))
            name = dots[s.tangent_buffer]
            self._body.add(replace(made, tangent=tangent_dot, tangent_buffer=name))
        self._body.add(replace(made, tangent=dot, tangent_buffer=dots[s.buffer]))

    def _before_write(self, value: Expr, dot: Expr | None, written: str) -> Expr:
        """The tangent as it is before `written` changes."""
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
        return tuple(
            nodes.ElementStep(index=self._expressions.fixed(step.index, assigned))
            if isinstance(step, nodes.ElementStep)
            else step
            for step in path
        )

    # -- calls, checks, results ---------------------------------------------------------------

    def evaluate(self, s: nodes.Evaluate) -> None:
        call = s.call
        is_plain = not isinstance(call, nodes.Call) or not self._functions.has_effect(call.function)
        if is_plain or not isinstance(call, nodes.Call):
            self._body.add(replace(s, call=self._expressions.primal(call)))
        elif isinstance(call.type, Void):
            found = [self._expressions.both(a) for a in call.args]
            self._body.add(replace(s, call=self._expressions.pushed_call(call, found)))
        else:
            self._expressions.both(call)

    def hold(self, s: nodes.Assert) -> None:
        self._body.add(replace(s, condition=self._expressions.primal(s.condition)))

    def leave_out(self, s: nodes.Print) -> None:
        """The primal prints; its derivatives do not."""

    def give(self, s: nodes.Return) -> None:
        if s.value is None or not is_differentiable(s.value.type):
            value = None if s.value is None else self._expressions.primal(s.value)
            self._body.add(replace(s, value=value))
            return
        parts = self._expressions.full(s.value)
        both = nodes.Construct(type=Tuple(tuple(p.type for p in parts)), parts=parts, span=s.span)
        self._body.add(replace(s, value=both))

    # -- control flow -------------------------------------------------------------------------

    def choose(self, s: nodes.If) -> None:
        condition = self._expressions.primal(s.condition)
        then, otherwise = self._captured(s.then), self._captured(s.otherwise)
        self._body.add(replace(s, condition=condition, then=then, otherwise=otherwise))

    def count(self, s: nodes.For) -> None:
        start, stop, step = (self._expressions.primal(e) for e in (s.start, s.stop, s.step))
        body = self._loop_body(s.body, ())
        self._body.add(replace(s, start=start, stop=stop, step=step, body=body))

    def repeat(self, s: nodes.While) -> None:
        """A condition that takes statements is computed before the loop and after each step."""
        head, condition = self._body.captured(lambda: self._expressions.primal(s.condition))
        if head:
            holds = self._body.local("goes_on", BOOL)
            head = (*head, nodes.Assign(name=holds.name, value=condition, span=s.span))
            self._body.statements += head
            condition = holds
        self._body.add(replace(s, condition=condition, body=self._loop_body(s.body, head)))

    def _loop_body(self, body: tuple[Stmt, ...], after: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """`body`, and `after` it where its next iteration is asked for."""
        outer, self._after = self._after, after
        try:
            return (*self._captured(body), *after)
        finally:
            self._after = outer

    def go_on(self, s: nodes.Continue) -> None:
        self._body.statements += self._after
        self._body.add(s)

    def keep(self, s: Stmt) -> None:
        self._body.add(s)


_WRITE: dict[type[Stmt], Callable[[Statements, Any], None]] = {
    nodes.Assign: Statements.assign,
    nodes.Store: Statements.store,
    nodes.Accumulate: Statements.accumulate,
    NumberedAccumulate: Statements.accumulate,
    nodes.Evaluate: Statements.evaluate,
    nodes.Assert: Statements.hold,
    nodes.Print: Statements.leave_out,
    nodes.Return: Statements.give,
    nodes.If: Statements.choose,
    nodes.For: Statements.count,
    nodes.While: Statements.repeat,
    nodes.Break: Statements.keep,
    nodes.Continue: Statements.go_on,
}
