"""Indices of subscripts: ints; constant ones are checked against the range."""

from __future__ import annotations

import ast

from shaderad.diagnostics import counted
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import constant
from shaderad.frontend.operators import as_number
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT
from shaderad.language.intrinsics import KernelForm
from shaderad.language.values import Host, describe


def index_of(body: BodyReader, node: ast.expr, count: int | None, owner: str) -> Expr:
    """An index as an int expression, below `count` unless that is `None`."""
    value = body.value(node)
    number = as_number(value)
    if number is not None and type(number.value) is int:
        if number.value < 0 or (count is not None and number.value >= count):
            why = "positions count from 0" if count is None else _size(count)
            raise body.error("SR0308", node, found=number.value, owner=owner, why=why)
        return constant(number, INT, body.span(node))
    if isinstance(value, Expr) and value.type == INT:
        return value
    if isinstance(value, Host) and isinstance(value.object, KernelForm):
        raise body.error("SR0211", node)
    raise body.error("SR0309", node, found=describe(value))


def constant_index(body: BodyReader, node: ast.expr, count: int) -> int:
    """An index into a tuple; negative ones count from the end."""
    value = body.value(node)
    number = as_number(value)
    if number is None or type(number.value) is not int:
        raise body.error("SR0319", node, found=describe(value))
    if not -count <= number.value < count:
        raise body.error("SR0308", node, found=number.value, owner="the tuple", why=_size(count))
    return number.value % count


def _size(count: int) -> str:
    return f"it has {counted(count, 'element')}"
