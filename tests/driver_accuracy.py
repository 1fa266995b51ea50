"""How good the functions of a driver are, which Vulkan leaves to it."""

from __future__ import annotations

from functools import cache

import numpy as np

import shaderad as sad


@sad.kernel
def sines(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.sin(x[i])


@cache
def sine_error(device: sad.Device) -> float:
    """How far sines of a device are off: Vulkan asks for 2**-11, most drivers give float32's."""
    x = np.linspace(-np.pi, np.pi, 1001, dtype=np.float32)
    found = sines(sad.array(x, device=device)).numpy()
    return float(np.abs(found - np.sin(x.astype(np.float64))).max())
