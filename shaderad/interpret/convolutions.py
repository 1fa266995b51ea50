"""Convolutions in NumPy: a product of matrices for each position of the kernel."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from shaderad.interpret.cells import AnyArray, Shape
from shaderad.ir.arrays import Convolution


def convolved(
    node: Convolution, x: AnyArray, w: AnyArray, extents: Shape, padding: Shape
) -> AnyArray:
    """The result of a convolution, whose sizes are known."""
    total: AnyArray = np.zeros((*x.shape[:2], w.shape[1], *extents), x.dtype)
    for k in np.ndindex(w.shape[3:]):
        read = x
        for axis, extent in enumerate(extents):
            reached = node.strides[axis] * np.arange(extent) + node.dilations[axis] * k[axis]
            read = _at_positions(read, 3 + axis, reached - padding[axis], node.spacings[axis])
        total += np.einsum("gbc...,goc->gbo...", read, w[(..., *k)])
    return total


def _at_positions(x: AnyArray, axis: int, scaled: Any, spacing: int) -> AnyArray:
    """`x` at the positions ``scaled / spacing`` along an axis, and 0 where there is none."""
    extent = x.shape[axis]
    position, rest = np.divmod(scaled, spacing)
    is_inside = (rest == 0) & (position >= 0) & (position < extent)
    positions = cast("AnyArray", np.where(is_inside, position, extent))
    return np.take(np.insert(x, extent, 0, axis), positions, axis)
