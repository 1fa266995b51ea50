"""Traversal and rewriting of kernel IR: the only code that knows the fields of every node.

Passes take names for the values that they introduce from `made_name`.

Expressions are rewritten bottom-up by a function from node to node. A node whose parts do not
change keeps its identity.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar, cast

from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Step, Stmt
from shaderad.ir.types import LocalArray, Matrix, Pair, Struct, Tuple, Type, Vector, tangent

ExprRewrite = Callable[[Expr], Expr]
Block = tuple[Stmt, ...]
_Node = TypeVar("_Node", Expr, Stmt)
_BLOCKS = ("then", "otherwise", "body")


_CHILDREN = "_children"
"""The attribute that caches the children of a node, which is immutable and visited by many passes.
"""


def children(node: Expr | Stmt) -> tuple[Expr, ...]:
    """The expressions directly inside a node, in order, without those of nested statements."""
    kept = vars(node).get(_CHILDREN)
    if kept is None:
        kept = vars(node)[_CHILDREN] = tuple(_children(node))
    return kept


def _children(node: Expr | Stmt) -> list[Expr]:
    result: list[Expr] = []
    for name in _part_names(type(node)):
        value: Any = getattr(node, name)
        if isinstance(value, Expr):
            result.append(value)
        elif isinstance(value, tuple):
            for item in cast("tuple[Any, ...]", value):
                if isinstance(item, Expr):
                    result.append(item)
                elif isinstance(item, nodes.ElementStep):
                    result.append(item.index)
    return result


_NO_PARTS = frozenset({
    "Type", "Span", "str", "int", "bool", "float | int | bool", "Op", "Function", "tuple[str, ...]"
})  # fmt: skip
"""Annotations of fields that hold neither expressions nor statements."""


@cache
def _part_names(node: type[Expr | Stmt]) -> tuple[str, ...]:
    """The fields of a node that may hold expressions or statements."""
    return tuple(f.name for f in fields(node) if f.type not in _NO_PARTS)


def indices(path: Iterable[Step]) -> list[Expr]:
    """The element indices of a path."""
    return [step.index for step in path if isinstance(step, nodes.ElementStep)]


def expressions(node: Expr | Stmt) -> list[Expr]:
    """Every expression of a node, at any depth, operands first."""
    result: list[Expr] = []
    left = [node] if isinstance(node, Expr) else [*children(node)]
    while left:  # from the last one back
        last = left.pop()
        result.append(last)
        left += children(last)
    result.reverse()
    return result


def blocks(statement: Stmt) -> tuple[Block, ...]:
    """The blocks of an ``if`` or loop, empty for any other statement."""
    if isinstance(statement, nodes.If):
        return (statement.then, statement.otherwise)
    if isinstance(statement, nodes.For | nodes.While):
        return (statement.body,)
    return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, at any depth, parents first."""
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
    return {e.name for e in all_expressions(body) if isinstance(e, nodes.Var)}


def writes(body: Iterable[Stmt]) -> set[str]:
    """Local names that a body assigns, including loop variables and pairs set by ``bwd_diff``."""
    names: set[str] = set()
    for statement in statements(body):
        if isinstance(statement, nodes.Assign):
            names.add(statement.name)
        elif isinstance(statement, nodes.For):
            names.add(statement.variable)
        elif isinstance(statement, nodes.BackwardDiff):
            names |= {a.name for a in statement.args if isinstance(a, nodes.Var)}
    return names


def changed(body: Iterable[Stmt]) -> set[str]:
    """Names that a body may change: `writes`, and the arguments of calls in `Evaluate`."""
    body = tuple(body)
    calls = (s.call for s in statements(body) if isinstance(s, nodes.Evaluate))
    args = (a for call in calls if isinstance(call, nodes.Call) for a in call.args)
    return writes(body) | {a.name for a in args if isinstance(a, nodes.Var)}


def called(body: Iterable[Stmt]) -> Iterator[Function]:
    """The function of each call, ``fwd_diff`` and ``bwd_diff`` in a body."""
    for statement in statements(body):
        if isinstance(statement, nodes.BackwardDiff):
            yield statement.function
        for e in expressions(statement):
            if isinstance(e, nodes.Call | nodes.ForwardDiff):
                yield e.function


def reachable(body: Block) -> list[Function]:
    """Functions that `body` calls, directly or not, callees first; their derivatives excluded."""
    ordered: dict[Function, None] = {}

    def visit(block: Block) -> None:
        for f in called(block):
            if f not in ordered:
                visit(f.body)
                ordered[f] = None

    visit(body)
    return list(ordered)


def has_own_backward(f: Function) -> bool:
    """True if `f`, or a function that it calls, has a user-defined backward derivative."""
    return any(g.backward is not None for g in (f, *reachable(f.body)))


def has_loops(f: Function) -> bool:
    """True if a call of `f` runs a loop."""
    return any(isinstance(s, nodes.For | nodes.While) for s in all_statements(f))


def writes_memory(node: Function | Expr) -> bool:
    """True if a call of a function, or an expression, writes to an array or prints."""
    functions = (node,) if isinstance(node, Function) else called((nodes.Evaluate(call=node),))
    kinds = nodes.Store | nodes.Accumulate | nodes.AccumulateGradient | nodes.Print
    return any(isinstance(s, kinds) for f in functions for s in all_statements(f))


def has_effect(e: Expr) -> bool:
    """True if evaluating `e` twice, or not at all, differs from evaluating it once."""
    functions = called((nodes.Evaluate(call=e),))
    asserts = any(isinstance(s, nodes.Assert) for f in functions for s in all_statements(f))
    return asserts or writes_memory(e)


