"""The conditions on indices that hold in one launch."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.bodies.ranges import conditions, holding
from shaderad.ir.nodes import Kernel
from shaderad.ir.sizes import Size


def natural_of(
    kernel: Kernel,
    dim: tuple[int, ...],
    shapes: Mapping[str, tuple[int, ...]],
    numbers: Mapping[str, int],
) -> frozenset[Size]:
    """The conditions that extents and whole numbers prove."""
    values = {f"{axis}": extent for axis, extent in enumerate(dim)} | dict(numbers)
    for name, shape in shapes.items():
        values |= {f"{name}.{axis}": extent for axis, extent in enumerate(shape)}
    return holding(conditions(kernel), values)
