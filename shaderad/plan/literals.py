"""Numbers that kernels of the user read and that need no memory: constants and sizes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from shaderad.ir import arrays, nodes
from shaderad.ir.types import Kind, Scalar, Vector

if TYPE_CHECKING:
    from shaderad.ir.arrays import Node, Value
    from shaderad.ir.sizes import Size

_FORMATS = {Kind.FLOAT: "<f", Kind.HALF: "<e", Kind.DOUBLE: "<d"}


def literal_words(value: Value) -> tuple[Size, ...] | None:
    """The words of a number that the host knows whenever sizes are known; `None` for others."""
    node = value.producer
    if isinstance(node, arrays.SizeOf):
        return (node.size,)
    if isinstance(node, arrays.Elementwise) and not node.operands and not value.shape:
        return _words(node.expr)
    return None


def literal_operands(node: Node) -> frozenset[Value]:
    """The operands of a kernel that are such numbers and uniforms of it."""
    if isinstance(node, arrays.KernelPull | arrays.KernelPush):
        call = node.call
    elif isinstance(node, arrays.KernelCall):
        call = node
    else:
        return frozenset()
    uniforms = {u.name for u in call.kernel.uniforms}
    pairs = zip(call.names, node.operands, strict=False)
    return frozenset(
        v for name, v in pairs if name in uniforms and literal_words(v) is not None
    ).difference(node.operands[len(call.names) :])


def _words(e: nodes.Expr) -> tuple[int, ...] | None:
    if isinstance(e, nodes.Const) and isinstance(e.type, Scalar):
        if e.type.kind in (Kind.BOOL, Kind.INT, Kind.UINT):
            return (int(e.value),)
        try:
            content = struct.pack(_FORMATS[e.type.kind], e.value)
        except OverflowError:
            return None
        if e.type.kind is Kind.HALF:  # its word holds a float
            content = struct.pack("<f", *struct.unpack("<e", content))
        return struct.unpack(f"<{len(content) // 4}I", content)
    if isinstance(e, nodes.Construct) and isinstance(e.type, Vector):
        parts = [_words(part) for part in e.parts]
        known = [words for words in parts if words is not None]
        return None if len(known) < len(parts) else tuple(w for words in known for w in words)
    return None