def writes_to(f: Function, buffers: Container[str]) -> bool:
    """True if a call of `f` stores or accumulates to one of `buffers`."""
    stores = (s for s in all_statements(f) if isinstance(s, nodes.Store | nodes.Accumulate))
    return any(s.buffer in buffers for s in stores)


def all_statements(f: Function) -> Iterator[Stmt]:
    """Every statement of `f` and of the functions that it calls."""
    return (s for g in (f, *reachable(f.body)) for s in statements(g.body))


def touched_buffers(body: Iterable[Stmt]) -> Iterator[str]:
    """The buffer of each access in a body; called functions are not entered."""
    for statement in statements(body):
        if isinstance(statement, nodes.Store | nodes.Accumulate | nodes.AccumulateGradient):
            yield statement.buffer
        if isinstance(statement, nodes.Accumulate) and statement.tangent_buffer:
            yield statement.tangent_buffer
        for e in expressions(statement):
            if isinstance(e, nodes.Load):
                yield e.buffer


def rewrite_expression(e: Expr, change: ExprRewrite) -> Expr:
    """`e` with `change` applied to every node, operands first."""
    return change(map_children(e, lambda child: rewrite_expression(child, change)))


def rewrite_statement(s: Stmt, change: ExprRewrite) -> Stmt:
    """`s` with `change` applied to every expression, including those of nested statements."""
    return map_children(s, lambda child: rewrite_expression(child, change))


def rewrite_body(body: Block, change: ExprRewrite) -> Block:
    return tuple(rewrite_statement(s, change) for s in body)


def map_children(node: _Node, change: ExprRewrite) -> _Node:
    """`node` with `change` applied to its children, including those of nested statements."""
    updates: dict[str, Any] = {}
    for name in _part_names(type(node)):
        value: Any = getattr(node, name)
        new = _mapped(value, change)
        if new is not value:
            updates[name] = new
    return replace(node, **updates) if updates else node


def map_statement(s: Stmt, change: ExprRewrite, block: Callable[[Block], Block]) -> Stmt:
    """`s` with `change` applied to its children and `block` to its blocks."""
    updates: dict[str, Any] = {}
    for name in _part_names(type(s)):
        value: Any = getattr(s, name)
        new = block(value) if name in _BLOCKS else _mapped(value, change)
        if new is not value:
            updates[name] = new
    return replace(s, **updates) if updates else s


def map_blocks(s: Stmt, change: Callable[[Block], Block]) -> Stmt:
    """`s` with `change` applied to its blocks."""
    return map_statement(s, lambda e: e, change) if blocks(s) else s


def map_statements(body: Block, change: Callable[[Stmt], Iterable[Stmt]]) -> Block:
    """`body` with each statement replaced by those that `change` gives, nested ones first."""

    def block(inner: Block) -> Block:
        return tuple(new for s in inner for new in change(map_blocks(s, block)))

    return block(body)


def map_indices(path: tuple[Step, ...], change: ExprRewrite) -> tuple[Step, ...]:
    """`path` with `change` applied to its element indices."""
    return _mapped(path, change)


def _mapped(value: Any, change: ExprRewrite) -> Any:
    if isinstance(value, Expr):
        return change(value)
    if isinstance(value, tuple):
        old = cast("tuple[Any, ...]", value)
        items = [_mapped(v, change) for v in old]
        return old if all(map(is_, items, old)) else tuple(items)
    if isinstance(value, Stmt):
        return map_children(value, change)
    if isinstance(value, nodes.ElementStep):
        index = change(value.index)
        return value if index is value.index else nodes.ElementStep(index=index)
    return value


def path_value(name: Expr, path: tuple[Step, ...]) -> Expr | None:
    """The expression that reads ``name<path>``; `None` if a step does not fit its type."""
    value = name
    for step in path:
        part = step_type(value.type, step)
        if part is None:
            return None
        if isinstance(step, nodes.FieldStep):
            value = nodes.Field(type=part, value=value, name=step.name)
        elif isinstance(step, nodes.SwizzleStep):
            value = nodes.Swizzle(type=part, value=value, components=step.components)
        elif isinstance(step, nodes.ElementStep):
            value = nodes.Element(type=part, value=value, index=step.index)
        else:
            value = nodes.PairPart(type=part, value=value, part="d")
    return value


def step_type(t: Type, step: Step) -> Type | None:
    """The type of the part that `step` selects from a value of type `t`; `None` if it has none."""
    if isinstance(step, nodes.FieldStep) and isinstance(t, Struct | Tuple):
        return t.type_by_field.get(step.name)
    if isinstance(step, nodes.SwizzleStep) and isinstance(t, Vector):
        count = len(step.components)
        return t.element if count == 1 else Vector(t.element, count)
    if isinstance(step, nodes.ElementStep):
        if isinstance(t, Matrix):
            return t.row
        return t.element if isinstance(t, Vector | LocalArray) else None
    return tangent(t.primal) if isinstance(t, Pair) else None


# -- synthetic names --------------------------------------------------------------------------

_PRIME = "'"
"""No Python identifier holds one, so a synthetic name never collides with a name of the user.
`lower/write/names.py` spells it without the prime."""


def made_name(stem: str, taken: Container[str] = ()) -> str:
    """A synthetic name that starts with `stem` and is not in `taken`."""
    name, number = f"{stem}{_PRIME}", 1
    while name in taken:
        number += 1
        name = f"{stem}{_PRIME}{number}"
    return name


def new_local(stem: str, t: Type, local_types: dict[str, Type]) -> nodes.Var:
    """A local of type `t` with a synthetic name, which is added to `local_types`."""
    name = made_name(stem, local_types)
    local_types[name] = t
    return nodes.Var(type=t, name=name)


def stem_of(name: str) -> str:
    """The stem of a synthetic name; any other name itself."""
    return name.partition(_PRIME)[0]
