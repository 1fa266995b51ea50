"""``print(...)`` -> one `Print`: a text with gaps for values.

Constants become text while compiling. Formats are those of Python for the type, so that a line from
a device reads as `kernel.debug` prints it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from shaderad.diagnostics import error
from shaderad.frontend.body import BodyReader
from shaderad.ir.nodes import Expr, Print
from shaderad.ir.shown import PrintForm, is_printable, why_no_format
from shaderad.language.values import EnumMember, PythonNumber, Sequence, Value, describe

MAX_WORDS = 256
"""Largest number of words of one ``print``: generated code has a line for each."""
_OPTIONS = {"sep": " ", "end": "\n"}

Part = str | tuple[Expr, str]
"""A text, or a value with its format."""


def is_print(body: BodyReader, callee: ast.Name) -> bool:
    """True if a name refers to Python's ``print``."""
    return _captured(body, callee) is builtins.print


def _captured(body: BodyReader, name: ast.Name) -> object:
    """The captured object that a name refers to; `None` for locals and parameters."""
    if name.id in body.scope.names.bound or name.id in body.scope.parameters:
        return None
    return body.unit.captures.name(body.function.python, name.id)


def read_print(body: BodyReader, node: ast.Call) -> Print:
    """A call of ``print``.

    Raises:
        LanguageError: SR0233 for arguments that kernels do not have, SR0260 for values without
            text, SR0261 for a format that does not fit, SR0262 for too many words, SR0263 where
            `sep` or `end` is no constant.
    """
    options = dict(_OPTIONS)
    for keyword in node.keywords:
        if keyword.arg not in options:
            raise body.unknown_keyword(keyword)
        options[keyword.arg] = _option(body, keyword.arg, keyword.value)
    parts: list[Part] = []
    for k, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            raise body.error("SR0233", argument, found="`*`")
        parts += [options["sep"]] if k else []
        parts += _argument(body, argument)
    return _print(body, node, [*parts, options["end"]])


def _option(body: BodyReader, name: str, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and node.value is None:
        return _OPTIONS[name]
    text = _known_text(body, node)
    if text is None:
        raise body.error("SR0263", node, name=f"`{name}`")
    return text


def _print(body: BodyReader, node: ast.Call, parts: list[Part]) -> Print:
    """The statement that prints `parts`, with adjacent texts joined."""
    texts: list[str] = [""]
    values: list[tuple[Expr, str]] = []
    for part in parts:
        if isinstance(part, str):
            texts[-1] += part
        else:
            values.append(part)
            texts.append("")
    types = tuple(value.type for value, _ in values)
    form = PrintForm(tuple(texts), types, tuple(spec for _, spec in values))
    if form.word_count > MAX_WORDS:
        raise body.error("SR0262", node, count=form.word_count, limit=MAX_WORDS)
    return Print(form=form, values=tuple(value for value, _ in values), span=body.span(node))


# -- arguments --------------------------------------------------------------------------------


def _argument(body: BodyReader, node: ast.expr) -> Iterator[Part]:
    text = _known_text(body, node)
    if text is not None:
        yield text
    elif isinstance(node, ast.JoinedStr):
        for piece in node.values:
            yield from _piece(body, piece)
    else:
        yield from _value(body, node, body.value(node), "")


def _known_text(body: BodyReader, node: ast.expr) -> str | None:
    """A string of the Python program; `None` for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    captured = _captured(body, node) if isinstance(node, ast.Name) else None
    return captured if isinstance(captured, str) else None


def _piece(body: BodyReader, node: ast.expr) -> Iterator[Part]:
    """A text of an f-string, or the value in its braces."""
    if not isinstance(node, ast.FormattedValue):
        yield from _argument(body, node)
        return
    spec = "".join(_spec(body, node.format_spec)) if node.format_spec is not None else ""
    text = _known_text(body, node.value)
    if text is not None:
        yield format(repr(text) if node.conversion == ord("r") else text, spec)
        return
    value = body.value(node.value)
    if node.conversion >= 0 and spec:
        why = "`!` makes a text of the value, which has none yet"
        raise body.error("SR0261", node.value, spec=spec, found=describe(value), why=why)
    yield from _value(body, node.value, value, spec)


def _spec(body: BodyReader, node: ast.expr) -> Iterator[str]:
    """The parts of a format, which are constants."""
    assert isinstance(node, ast.JoinedStr)
    for piece in node.values:
        for part in _piece(body, piece):
            if not isinstance(part, str):
                raise error("SR0263", part[0].span, name="the format")
            yield part


def _value(body: BodyReader, node: ast.expr, value: Value, spec: str) -> Iterator[Part]:
    if isinstance(value, PythonNumber):
        yield _number_text(body, node, value, spec)
    elif isinstance(value, Sequence) and not spec:
        yield "("
        for k, part in enumerate(value.parts):
            yield ", " if k else ""
            yield from _value(body, node, part, "")
        yield ",)" if len(value.parts) == 1 else ")"
    elif isinstance(value, Expr) and is_printable(value.type):
        why = why_no_format(spec, value.type) if spec else ""
        if why:
            raise body.error("SR0261", node, spec=spec, found=f"`{value.type}`", why=why)
        yield value, spec
    else:
        raise body.error("SR0260", node, found=describe(value))


def _number_text(body: BodyReader, node: ast.expr, value: PythonNumber, spec: str) -> str:
    """The text of a number of the Python program."""
    number: Any = value.value
    if isinstance(value, EnumMember) and value.enum is not None:
        number = value.enum(number)
    try:
        return format(number, spec)
    except (ValueError, OverflowError, TypeError) as failure:
        why = str(failure)
    raise body.error("SR0261", node, spec=spec, found=describe(value), why=why)
