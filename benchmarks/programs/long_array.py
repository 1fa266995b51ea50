"""A local array of 1,000 floats, written and read in loops."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad

LENGTH = 1000


@sad.kernel
def kernel(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    held = sad.LocalArray[float, LENGTH]()
    for k in range(LENGTH):
        held[k] = sad.sin(x[i] * w[k])
    total = 0.0
    for k in range(LENGTH):
        total += held[k] * held[LENGTH - 1 - k]
    y[i] = total


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared elements."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1.0, 1.0, size * size).astype(np.float32)
    w = rng.uniform(-1.0, 1.0, LENGTH).astype(np.float32)
    return (sad.array(x), sad.array(w)), {"dim": size * size}
