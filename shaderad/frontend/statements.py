"""Python statements -> IR statements: control flow, calls for their effect, asserts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import EllipsisType, MappingProxyType

from shaderad.frontend import assignments, derivatives, loops, printing
from shaderad.frontend.body import BodyReader, join
from shaderad.frontend.choices import chain_at, read_chain
from shaderad.frontend.conversions import coerce, expr
from shaderad.frontend.expressions import read_condition
from shaderad.ir.nodes import Assert, Break, Call, Continue, Evaluate, Expr, If, Return
from shaderad.ir.types import VOID, Void
from shaderad.ir.walk import has_effect
from shaderad.language.values import Derivative, PythonNumber, describe


def read_block(body: BodyReader, statements: list[ast.stmt]) -> None:
    """Reads statements in order; the entry point of this module."""
    position = 0
    while position < len(statements):
        node = statements[position]
        chain = chain_at(statements, position)
        if chain is not None and read_chain(body, chain):
            position += chain.statement_count
            continue
        position += 1
        reader = _READERS.get(type(node))
        if reader is None:
            unknown = (f"`{type(node).__name__}`", "write it another way")
            syntax, help_ = _REFUSED.get(type(node), unknown)
            raise body.error("SR0202", node, found=syntax, help=help_)
        reader(body, node)


def _pass(body: BodyReader, node: ast.Pass) -> None:
    """Emits nothing."""


def _expression(body: BodyReader, node: ast.Expr) -> None:
    """A docstring, ``...``, or a call with an effect."""
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str | EllipsisType):
        return
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name) and printing.is_print(body, value.func):
            body.emit(printing.read_print(body, value))
            return
        if isinstance(value.func, ast.Call):
            callee = body.value(value.func)
            if isinstance(callee, Derivative) and not callee.is_forward:
                body.emit(derivatives.call_backward(body, callee, value))
                return
        call = body.value(value)
        if isinstance(call, Call):
            if not has_effect(call):
                raise body.error("SR0241", node, name=call.function.name)
            body.emit(Evaluate(call=call, span=body.span(node)))
            return
    raise body.error("SR0216", node)


def _if(body: BodyReader, node: ast.If) -> None:
    test = read_condition(body, node.test)
    if isinstance(test, PythonNumber):
        read_block(body, node.body if test.value else node.orelse)
        return
    scope = body.scope
    before = scope.assigned
    then = body.read_block(node.body)
    after_then, scope.assigned = scope.assigned, before
    otherwise = body.read_block(node.orelse)
    scope.assigned = join(after_then, scope.assigned)
    body.emit(If(condition=test, then=then, otherwise=otherwise, span=body.span(node.test)))


def _break(body: BodyReader, node: ast.Break) -> None:
    body.scope.loops[-1].breaks.append(body.scope.assigned)
    body.scope.assigned = None
    body.emit(Break(span=body.span(node)))


def _continue(body: BodyReader, node: ast.Continue) -> None:
    body.scope.loops[-1].continues.append(body.scope.assigned)
    body.scope.assigned = None
    body.emit(Continue(span=body.span(node)))


def _return(body: BodyReader, node: ast.Return) -> None:
    """Leaves the function.

    Raises:
        LanguageError: SR0218 for a value returned by a kernel, SR0220 where returns disagree.
    """
    source = node.value
    if isinstance(source, ast.Constant) and source.value is None:
        source = None
    result = None
    if source is not None:
        result = _result(body, node, source)
        body.result = result.type  # with the targets of pointers
    elif not body.is_kernel:
        body.result = body.result or VOID
        if not isinstance(body.result, Void):
            raise body.error("SR0220", node, found="nothing", wanted=f"`{body.result}`")
    body.emit(Return(value=result, span=body.span(node)))
    body.scope.assigned = None


def _result(body: BodyReader, node: ast.Return, source: ast.expr) -> Expr:
    if body.is_kernel:
        raise body.error("SR0218", node)
    value, span = body.value(source), body.span(source)
    if body.result is None:
        return expr(value, span)
    if isinstance(body.result, Void):
        raise body.error("SR0220", node, found=describe(value), wanted="nothing")
    return coerce(value, body.result, span)


def _assert(body: BodyReader, node: ast.Assert) -> None:
    test = read_condition(body, node.test)
    text = ast.unparse(node.test)
    if node.msg is not None:
        if not isinstance(node.msg, ast.Constant) or not isinstance(node.msg.value, str):
            raise body.error("SR0221", node.msg)
        text = node.msg.value
    if isinstance(test, PythonNumber):
        if not test.value:
            raise body.error("SR0222", node, text=text)
        return
    body.emit(Assert(condition=test, text=text, span=body.span(node)))


_READERS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Pass: _pass,
    ast.Expr: _expression,
    ast.Assign: assignments.assign,
    ast.AnnAssign: assignments.annotated,
    ast.AugAssign: assignments.augmented,
    ast.If: _if,
    ast.For: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Assert: _assert,
}

_REFUSED: Mapping[type[ast.stmt], tuple[str, str]] = MappingProxyType({
    ast.FunctionDef: ("a nested `def`", "define a `@sad.function` outside of the kernel"),
    ast.AsyncFunctionDef: ("`async def`", "define a `@sad.function` outside of the kernel"),
    ast.ClassDef: ("a nested class", "define a `@sad.struct` outside of the kernel"),
    ast.Try: ("`try`", "nothing raises in a kernel; test the condition with `if`"),
    ast.TryStar: ("`try`", "nothing raises in a kernel; test the condition with `if`"),
    ast.Raise: ("`raise`", "`assert condition, \"text\"` reports a failure"),
    ast.With: ("`with`", "kernels have no context managers"),
    ast.AsyncWith: ("`async with`", "kernels have no context managers"),
    ast.AsyncFor: ("`async for`", "write `for i in range(n):`"),
    ast.Global: ("`global`", "write results to an `sad.Out` array"),
    ast.Nonlocal: ("`nonlocal`", "write results to an `sad.Out` array"),
    ast.Delete: ("`del`", "locals end with the function"),
    ast.Import: ("`import`", "import at the top of the file"),
    ast.ImportFrom: ("`import`", "import at the top of the file"),
    ast.Match: ("`match`", "write `if` and `elif`"),
})  # fmt: skip
"""Syntax that kernels do not have: its name, and a replacement."""
