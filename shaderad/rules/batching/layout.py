"""Batching of elementwise, layout, index and row nodes: the axis of the batch comes in front.

Above each rule stands the node, then its batch over k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Node, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT
from shaderad.rules.batching.operands import Batch, NodeRule, Operand, mapped


def _spread(changes: Callable[[Any, Batch], dict[str, Any]]) -> NodeRule:
    """The rule of a node that changes only in some fields; every operand is mapped."""

    def rule(node: Node, operands: Sequence[Operand], batch: Batch) -> Sequence[Operand]:
        values = tuple(map(batch.spread, operands))
        return mapped(replace(node, operands=values, **changes(node, batch)).results)

    return rule


def _moved(axes: Sequence[int]) -> tuple[int, ...]:
    """`axes` behind one that comes in front."""
    return tuple(axis + 1 for axis in axes)


def _strided(node: arrays.Slice | arrays.Place, batch: Batch) -> dict[str, Any]:
    shape = (batch.extent, *node.shape)
    return {"shape": shape, "starts": (0, *node.starts), "steps": (1, *node.steps)}


# y[j..., r...] = x[i[j...], r...]
# x, i mapped:  ys[k, j..., r...] = xs[k, i[k, j...], r...]        x unmapped:  x[i[k, j...], r...]


def gather(node: arrays.Gather, operands: Sequence[Operand], batch: Batch) -> Sequence[Operand]:
    x, *index = operands
    positions = _valid(node, [batch.spread(axis_index) for axis_index in index], batch)
    rows = _rows(positions[0].shape) if x.is_mapped else []
    return mapped(replace(node, operands=(x.value, *rows, *positions)).results)


def _valid(node: arrays.Gather, index: list[Value], batch: Batch) -> list[Value]:
    """`index`, with 0 where the batch is not active, so that nothing is reported there."""
    if not node.is_reported:
        return index
    return [batch.where(axis_index, b.zeros(axis_index.type)) for axis_index in index]


def _rows(shape: Shape) -> list[Value]:
    """The position in the batch, as an index array."""
    return [b.iota(shape, 0)]


# y = base; y[i[j...], r...] += v[j..., r...]        ys[k, i[k, j...], r...] += vs[k, j..., r...]


def scatter_add(
    node: arrays.ScatterAdd, operands: Sequence[Operand], batch: Batch
) -> Sequence[Operand]:
    base, values, *index = map(batch.spread, operands)
    return mapped(replace(node, operands=(base, values, *_rows(index[0].shape), *index)).results)


# y[p] = the largest j with i[j] == p
# The rows of i, of n elements each, are joined and point into the rows of y, of m elements each:
#     ys[k, p] = y'[k m + p] - k n  of  i'[k n + j] = k m + i[k, j],  -1 out of range


def last_writer(
    node: arrays.LastWriter, operands: Sequence[Operand], batch: Batch
) -> Sequence[Operand]:
    index = operands[0].value
    n, m, whole = index.shape[1], node.count, sizes.product(index.shape)
    joined = b.reshape(_in_rows(index, m, m, ops.ADD), (whole,))
    last = replace(node, operands=(joined,), count=sizes.multiply(batch.extent, m)).result
    return mapped([_in_rows(b.reshape(last, (batch.extent, m)), whole, n, ops.SUB)])


def _in_rows(x: Value, count: Size, step: Size, op: ops.Op) -> Value:
    """``x op step k`` in row k of `x`, and -1 where `x` is not in ``range(count)``."""
    variables = {name: c.variable(name, INT) for name in ("x", "row", "count", "step")}
    moved = c.apply(op, variables["x"], c.apply(ops.MUL, variables["step"], variables["row"]))
    is_inside = c.apply(ops.BIT_AND, c.apply(ops.GE, variables["x"], c.whole(0)),
                        c.apply(ops.LT, variables["x"], variables["count"]))  # fmt: skip
    values = (x, b.iota(x.shape, 0), _size(count, x.shape), _size(step, x.shape))
    value_by_name = dict(zip(variables, values, strict=True))
    return b.elementwise(c.select(is_inside, moved, c.whole(-1)), value_by_name, x.shape)


def _size(size: Size, shape: Shape) -> Value:
    return b.broadcast(arrays.SizeOf(operands=(), size=size).result, shape, ())


_with_shape = _spread(lambda node, batch: {"shape": (batch.extent, *node.shape)})
_row_by_row = _spread(lambda node, batch: {})

RULES: dict[type[Node], NodeRule] = {
    # y[i...] = e(a[i...])                ys[k, i...] = e(as[k, i...])
    arrays.Elementwise: _with_shape,
    arrays.Reshape: _with_shape,
    arrays.Broadcast: _spread(
        lambda node, batch: {"shape": (batch.extent, *node.shape), "axes": (0, *_moved(node.axes))}
    ),
    arrays.Transpose: _spread(lambda node, _: {"permutation": (0, *_moved(node.permutation))}),
    arrays.Slice: _spread(_strided),
    arrays.Place: _spread(_strided),
    arrays.Roll: _spread(lambda node, _: {"axis": node.axis + 1}),
    arrays.Concatenate: _spread(lambda node, _: {"axis": node.axis + 1}),
    arrays.Gather: gather,
    arrays.ScatterAdd: scatter_add,
    arrays.LastWriter: last_writer,
    # Nodes over the last axis take any number of rows.
    arrays.ArgSort: _row_by_row,
    arrays.Reduce: _row_by_row,
    arrays.ArgExtreme: _row_by_row,
    arrays.Scan: _row_by_row,
}
