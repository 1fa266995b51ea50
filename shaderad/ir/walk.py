"""Visiting and rewriting kernel IR: the only code that knows the fields of every node.

Expressions are rewritten bottom-up by a function from node to node; statements by a function
from statement to statements. Both leave what the function returns unchanged alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar, cast

from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Assign,
    BackwardDiff,
    Call,
    Element,
    ElementStep,
    Evaluate,
    Expr,
    Field,
    FieldStep,
    For,
    ForwardDiff,
    Function,
    If,
    Load,
    PairPart,
    Print,
    Step,
    Stmt,
    Store,
    Swizzle,
    SwizzleStep,
    Var,
    While,
)
from shaderad.ir.types import LocalArray, Matrix, Pair, Struct, Tuple, Type, Vector, tangent

ExprRewrite = Callable[[Expr], Expr]
_Node = TypeVar("_Node", Expr, Stmt)


def children(node: Expr | Stmt) -> Iterator[Expr]:
    """The expressions directly inside a node, in order; nested statements are not entered."""
    for f in fields(node):
        value: Any = getattr(node, f.name)
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, tuple):
            yield from _expressions(cast("tuple[Any, ...]", value))


def _expressions(items: Iterable[Any]) -> Iterator[Expr]:
    for item in items:
        if isinstance(item, Expr):
            yield item
        elif isinstance(item, ElementStep):
            yield item.index


def expressions(node: Expr | Stmt) -> Iterator[Expr]:
    """Every expression of a node at any depth, parents after their operands."""
    for child in children(node):
        yield from expressions(child)
    if isinstance(node, Expr):
        yield node


def blocks(statement: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists directly inside a statement."""
    if isinstance(statement, If):
        return (statement.then, statement.otherwise)
    if isinstance(statement, For | While):
        return (statement.body,)
    return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement at any depth, parents first."""
    for statement in body:
        yield statement
        for block in blocks(statement):
            yield from statements(block)


def all_expressions(body: Iterable[Stmt]) -> Iterator[Expr]:
    """Every expression in a body, at any depth."""
    for statement in statements(body):
        yield from expressions(statement)


def reads(body: Iterable[Stmt]) -> set[str]:
    """Names that a body reads."""
    return {e.name for e in all_expressions(body) if isinstance(e, Var)}


def writes(body: Iterable[Stmt]) -> set[str]:
    """Local names that a body assigns, loop variables and results of ``bwd_diff`` included."""
    found: set[str] = set()
    for statement in statements(body):
        if isinstance(statement, Assign):
            found.add(statement.name)
        elif isinstance(statement, For):
            found.add(statement.variable)
        elif isinstance(statement, BackwardDiff):
            found |= {a.name for a in statement.args if isinstance(a, Var)}
    return found


def changed(body: Iterable[Stmt]) -> set[str]:
    """Names that a body may change: those it assigns, or gives to calls made for their effect."""
    body = tuple(body)
    calls = (s.call for s in statements(body) if isinstance(s, Evaluate))
    args = (a for call in calls if isinstance(call, Call) for a in call.args)
    return writes(body) | {a.name for a in args if isinstance(a, Var)}


def called(body: Iterable[Stmt]) -> Iterator[Function]:
    """The functions that a body calls or differentiates, each time it does."""
    for statement in statements(body):
        if isinstance(statement, BackwardDiff):
            yield statement.function
        for e in expressions(statement):
            if isinstance(e, Call | ForwardDiff):
                yield e.function


def reachable(body: tuple[Stmt, ...]) -> list[Function]:
    """Functions that `body` calls, directly or not, each once; derivatives not entered."""
    found: dict[Function, None] = {}

    def visit(stmts: tuple[Stmt, ...]) -> None:
        for f in called(stmts):
            if f not in found:
                visit(f.body)
                found[f] = None

    visit(body)
    return list(found)


def has_loops(f: Function) -> bool:
    """Whether a call of `f` runs a loop."""
    inside = (s for g in (f, *reachable(f.body)) for s in statements(g.body))
    return any(isinstance(s, For | While) for s in inside)


def has_own_backward(f: Function) -> bool:
    """Whether `f`, or anything it calls, has a backward derivative of the user's."""
    return f.backward is not None or any(g.backward is not None for g in reachable(f.body))


