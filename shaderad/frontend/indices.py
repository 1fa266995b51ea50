"""What stands in ``[..]``: one int, inside its range where it is known while compiling."""

from __future__ import annotations

import ast

from shaderad.diagnostics import counted
from shaderad.frontend.body import Body
from shaderad.frontend.conversions import constant
from shaderad.frontend.intrinsics import KernelForm
from shaderad.frontend.operators import as_known
from shaderad.frontend.values import Host, describe
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT


def index_of(body: Body, node: ast.expr, count: int | None, owner: str) -> Expr:
    """One index as an int expression."""
    value = body.value(node)
    known = as_known(value)
    if known is not None and type(known.value) is int:
        if known.value < 0 or (count is not None and known.value >= count):
            why = "positions count from 0" if count is None else _size(count)
            raise body.error("SR0308", node, found=known.value, owner=owner, why=why)
        return constant(known, INT, body.span(node))
    if isinstance(value, Expr) and value.type == INT:
        return value
    if isinstance(value, Host) and isinstance(value.object, KernelForm):
        raise body.error("SR0211", node)
    raise body.error("SR0309", node, found=describe(value))


def constant_index(body: Body, node: ast.expr, count: int) -> int:
    value = body.value(node)
    known = as_known(value)
    if known is None or type(known.value) is not int:
        raise body.error("SR0319", node, found=describe(value))
    if not -count <= known.value < count:
        raise body.error("SR0308", node, found=known.value, owner="the tuple", why=_size(count))
    return known.value % count


def _size(count: int) -> str:
    return f"it has {counted(count, 'element')}"
