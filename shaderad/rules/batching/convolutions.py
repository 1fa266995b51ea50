"""Batching of convolutions, by their own axes for independent parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shaderad.ir import arrays, sizes
from shaderad.ir import building as b
from shaderad.rules.batching.operands import Batch, Operand, mapped

# y[g, n, o, p...] = conv(x[g, n, c, t...], w[g, o, c, k...])
# w mapped:  the batch goes to the axis g                  x alone:  to the axis n


def batch_convolution(
    node: arrays.Convolution, operands: Sequence[Operand], batch: Batch
) -> Sequence[Operand]:
    x, w = operands
    groups, count, *_ = node.operands[0].shape
    xs = batch.spread(x)
    if w.is_mapped:
        whole = sizes.multiply(batch.extent, groups)
        parts = (b.reshape(v, (whole, *v.shape[2:])) for v in (xs, w.value))
        y = replace(node, operands=tuple(parts)).result
        return mapped([b.reshape(y, (batch.extent, groups, *y.shape[1:]))])
    turn = [1, 0, *range(2, len(xs.shape))]
    joined = (groups, sizes.multiply(batch.extent, count), *xs.shape[3:])
    y = replace(node, operands=(b.reshape(b.transpose(xs, turn), joined), w.value)).result
    return mapped([b.transpose(b.reshape(y, (groups, batch.extent, count, *y.shape[2:])), turn)])