def writes_memory(f: Function) -> bool:
    """Whether a call of `f` stores or adds to an array, or prints."""
    return any(
        isinstance(s, Store | Accumulate | AccumulateGradient | Print)
        for g in (f, *reachable(f.body))
        for s in statements(g.body)
    )


def touched_buffers(body: Iterable[Stmt]) -> Iterator[str]:
    """The buffers that a body itself reads or writes, each time it does."""
    for statement in statements(body):
        if isinstance(statement, Store | Accumulate | AccumulateGradient):
            yield statement.buffer
        if isinstance(statement, Accumulate) and statement.tangent_buffer:
            yield statement.tangent_buffer
        for e in expressions(statement):
            if isinstance(e, Load):
                yield e.buffer


def rewrite_expression(e: Expr, change: ExprRewrite) -> Expr:
    """`e` with `change` applied to every node, operands first."""
    return change(map_children(e, lambda child: rewrite_expression(child, change)))


def rewrite_statement(s: Stmt, change: ExprRewrite) -> Stmt:
    """`s` with `change` applied to every expression in it, also in nested statements."""
    return map_children(s, lambda child: rewrite_expression(child, change))


def rewrite_body(body: tuple[Stmt, ...], change: ExprRewrite) -> tuple[Stmt, ...]:
    return tuple(rewrite_statement(s, change) for s in body)


def map_children(node: _Node, change: ExprRewrite) -> _Node:
    """`node` with `change` applied to the expressions directly inside, nested statements' too."""
    updates: dict[str, Any] = {}
    for f in fields(node):
        value: Any = getattr(node, f.name)
        new = _mapped(value, change)
        if new is not value:
            updates[f.name] = new
    return replace(node, **updates) if updates else node


def _mapped(value: Any, change: ExprRewrite) -> Any:
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, Stmt):
        return map_children(value, change)
    if isinstance(value, ElementStep):
        index = change(value.index)
        return value if index is value.index else ElementStep(index=index)
    if isinstance(value, tuple):
        old = cast("tuple[Any, ...]", value)
        items = tuple(_mapped(v, change) for v in old)
        return old if all(a is b for a, b in zip(items, old, strict=True)) else items
    return value


def map_blocks(s: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """`s` with `change` applied to the statement lists directly inside."""
    if isinstance(s, If):
        return replace(s, then=change(s.then), otherwise=change(s.otherwise))
    return replace(s, body=change(s.body)) if isinstance(s, For | While) else s


def map_statements(
    body: tuple[Stmt, ...], change: Callable[[Stmt], Iterable[Stmt]]
) -> tuple[Stmt, ...]:
    """`body` with each statement replaced by those that `change` gives, nested ones first."""

    def block(inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(new for s in inner for new in change(map_blocks(s, block)))

    return block(body)


def path_value(name: Expr, path: tuple[Step, ...]) -> Expr | None:
    """The expression that reads ``name<path>``; `None` where a step is not a plain place."""
    value = name
    for step in path:
        part = step_type(value.type, step)
        if part is None:
            return None
        if isinstance(step, FieldStep):
            value = Field(type=part, value=value, name=step.name)
        elif isinstance(step, SwizzleStep):
            value = Swizzle(type=part, value=value, components=step.components)
        elif isinstance(step, ElementStep):
            value = Element(type=part, value=value, index=step.index)
        else:
            value = PairPart(type=part, value=value, part="d")
    return value


def step_type(t: Type, step: Step) -> Type | None:
    """The type of what `step` reaches inside a value of type `t`."""
    if isinstance(step, FieldStep) and isinstance(t, Struct):
        return t.type_by_field.get(step.name)
    if isinstance(step, FieldStep) and isinstance(t, Tuple):
        return t.elements[int(step.name)]
    if isinstance(step, SwizzleStep) and isinstance(t, Vector):
        count = len(step.components)
        return t.element if count == 1 else Vector(t.element, count)
    if isinstance(step, ElementStep):
        if isinstance(t, Matrix):
            return t.row
        return t.element if isinstance(t, Vector | LocalArray) else None
    return tangent(t.primal) if isinstance(t, Pair) else None
