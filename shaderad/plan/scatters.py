"""Nodes that write by index array -> kernels with atomic arrays, one thread a value."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.ir import arrays, nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, Access
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.steps import RunKernel
from shaderad.plan.storage import is_zero
from shaderad.rules import composing as c


def scatter_add(node: arrays.ScatterAdd, is_stored: IsStored) -> RunKernel:
    """``total[index0[j..], .., r..] += values[j.., r..]`` in the thread of ``j.., r..``."""
    base, values, *index = node.operands
    count = len(index[0].shape)

    def body(writer: Writer) -> list[Stmt]:
        given = writer.values([values]) + writer.values(index, writer.own[:count])
        written = writer.written(given)
        value, *positions = written.values
        at = (*map(writer.positions.of, positions), *writer.own[count:])
        indices = writer.indices_in(node.result, at)
        add = nodes.Accumulate(buffer="y0", indices=indices, value=value)
        return [*written.body, _guarded(writer, positions, base.shape, add)]

    return RunKernel(
        write_kernel("scatter_add", values.shape, is_stored, body,
                     [("y0", node.result, Access.ADD)]),
        None if is_zero(base) else base_of(base),
    )  # fmt: skip


def last_writer(node: arrays.LastWriter, is_stored: IsStored) -> RunKernel:
    """``largest[index[j]] = max(largest[index[j]], j)``, where j is the thread."""
    (index,) = node.operands

    def body(writer: Writer) -> list[Stmt]:
        written = writer.written(writer.values([index]))
        (position,) = written.values
        number = writer.positions.expr(writer.own[0])
        write_number = nodes.Accumulate(buffer="y0", indices=(position,), value=number)
        return [*written.body, _guarded(writer, [position], (node.count,), write_number)]

    work = write_kernel("last_writer", index.shape, is_stored, body,
                        [("y0", node.result, Access.MAX)])  # fmt: skip
    return RunKernel(work)


def _guarded(
    writer: Writer, positions: Sequence[Expr], shape: Sequence[Size], write_one: Stmt
) -> Stmt:
    """Out of range is ignored."""
    condition: Expr = nodes.Const(type=BOOL, value=True)
    for position, extent in zip(positions, shape, strict=False):
        bound = writer.positions.size(extent)
        tests = (c.apply(ops.GE, position, c.whole(0)), c.apply(ops.LT, position, bound))
        for test in tests:
            condition = nodes.Logical(type=BOOL, is_and=True, left=condition, right=test)
    return nodes.If(condition=condition, then=(write_one,))
