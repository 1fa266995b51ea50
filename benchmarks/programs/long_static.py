"""A `static_range` of 256 over a local array."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad

COUNT = 256


@sad.kernel
def kernel(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    held = sad.LocalArray[float, COUNT]()
    value = x[i]
    for k in sad.static_range(COUNT):
        value = sad.sin(value + w[k])
        held[k] = value
    total = 0.0
    for k in sad.static_range(COUNT):
        total += held[k] * w[COUNT - 1 - k]
    y[i] = total


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared elements."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, size * size).astype(np.float32)
    w = rng.uniform(-1.0, 1.0, COUNT).astype(np.float32)
    return (sad.array(x), sad.array(w)), {"dim": size * size}
