"""Decides which unrolled loops are read once for each value of their variable.

Lowering unrolls ``static_range`` loops, whose variable is an int of the kernel. Where the body
needs the variable while compiling (an exponent, a bound of another ``static_range``, a ``limit=``,
an argument for a `sad.Const` parameter), the front end repeats the body instead. Invariant: a
repeated body has no ``break`` or ``continue`` of its own loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from shaderad.diagnostics import LanguageError
from shaderad.frontend.body import BodyReader
from shaderad.language.annotations import ConstType
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import KernelForm
from shaderad.language.signatures import signature_of
from shaderad.language.values import Host, Value


def repeats_as_numbers(body: BodyReader, loop: ast.For, name: str) -> bool:
    """True if the body of an unrolled loop needs its variable `name` while compiling."""
    parts = (part for s in loop.body for node in ast.walk(s) for part in _constants(body, node))
    return any(_mentions(part, name) for part in parts) and not _is_left(loop.body)


def _constants(body: BodyReader, node: ast.AST) -> Iterator[ast.expr]:
    """The operands of one node that must be, or should be, constants."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        yield node.right
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Pow):
        yield node.value
    elif isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == "limit")
        yield from _numbers_of(_callee(body, node.func), node)


def _callee(body: BodyReader, node: ast.expr) -> Value | None:
    """The callee; `None` where it depends on names that the loop assigns."""
    try:
        return body.value(node) if isinstance(node, ast.Name | ast.Attribute) else None
    except LanguageError:
        return None


def _numbers_of(callee: Value | None, call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that may have to be constants."""
    thing = callee.object if isinstance(callee, Host) else None
    arguments = [*call.args, *(k.value for k in call.keywords)]
    if thing == KernelForm("limit"):
        return arguments[1:]
    if isinstance(thing, UserFunction):
        types = [t for _, t in signature_of(thing).parameters]
        return arguments if any(isinstance(t, ConstType) for t in types) else []
    return arguments if thing == KernelForm("static_range") else []


def _mentions(part: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(part))


def _is_left(statements: Iterable[ast.stmt]) -> bool:
    """True if the loop over these statements has a ``break`` or ``continue``."""
    for s in statements:
        if isinstance(s, ast.Break | ast.Continue):
            return True
        if isinstance(s, ast.If) and _is_left([*s.body, *s.orelse]):
            return True
    return False
