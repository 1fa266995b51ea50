"""Python expressions -> typed values: names, operators, conditionals, tuples.

``attributes.py``, ``subscripts.py`` and ``calls.py`` read the other expressions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from shaderad.diagnostics import Error, Span
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.frontend import attributes, calls, operators, subscripts
from shaderad.frontend.body import BodyReader
from shaderad.frontend.calls import NO_COLLECTION
from shaderad.frontend.captured import value_of
from shaderad.frontend.conversions import double_help, expr, unify
from shaderad.ir.nodes import Conditional, Expr, Logical, Splat, Var
from shaderad.ir.types import BOOL, INT
from shaderad.language.values import MISSING, PythonNumber, Sequence, Value, describe


def read(body: BodyReader, node: ast.expr, is_target: bool) -> Value:
    """The value of an expression; the entry point of this module."""
    if isinstance(node, ast.Attribute):
        return attributes.attribute(body, node, is_target)
    if isinstance(node, ast.Subscript):
        return subscripts.subscript(body, node, is_target)
    reader = _READERS.get(type(node))
    if reader is not None:
        return reader(body, node)
    syntax, help_ = _REFUSED.get(type(node), (f"`{type(node).__name__}`", "write it another way"))
    raise body.error("SR0202", node, found=syntax, help=help_)


def _constant(body: BodyReader, node: ast.Constant) -> Value:
    if isinstance(node.value, bool | int | float):
        return PythonNumber(node.value, body.span(node))
    literal = "a complex number" if isinstance(node.value, complex) else f"`{node.value!r}`"
    raise body.error("SR0202", node, found=literal, help="kernels compute with numbers and bools")


def _name(body: BodyReader, node: ast.Name) -> Value:
    scope, name, span = body.scope, node.id, body.span(node)
    if name in scope.names.bound:
        return _local(body, node)
    if name in scope.parameters:
        value = scope.parameters[name]
        return Var(type=value.type, name=value.name, span=span) if isinstance(value, Var) else value
    captured = body.unit.captures.name(body.function.python, name)
    if captured is MISSING:
        names = {*scope.names.bound, *scope.parameters, *body.function.python.__globals__}
        raise body.error("SR0203", node, name=name, remedy=remedy_for(name, names))
    return value_of(body, captured, name, span)


def _local(body: BodyReader, node: ast.Name) -> Value:
    scope, span = body.scope, body.span(node)
    if node.id in scope.numbers:
        return replace(scope.numbers[node.id], span=span)
    if node.id in scope.loop_variables:
        return Var(type=INT, name=node.id, span=span)
    if body.is_fixed(node.id):
        return scope.parameters[node.id]
    name = scope.local_name_by_name.get(node.id, node.id)
    is_parameter = node.id in scope.parameters
    if not is_parameter and (name not in scope.types or not scope.is_assigned(name)):
        raise _unassigned(body, node)
    return Var(type=scope.types[name], name=name, span=span)


def _unassigned(body: BodyReader, node: ast.Name) -> Error:
    if node.id in body.scope.types:
        why = "some path to here does not assign it: a branch, or a loop that may run zero times"
    else:
        why = "it is assigned further down, which makes it a local name"
    return body.error("SR0204", node, name=node.id, why=why)


def _binary(body: BodyReader, node: ast.BinOp) -> Value:
    left, right = body.value(node.left), body.value(node.right)
    return operators.binary(node.op, left, right, body.span(node))


def _unary(body: BodyReader, node: ast.UnaryOp) -> Value:
    return operators.unary(node.op, body.value(node.operand), body.span(node))


def read_condition(body: BodyReader, node: ast.expr) -> Expr | PythonNumber:
    """An expression as a condition; raises as `operators.condition`."""
    return operators.condition(body.value(node), body.span(node))


def _logical(body: BodyReader, node: ast.BoolOp) -> Value:
    """``a and b and c``: a constant operand decides the result, or is dropped."""
    is_and = isinstance(node.op, ast.And)
    left = read_condition(body, node.values[0])
    for operand in node.values[1:]:
        if isinstance(left, PythonNumber) and left.value != is_and:
            return left
        with body.conditional():
            right = read_condition(body, operand)
        if isinstance(left, PythonNumber):
            left = right
        elif not isinstance(right, PythonNumber) or right.value != is_and:
            left = _joined(is_and, left, expr(right, body.span(operand)), body.span(node))
    return left


def _compare(body: BodyReader, node: ast.Compare) -> Value:
    """``a < b < c`` is ``a < b and b < c`` with `b` evaluated once."""
    span = body.span(node)
    result: Value | None = None
    left = body.value(node.left)
    for index, (symbol, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
        right = body.value(right_node)
        if index + 1 < len(node.ops) and isinstance(right, Expr):
            right = body.once(right, "middle", right_node)
        part = operators.compare(symbol, left, right, span)
        result = part if result is None else _both(result, part, span)
        left = right
    assert result is not None
    return result


def _both(left: Value, right: Value, span: Span) -> Value:
    first, second = operators.condition(left, span), operators.condition(right, span)
    for part, other in ((first, second), (second, first)):
        if isinstance(part, PythonNumber):
            return other if part.value else part
    return _joined(True, expr(first, span), expr(second, span), span)


def _joined(is_and: bool, left: Expr, right: Expr, span: Span) -> Logical:
    return Logical(type=BOOL, is_and=is_and, left=left, right=right, span=span)


def _conditional(body: BodyReader, node: ast.IfExp) -> Value:
    test = read_condition(body, node.test)
    if isinstance(test, PythonNumber):
        return body.value(node.body if test.value else node.orelse)
    with body.conditional():
        sides = (body.value(node.body), body.value(node.orelse))
    span = body.span(node)
    agreed = unify(sides, span) or tuple(
        expr(s, body.span(n)) for s, n in zip(sides, (node.body, node.orelse), strict=True)
    )
    if_true, if_false = agreed
    is_repeated = any(
        isinstance(a, Splat) and a is not s for a, s in zip(agreed, sides, strict=True)
    )
    if if_true.type != if_false.type or is_repeated:
        raise body.error("SR0304", node, symbol="if-else", left=describe(sides[0]),
                         right=describe(sides[1]),
                         help=double_help(sides) or "give both sides one type")  # fmt: skip
    return Conditional(
        type=if_true.type, condition=test, if_true=if_true, if_false=if_false, span=span
    )


def _tuple(body: BodyReader, node: ast.Tuple) -> Value:
    return Sequence(tuple(body.value(e) for e in node.elts), body.span(node))


_READERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logical,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Tuple: _tuple,
    ast.Call: calls.call,
}

_LOOP = "write a `for` loop"

_REFUSED: Mapping[type[ast.expr], tuple[str, str]] = MappingProxyType({
    ast.Lambda: ("`lambda`", "define a `@sad.function`"),
    ast.ListComp: ("a list comprehension", f"{_LOOP} over a `sad.LocalArray`"),
    ast.SetComp: ("a set comprehension", _LOOP),
    ast.DictComp: ("a dict comprehension", _LOOP),
    ast.GeneratorExp: ("a generator expression", f"{_LOOP} that adds up"),
    ast.List: ("a list", NO_COLLECTION),
    ast.Dict: ("a dict", "write a `@sad.struct`"),
    ast.Set: ("a set", NO_COLLECTION),
    ast.JoinedStr: ("an f-string", "kernels have no text but that of `print` and `assert`"),
    ast.NamedExpr: ("`:=`", "assign in a statement of its own"),
    ast.Await: ("`await`", "a kernel runs to its end without waiting"),
    ast.Yield: ("`yield`", "write results to an `sad.Out` array"),
    ast.YieldFrom: ("`yield from`", "write results to an `sad.Out` array"),
    ast.Starred: ("`*`", "write every element out"),
    ast.Slice: ("a slice", "read the elements one by one in a loop"),
})  # fmt: skip
"""Syntax that kernels do not have: its name, and a replacement."""
