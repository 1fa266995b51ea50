"""Python statements -> IR statements: control flow, calls for their effect, asserts."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import EllipsisType

from shaderad.frontend import assignments, derivatives, loops, operators, printing
from shaderad.frontend.body import BodyReader
from shaderad.frontend.choices import chain_at, read_chain
from shaderad.frontend.conversions import coerce, expr
from shaderad.frontend.effects import has_effect
from shaderad.frontend.refusals import STATEMENTS
from shaderad.frontend.scope import join
from shaderad.ir.nodes import Assert, Break, Call, Continue, Evaluate, If, Return
from shaderad.ir.types import VOID, Void
from shaderad.language.values import Derivative, PythonNumber, describe


def read_block(body: BodyReader, statements: list[ast.stmt]) -> None:
    """Reads statements in order; the entry point of this module.

    Raises:
        LanguageError: SR0202 for syntax that kernels do not have, and the errors of its parts.
    """
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
            found, help_ = STATEMENTS.get(
                type(node), (f"`{type(node).__name__}`", "write it another way")
            )
            raise body.error("SR0202", node, found=found, help=help_)
        reader(body, node)


def _pass(body: BodyReader, node: ast.Pass) -> None:
    """Emits nothing."""


def _expression(body: BodyReader, node: ast.Expr) -> None:
    """A docstring, ``...``, or a call with an effect.

    Raises:
        LanguageError: SR0216 for an unused value, SR0241 for a call without effect.
    """
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
    test = operators.condition(body.value(node.test), body.span(node.test))
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
    scope = body.scope
    scope.loops[-1].breaks.append(scope.assigned)
    scope.assigned = None
    body.emit(Break(span=body.span(node)))


def _continue(body: BodyReader, node: ast.Continue) -> None:
    scope = body.scope
    scope.loops[-1].continues.append(scope.assigned)
    scope.assigned = None
    body.emit(Continue(span=body.span(node)))


def _return(body: BodyReader, node: ast.Return) -> None:
    """Leaves the function.

    Raises:
        LanguageError: SR0218 for a value returned by a kernel, SR0220 where returns disagree.
    """
    span = body.span(node)
    is_empty = node.value is None or (
        isinstance(node.value, ast.Constant) and node.value.value is None
    )
    if is_empty or node.value is None:
        _agree_on_nothing(body, node)
        body.emit(Return(span=span))
    else:
        if body.is_kernel:
            raise body.error("SR0218", node)
        value = body.value(node.value)
        where = body.span(node.value)
        if body.result is None:
            result = expr(value, where)
            body.result = result.type
        elif isinstance(body.result, Void):
            raise body.error("SR0220", node, found=describe(value), wanted="nothing")
        else:
            result = coerce(value, body.result, where)
            body.result = result.type  # with the targets of pointers
        body.emit(Return(value=result, span=span))
    body.scope.assigned = None


def _agree_on_nothing(body: BodyReader, node: ast.Return) -> None:
    if body.is_kernel:
        return
    if body.result is None:
        body.result = VOID
    if not isinstance(body.result, Void):
        raise body.error("SR0220", node, found="nothing", wanted=f"`{body.result}`")


def _assert(body: BodyReader, node: ast.Assert) -> None:
    test = operators.condition(body.value(node.test), body.span(node.test))
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
