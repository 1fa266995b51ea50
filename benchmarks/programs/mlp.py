"""A network of 2, 32, 32 and 3 neurons in a thread, by its weights: loops over ``w[...]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from raw_slang import PROGRAMS, ByHand, Dispatched, Pass
from timing import Floats, relative_error

import shaderad as sad
from shaderad import float2, float3

INPUTS = 2
HIDDEN = 32
FIRST = HIDDEN * (INPUTS + 1)
SECOND = HIDDEN * (HIDDEN + 1)
WEIGHTS = FIRST + SECOND + 3 * (HIDDEN + 1)


@sad.kernel
def kernel(
    i: sad.Index,
    points: sad.In[float2],
    colors: sad.In[float3],
    w: sad.In[float],
    loss: sad.Add[float],
):
    p = points[i]
    first = sad.LocalArray[float, HIDDEN]()
    for j in range(HIDDEN):
        at = (INPUTS + 1) * j
        first[j] = sad.max(w[at] * p.x + w[at + 1] * p.y + w[at + 2], 0.0)
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


def _data(size: int) -> dict[str, Floats]:
    rng = np.random.default_rng(5)
    return {
        "points": rng.uniform(-1.0, 1.0, (size * size, 2)).astype(np.float32),
        "colors": rng.uniform(0.0, 1.0, (size * size, 3)).astype(np.float32),
        "w": rng.normal(0.0, 0.3, WEIGHTS).astype(np.float32),
    }


def by_hand(size: int) -> ByHand:
    """`mlp.slang`: the gradient by the weights alone, for a cotangent of one."""
    arrays = _data(size) | {"w_bar": np.zeros(WEIGHTS, np.float32)}
    text = (PROGRAMS / "mlp.slang").read_text(encoding="utf-8")
    return ByHand([Pass(text, size * size, arrays)], arrays, ["w_bar"])


def error(found: Any, other: Dispatched) -> float:
    """How far the gradients by the weights are apart."""
    return relative_error(found[2].numpy(), other.found("w_bar"))


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared points of a picture."""
    data = _data(size)
    types = {"points": float2, "colors": float3, "w": float}
    given = tuple(sad.array(data[name], dtype=dtype) for name, dtype in types.items())
    return given, {"dim": size * size, "shapes": {"loss": 1}}
