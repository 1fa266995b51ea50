"""Vectors are written, read and differentiated component by component."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    y[i].x = x[i] * 2.0
    y[i].y = x[i] * 3.0
    y[i].z = x[i] * 4.0


@sad.kernel
def weigh(i: sad.Index, a: sad.In[float3], total: sad.Out[float]):
    """Adds up the components in a local array, each with its own weight."""
    tmp = sad.LocalArray[float, 2]()
    tmp[0] += a[i][0]
    tmp[0] += 2.0 * a[i][1]
    tmp[1] += 3.0 * a[i][2]
    total[i] = tmp[0] + tmp[1]


def main() -> None:
    x = np.float32([1.0, -2.0, 0.5])
    y, pullback = sad.vjp(spread, x, dim=3)
    print("y:   ", *y.numpy())
    print("by x:", *pullback(np.ones((3, 3)))[0].numpy())  # 2 + 3 + 4 = 9 for every x

    _, pullback = sad.vjp(weigh, y, dim=3)
    print("by a:", *pullback(np.ones(3))[0].numpy())


if __name__ == "__main__":
    main()
