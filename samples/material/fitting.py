"""Textures as pyramids of fitted numbers, and a step of the fit.

A texel is the sum of the numbers of all levels that cover it. A step therefore moves whole tiles as
well as single texels, and texels that no photograph shows become like their surroundings.
"""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import float2, float4

COARSEST = 4
"""Texels along an edge of the first level; each next one has twice as many."""
SMOOTHEST = 0.08
"""The least roughness, because a mirror shows the lamp in a single point between pixels."""
RATE, DECAY = 0.12, 0.985
"""The learning rate of the first step, and its factor per step."""
SLOWER = {"roughness": 0.5, "slope": 0.25}
"""Learning rates relative to colours, as gloss is meaningless before the slopes are right."""
ADAM = sad.optim.Adam(RATE, beta2=0.99)


def even(size: int) -> dict[str, Any]:
    """Pyramids of a grey, half rough and flat material of `size` texels along an edge."""
    edges = [COARSEST << k for k in range((size // COARSEST).bit_length())]
    texels = {"color": float4, "roughness": float, "slope": float2}
    return {name: [sad.zeros((n, n), texel) for n in edges] for name, texel in texels.items()}


def summed(levels: list[Any]) -> Any:
    """The sum of all levels at each texel of the last one."""
    total = levels[0]
    for level in levels[1:]:
        n = total.shape[0]
        blocks = sad.broadcast_to(total[:, None, :, None], (n, 2, n, 2))
        total = sad.reshape(blocks, (2 * n, 2 * n)) + level
    return total


@sad.graph
def textures(pyramids: Any) -> dict[str, Any]:
    """The texels of a material."""
    sums = {name: SLOWER.get(name, 1) * summed(levels) for name, levels in pyramids.items()}
    return {
        "color": sad.sigmoid(sums["color"]),
        "roughness": SMOOTHEST + (1 - SMOOTHEST) * sad.sigmoid(sums["roughness"]),
        "slope": sums["slope"],
    }


@sad.graph
def step(pyramids: Any, gradient: Any, state: Any, rate: float) -> Any:
    """The pyramids and state after one step by the gradient of the texels."""
    _, pullback = sad.vjp(textures, pyramids)
    return ADAM.step(pyramids, pullback(gradient)[0], state, rate)
