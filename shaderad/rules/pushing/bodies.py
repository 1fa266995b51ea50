"""Pushes bodies: statement -> statements with tangents, expression -> (value, tangent).

``x = e`` gets ``x_dot = e_dot``, and ``a[j] = e`` gets ``a_dot[j] = e_dot``; control flow stays.
Primitives follow `rules/expressions.py`; this file adds array accesses, calls with side effects,
and evaluation order. `None` is a zero tangent. Invariant: value and tangent are both computed
before either is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import BOOL, INT, UINT, Tuple, Type, Void, is_differentiable
from shaderad.ir.walk import children, expressions, map_children, map_indices, path_value
from shaderad.rules.expressions import push_node
from shaderad.rules.nodes import Pull

if TYPE_CHECKING:
    from shaderad.rules.pushing.kernels import PushedFunctions

Both = tuple[Expr, "Expr | None"]
"""A value and its tangent."""


class BodyPusher:
    """Pushes the statements of one body."""

    def __init__(
        self,
        functions: PushedFunctions,
        body: Body,
        types: Mapping[str, Type],
        constants: frozenset[str],
    ) -> None:
        """`body` receives the statements; `types` holds the types of assigned names."""
        self._functions = functions
        self._body = body
        self._types = types
        self._constants = constants
        """Names without tangents."""
        self._after: tuple[Stmt, ...] = ()
        """Statements that the innermost loop runs after each iteration."""

    def block(self, statements: tuple[Stmt, ...]) -> None:
        for s in statements:
            self._body.span = s.span
            _STATEMENTS[type(s)](self, s)

    def _captured(self, statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return self._body.captured(lambda: self.block(statements))[0]

    def _assign(self, name: nodes.Var, value: Expr, span: nodes.Span) -> None:
        self._body.add(nodes.Assign(name=name.name, value=value, span=span))

    # -- values without tangents --------------------------------------------------------------

    def primal(self, e: Expr) -> Expr:
        """`e`, whose own tangent is not used; its calls still write the tangents of arrays."""
        if not any(map(self._writes_tangents, expressions(e))):
            return e
        if isinstance(e, nodes.Logical):
            return self._logical(e)
        if isinstance(e, nodes.Conditional):
            return self.conditional(e)[0]
        if isinstance(e, nodes.Call) and self._writes_tangents(e):
            return self.call(e)[0]
        return map_children(e, self.primal)

    def _writes_tangents(self, e: Expr) -> bool:
        return isinstance(e, nodes.Call) and self._functions.writes_tangents(e.function)

    def _fixed(self, e: Expr, assigned: str = "") -> Expr:
        """An index that is used twice; bound to a local if it has calls or reads `assigned`."""
        if isinstance(e, nodes.PointerIndex):
            return map_children(e, lambda part: self._fixed(part, assigned))
        may_change = any(
            isinstance(p, nodes.Call) or (isinstance(p, nodes.Var) and p.name == assigned)
            for p in expressions(e)
        )
        return self._body.bound(self.primal(e), "index") if may_change else e

    def _path(self, path: tuple[nodes.Step, ...], assigned: str = "") -> tuple[nodes.Step, ...]:
        return map_indices(path, lambda i: self._fixed(i, assigned))

    def _logical(self, e: nodes.Logical) -> Expr:
        """A short-circuit operator as a branch, because its operands have side effects."""
        result = self._body.local("holds", BOOL)
        self._assign(result, self.primal(e.left), e.span)
        block, right = self._body.captured(lambda: self.primal(e.right))
        block = (*block, nodes.Assign(name=result.name, value=right, span=e.span))
        then, otherwise = (block, ()) if e.is_and else ((), block)
        self._body.add(nodes.If(condition=result, then=then, otherwise=otherwise, span=e.span))
        return result

    # -- values with tangents -----------------------------------------------------------------

    def both(self, e: Expr) -> Both:
        """The value of `e` and its tangent."""
        if not is_differentiable(e.type):
            return self.primal(e), None
        push = _EXPRESSIONS.get(type(e))
        if push is not None:
            return push(self, e)
        pairs = [self.both(child) for child in children(e)]
        values = iter(pairs)
        value = map_children(e, lambda _: next(values)[0])
        dot = push_node(value, [d for _, d in pairs])
        if dot is None:
            return value, None
        value, dot = self._body.shared(value, dot)
        return value, dot

    def full(self, e: Expr) -> tuple[Expr, Expr]:
        """The value of `e` and its tangent, with `Zero` for `None`."""
        value, dot = self.both(e)
        return value, c.zero(value.type) if dot is None else dot

    def detached(self, e: nodes.Detach) -> Both:
        return map_children(e, self.primal), None

    def var(self, e: nodes.Var) -> Both:
        if e.name in self._constants:
            return e, None
        return e, nodes.Var(type=e.type, name=self._body.dot(e.name), span=e.span)

    def load(self, e: nodes.Load) -> Both:
        value = replace(e, indices=tuple(map(self._fixed, e.indices)))
        name = self._functions.dots.get(e.buffer)
        if name is None:
            return value, None
        if e.buffer in self._functions.read_together:
            check = CheckIndex(type=UINT, buffer=e.buffer, indices=value.indices, span=e.span)
            number = self._body.bound(check, f"{e.buffer}_at")
            value = replace(value, indices=(nodes.KnownNumber(type=INT, number=number),))
        return value, replace(value, buffer=name)

    def conditional(self, e: nodes.Conditional) -> Both:
        """Conditionals of value and tangent; an ``if`` statement if a side emits statements."""
        condition = self.primal(e.condition)
        sides = [self._body.captured(lambda s=s: self.both(s)) for s in (e.if_true, e.if_false)]
        is_constant = all(dot is None for _, (_, dot) in sides)
        values = [value for _, (value, _) in sides]
        dots = [c.zero(v.type) if dot is None else dot for _, (v, dot) in sides]
        if not any(block for block, _ in sides):
            if is_constant:
                return _chosen(e, condition, values), None
            condition = self._body.bound(condition, "holds")
            return _chosen(e, condition, values), _chosen(e, condition, dots)
        result = self._body.local("chosen", e.type)
        tangent = None if is_constant else self._body.local("chosen_dot", e.type)
        blocks: list[tuple[Stmt, ...]] = []
        for (block, _), value, dot in zip(sides, values, dots, strict=True):
            written = [nodes.Assign(name=result.name, value=value, span=e.span)]
            if tangent is not None:
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
        call = self._pushed_call(e, args)
        if not is_differentiable(call.type):
            return self._body.bound(call, "value"), None
        result = self._body.bound(call, "both")
        return c.field(result, "0"), c.field(result, "1")

    def _pushed_call(self, e: nodes.Call, args: list[Both]) -> nodes.Call:
        """The call of the pushed function with `args` and their tangents."""
        f = self._functions.of(e.function, _active(args))
        return nodes.Call(type=f.result, function=f, args=_with_tangents(args), span=e.span)

    def _push_of_pull(self, value: nodes.Call, f: Pull, args: list[Both]) -> Both:
        """The tangent of a pulled function, by the first formula of `Pull`."""
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

    def evaluate(self, s: nodes.Evaluate) -> None:
        call = s.call
        if not isinstance(call, nodes.Call) or not self._writes_tangents(call):
            self._body.add(replace(s, call=self.primal(call)))
        elif isinstance(call.type, Void):
            args = [self.both(a) for a in call.args]
            self._body.add(replace(s, call=self._pushed_call(call, args)))
        else:
            self.both(call)

    # -- writes -------------------------------------------------------------------------------

    def assign(self, s: nodes.Assign) -> None:
        value, dot = self.full(s.value)
        path = self._path(s.path, s.name)
        primal = replace(s, path=path, value=value)
        if not is_differentiable(s.value.type):
            self._body.add(primal)
            return
        dot = self._before_write(dot, s.name)
        self._body.add(primal)
        name = self._body.dot(s.name)
        t = self._body.local_types[name] = self._types[s.name]
        # No self-assignment: reverse mode would save the name in each iteration of a loop.
        if dot != path_value(nodes.Var(type=t, name=name), path):
            self._body.add(nodes.Assign(name=name, path=path, value=dot, span=s.span))

    def store(self, s: nodes.Store | nodes.Accumulate) -> None:
        value, dot = self.full(s.value)
        indices = tuple(map(self._fixed, s.indices))
        primal = replace(s, indices=indices, path=self._path(s.path), value=value)
        name = self._functions.dots.get(s.buffer)
        if name is None or not is_differentiable(s.value.type):
            self._body.add(primal)
        elif isinstance(primal, nodes.Accumulate) and s.buffer in self._functions.extremes:
            self._extreme(primal, dot)
        else:
            if isinstance(s, nodes.Store):
                dot = self._before_write(dot, s.buffer)
            self._body.add(primal)
            self._body.add(replace(primal, buffer=name, value=dot))

    def _extreme(self, s: nodes.Accumulate, dot: Expr) -> None:
        """A write to Min or Max with its tangent, and that tangent's own tangent if it has one."""
        dots = self._functions.dots
        if s.tangent is not None:
            tangent, tangent_dot = self.full(s.tangent)
            self._body.add(replace(s, tangent=tangent))
            name = dots[s.tangent_buffer]
            self._body.add(replace(s, tangent=tangent_dot, tangent_buffer=name))
        self._body.add(replace(s, tangent=dot, tangent_buffer=dots[s.buffer]))

    def _before_write(self, dot: Expr, written: str) -> Expr:
        """The tangent `dot`, bound to a local if it reads `written`."""
        for part in in_order(dot):
            is_name = isinstance(part, nodes.Var) and part.name == written
            if is_name or (isinstance(part, nodes.Load) and part.buffer == written):
                bound = self._body.local("tangent", dot.type)
                self._assign(bound, dot, self._body.span)
                return bound
        return dot

    def check(self, s: nodes.Assert) -> None:
        self._body.add(replace(s, condition=self.primal(s.condition)))

    def omit(self, s: nodes.Print) -> None:
        """Only the primal prints."""

    # -- control flow -------------------------------------------------------------------------

    def result(self, s: nodes.Return) -> None:
        if s.value is None or not is_differentiable(s.value.type):
            value = None if s.value is None else self.primal(s.value)
            self._body.add(replace(s, value=value))
            return
        parts = self.full(s.value)
        both = nodes.Construct(type=Tuple(tuple(p.type for p in parts)), parts=parts, span=s.span)
        self._body.add(replace(s, value=both))

    def branch(self, s: nodes.If) -> None:
        condition = self.primal(s.condition)
        then, otherwise = self._captured(s.then), self._captured(s.otherwise)
        self._body.add(replace(s, condition=condition, then=then, otherwise=otherwise))

    def for_loop(self, s: nodes.For) -> None:
        start, stop, step = map(self.primal, (s.start, s.stop, s.step))
        body = self._loop_body(s.body, ())
        self._body.add(replace(s, start=start, stop=stop, step=step, body=body))

    def while_loop(self, s: nodes.While) -> None:
        """Statements of the condition run before the loop and after each iteration."""
        head, condition = self._body.captured(lambda: self.primal(s.condition))
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

    def break_loop(self, s: nodes.Break) -> None:
        self._body.add(s)


