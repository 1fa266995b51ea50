"""``print(..)`` -> one `Print`: a text whose gaps are values.

What is known while compiling becomes text at once. Formats are those that Python itself takes for
the type, so that a line from a device reads as `kernel.debug` prints it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from shaderad.diagnostics import error
from shaderad.frontend.body import Body
from shaderad.frontend.values import Known, Member, Sequence, Value, describe
from shaderad.ir.nodes import Expr, Print
from shaderad.ir.shown import PrintForm, is_printable, why_no_format

MOST_WORDS = 256
"""Of the values of one ``print``: each is written by a line of its own."""
_OPTIONS = {"sep": " ", "end": "\n"}

Part = str | tuple[Expr, str]
"""A text, or a value with its format."""


def is_print(body: Body, callee: ast.Name) -> bool:
    """Whether a name stands for Python's ``print``."""
    names = body.scope
    if callee.id in names.names.bound or callee.id in names.parameters:
        return False
    return body.unit.captures.name(body.function.python, callee.id) is builtins.print


def read_print(body: Body, node: ast.Call) -> Print:
    """A call of ``print``.

    Raises:
        LanguageError: SR0233 for arguments that kernels do not have, SR0260 for what has no text,
            SR0261 for a format that does not fit, SR0262 for values that are too large, SR0263
            where `sep` or `end` is not known.
    """
    options = dict(_OPTIONS)
    for keyword in node.keywords:
        if keyword.arg not in options:
            raise body.error("SR0233", keyword.value, found=f"`{keyword.arg or '**'}=`")
        options[keyword.arg] = _option(body, keyword.arg, keyword.value)
    parts: list[Part] = []
    for k, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            raise body.error("SR0233", argument, found="`*`")
        parts += [options["sep"]] if k else []
        parts += _argument(body, argument)
    return _print(body, node, [*parts, options["end"]])


def _option(body: Body, name: str, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and node.value is None:
        return _OPTIONS[name]
    text = _known_text(body, node)
    if text is None:
        raise body.error("SR0263", node, name=f"`{name}`")
    return text


def _print(body: Body, node: ast.Call, parts: list[Part]) -> Print:
    """The parts with texts that follow each other as one."""
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
    if form.word_count > MOST_WORDS:
        raise body.error("SR0262", node, count=form.word_count, limit=MOST_WORDS)
    return Print(form=form, values=tuple(value for value, _ in values), span=body.span(node))


# -- arguments --------------------------------------------------------------------------------


def _argument(body: Body, node: ast.expr) -> Iterator[Part]:
    text = _known_text(body, node)
    if text is not None:
        yield text
    elif isinstance(node, ast.JoinedStr):
        for piece in node.values:
            yield from _piece(body, piece)
    else:
        yield from _value(body, node, body.value(node), "")


def _known_text(body: Body, node: ast.expr) -> str | None:
    """A string of the Python program; `None` for everything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.Name) or node.id in body.scope.names.bound:
        return None
    found = body.unit.captures.name(body.function.python, node.id)
    return found if node.id not in body.scope.parameters and isinstance(found, str) else None


def _piece(body: Body, node: ast.expr) -> Iterator[Part]:
    """A text of an f-string, or what stands in its braces."""
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


def _spec(body: Body, node: ast.expr) -> Iterator[str]:
    """The parts of a format, all of which are known."""
    assert isinstance(node, ast.JoinedStr)
    for piece in node.values:
        for part in _piece(body, piece):
            if not isinstance(part, str):
                raise error("SR0263", part[0].span, name="the format")
            yield part


def _value(body: Body, node: ast.expr, value: Value, spec: str) -> Iterator[Part]:
    if isinstance(value, Known):
        yield _known(body, node, value, spec)
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


def _known(body: Body, node: ast.expr, value: Known, spec: str) -> str:
    """The text of a number that the Python program knows."""
    found: Any = value.value
    if isinstance(value, Member) and value.enum is not None:
        found = value.enum(found)
    try:
        return format(found, spec)
    except (ValueError, OverflowError, TypeError) as failure:
        why = str(failure)
    raise body.error("SR0261", node, spec=spec, found=describe(value), why=why)
