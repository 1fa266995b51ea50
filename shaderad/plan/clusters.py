"""Values of one shape -> one kernel, each thread of which computes an element of each."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import arrays, nodes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Stmt
from shaderad.ir.types import Access
from shaderad.ir.walk import children
from shaderad.plan.kernels import IsStored, PlanKernel, Writer, write_kernel


def cluster(values: Sequence[Value], is_stored: IsStored) -> PlanKernel:
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
    return write_kernel(kernel_name(values[-1]), values[0].shape, is_stored, body, outputs)


def kernel_name(value: Value) -> str:
    """The name of a kernel that computes `value`: its last op, function or layout node."""
    node = value.producer
    if not isinstance(node, arrays.Elementwise):
        return "input" if node is None else type(node).__name__.lower()
    for part in reversed(in_order(node.expr)):
        if isinstance(part, nodes.Call):
            return f"map_{part.function.name}"
        if isinstance(part, nodes.Apply):
            return f"map_{part.op.name}"
        if not children(part):
            break
    return "map_elements"