def _active(args: list[Both]) -> frozenset[int]:
    """The positions of arguments with tangents."""
    return frozenset(k for k, (_, dot) in enumerate(args) if dot is not None)


def _with_tangents(args: list[Both]) -> tuple[Expr, ...]:
    """The arguments, then their tangents that are not zero."""
    return (*(value for value, _ in args), *(dot for _, dot in args if dot is not None))


def _chosen(e: nodes.Conditional, condition: Expr, sides: list[Expr]) -> Expr:
    if_true, if_false = sides
    return replace(e, condition=condition, if_true=if_true, if_false=if_false)


_EXPRESSIONS: dict[type[Expr], Callable[[BodyPusher, Any], Both]] = {
    nodes.Var: BodyPusher.var,
    nodes.Load: BodyPusher.load,
    nodes.Conditional: BodyPusher.conditional,
    nodes.Call: BodyPusher.call,
    nodes.TextureCall: BodyPusher.call,
    nodes.Detach: BodyPusher.detached,
}
_STATEMENTS: dict[type[Stmt], Callable[[BodyPusher, Any], None]] = {
    nodes.Assign: BodyPusher.assign,
    nodes.Store: BodyPusher.store,
    nodes.Accumulate: BodyPusher.store,
    NumberedAccumulate: BodyPusher.store,
    nodes.Evaluate: BodyPusher.evaluate,
    nodes.Assert: BodyPusher.check,
    nodes.Print: BodyPusher.omit,
    nodes.Return: BodyPusher.result,
    nodes.If: BodyPusher.branch,
    nodes.For: BodyPusher.for_loop,
    nodes.While: BodyPusher.while_loop,
    nodes.Break: BodyPusher.break_loop,
    nodes.Continue: BodyPusher.continue_loop,
}
