"""A network of 16, 64, 64 and 3 neurons in a thread, by its weights: loops over ``w[...]``."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float3

INPUTS = 16
HIDDEN = 64
FIRST = HIDDEN * (INPUTS + 1)
SECOND = HIDDEN * (HIDDEN + 1)
WEIGHTS = FIRST + SECOND + 3 * (HIDDEN + 1)


@sad.kernel
def kernel(
    i: sad.Index,
    features: sad.In[float],
    colors: sad.In[float3],
    w: sad.In[float],
    loss: sad.Add[float],
):
    first = sad.LocalArray[float, HIDDEN]()
    for j in range(HIDDEN):
        at = (INPUTS + 1) * j
        total = w[at + INPUTS]
        for k in range(INPUTS):
            total += w[at + k] * features[INPUTS * i + k]
        first[j] = sad.max(total, 0.0)
    second = sad.LocalArray[float, HIDDEN]()
    for j in range(HIDDEN):
        at = FIRST + (HIDDEN + 1) * j
        total = w[at + HIDDEN]
        for k in range(HIDDEN):
            total += w[at + k] * first[k]
        second[j] = sad.max(total, 0.0)
    for j in range(3):
        at = FIRST + SECOND + (HIDDEN + 1) * j
        total = w[at + HIDDEN]
        for k in range(HIDDEN):
            total += w[at + k] * second[k]
        error = total - colors[i][j]
        loss[0] += error * error


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared points with their features."""
    rng = np.random.default_rng(5)
    features = rng.uniform(-1.0, 1.0, size * size * INPUTS).astype(np.float32)
    colors = rng.uniform(0.0, 1.0, (size * size, 3)).astype(np.float32)
    w = rng.normal(0.0, 0.2, WEIGHTS).astype(np.float32)
    given = (sad.array(features), sad.array(colors, dtype=float3), sad.array(w))
    return given, {"dim": size * size, "shapes": {"loss": 1}}
