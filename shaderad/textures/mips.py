"""Texels -> the levels of a mip chain, and gradients by levels -> gradients by texels.

Source: Williams, *Pyramidal parametrics*, SIGGRAPH 1983.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.arrays.dtypes import shown_dtype
from shaderad.arrays.traced_sizes import shown, size_of
from shaderad.differentiate.transforms import vjp
from shaderad.functions.creation import zeros
from shaderad.functions.layout import reshape
from shaderad.ir import sizes
from shaderad.ir.types import FLOAT, with_scalar
from shaderad.textures.kernels.shrinking import shrinking


def levels_of(texels: Any, level_count: int, *, has_layers: bool) -> list[Any]:
    """The levels of a mip chain, each of three axes."""
    level = reshape(texels, (1,) * (3 - len(texels.shape)) + tuple(texels.shape))
    texel, value = texels.element, with_scalar(texels.element, FLOAT)
    shrink, levels = (
        shrinking(shown_dtype(texel), shown_dtype(value), has_layers=has_layers),
        [level],
    )
    extents = [size_of(n, "texels") for n in level.shape]
    for k in range(1, level_count):
        # Each extent from the first level: floor(floor(n / 2) / 2) = floor(n / 4).
        parts = [sizes.maximum(sizes.floor_divide(n, 1 << k), 1) for n in extents]
        levels.append(
            shrink(
                levels[-1], dim=tuple(map(shown, [extents[0], *parts[1:]] if has_layers else parts))
            )
        )
    return levels


@dataclass(frozen=True)
class MadeMips:
    """The mip chain of a texture by `levels_of`, and its pullback."""

    level_count: int
    has_layers: bool

    def levels(self, texels: Array) -> list[Array]:
        """All levels, of three axes."""
        return levels_of(texels, self.level_count, has_layers=self.has_layers)

    def pulled(self, by_levels: Sequence[Array]) -> Array:
        """Gradients by all levels -> the gradient by level 0."""

        def chain(texels: Any) -> Any:
            pairs = zip(self.levels(texels), by_levels, strict=True)
            return [reshape(x, bar.shape) for x, bar in pairs]

        # A chain is linear, so its pullback does not depend on the texels.
        start = by_levels[0]
        _, pullback = vjp(chain, zeros(start.shape, dtype=start.dtype))
        return pullback(list(by_levels))[0]
