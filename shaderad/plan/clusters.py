"""Fused nodes -> the kernel that stores some of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import arrays, nodes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.types import Access
from shaderad.ir.walk import children
from shaderad.plan.kernels import Work, Writer, write_kernel
from shaderad.rules.expressions import in_order


def cluster(values: Sequence[Value], is_stored: Callable[[Value], bool]) -> Work:
    """One kernel that computes `values`, which have one shape."""
    names = [f"y{k}" for k in range(len(values))]

    def body(writer: Writer) -> list[Stmt]:
        written = writer.written(writer.values(values))
        stores = [
            nodes.Store(buffer=name, indices=writer.index(), value=element)
            for name, element in zip(names, written.values, strict=True)
        ]
        return [*written.body, *stores]

    outputs = [(name, v, Access.OUT) for name, v in zip(names, values, strict=True)]
    return write_kernel(kernel_name(values), values[0].shape, is_stored, body, outputs)


def kernel_name(values: Sequence[Value]) -> str:
    """A name that says what is computed: the last op, or the last move."""
    node = values[-1].producer
    if isinstance(node, arrays.Elementwise):
        return _name_of(node.expr)
    return "input" if node is None else type(node).__name__.lower()


def _name_of(e: Expr) -> str:
    for part in reversed(in_order(e)):
        if isinstance(part, nodes.Call):
            return f"map_{part.function.name}"
        if isinstance(part, nodes.Apply):
            return f"map_{part.op.name}"
        if not list(children(part)):
            break
    return "map_elements"
