"""Kernels whose builds use every role of a resource and every kind of word; run by hosts."""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float3


@sad.struct
class Lens:
    center: float2
    power: float


@sad.kernel
def refracted(
    y: sad.Index,
    x: sad.Index,
    lens: Lens,
    image: sad.In[float3, 2],
    weight: sad.In[float],
    gain: float,
    seen: sad.Out[float3, 2],
    sums: sad.Add[float2],
    lowest: sad.Min[float],
    count: sad.Add[int],
):
    """Two axes, a uniform struct and number, and every access."""
    color = image[y, x] * gain + weight[x] * lens.power
    seen[y, x] = color * color
    sums[(x * 7 + y) % 5] += lens.center * color.x
    lowest[x % 3] = sad.min(lowest[x % 3], color.y * weight[y])
    count[0] += 1


@sad.kernel
def shuffled(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    """An Out that need not be written everywhere; an index may be out of range."""
    y[sad.unique(target[i])] = x[i] * x[i]


@sad.function
def raised(x: float, count: int) -> float:
    """``x`` to ``2 ** count``."""
    total = x
    for _ in range(count):
        total = total * total
    return total


@raised.forward_derivative
def raised_forward(x: sad.DifferentialPair[float], count: int) -> sad.DifferentialPair[float]:
    y = raised(x.p, count)
    return sad.diff_pair(y, 2.0**count * y / x.p * x.d)


@sad.kernel
def powered(i: sad.Index, x: sad.In[float], count: int, y: sad.Out[float]):
    """By a function with a forward derivative alone, so that this has no backward one."""
    y[i] = raised(x[i], count)
