"""Texels -> the texels of the next level of a mip chain."""

from __future__ import annotations

from functools import cache
from typing import Any

from shaderad.decorators import function, kernel
from shaderad.language.annotations import TYPES, In, Index, Out

int3 = TYPES["int3"]


@cache
def shrinking(texel: Any, value: Any, *, has_layers: bool) -> Any:
    """The kernel from a level to the next, which computes means over boxes in floats.

    If the number of texels is odd, each texel of the next level covers two and part of a third.
    """

    @function
    def weight(k: int, j: int, n: int) -> float:
        """The weight of texel 2 k + j of n in texel k of the next level."""
        half = n // 2
        if n == 1:
            return 1.0 if j == 0 else 0.0
        if 2 * half == n:
            return 0.5 if j < 2 else 0.0
        part = half - k if j == 0 else (half if j == 1 else k + 1)
        return float(part) / float(n)

    @kernel
    def shrink(z: Index, y: Index, x: Index, texels: In[texel, 3], level: Out[texel, 3]):
        n = int3(texels.shape[2], texels.shape[1], texels.shape[0])
        total = value(0.0)
        for c in range(1 if has_layers or n.z == 1 else 3):
            for b in range(3 if n.y > 1 else 1):
                for a in range(3 if n.x > 1 else 1):
                    w = weight(x, a, n.x) * weight(y, b, n.y)
                    k = z
                    if not has_layers:
                        w *= weight(z, c, n.z)
                        k = 2 * z + c
                    if w > 0.0:
                        total += w * value(texels[k, 2 * y + b, 2 * x + a])
        level[z, y, x] = texel(total)

    return shrink
