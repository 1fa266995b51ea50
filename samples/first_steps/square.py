"""Derivatives inside a kernel: the slope of a function forward, and its gradient backward.

`sad.fwd_diff` and `sad.bwd_diff` are Slang's, and stand in the generated Slang as they stand here.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad


@sad.function
def square(x: float, y: float) -> float:
    return x * x + y * y


@sad.kernel
def slope_by_x(i: sad.Index, x: sad.In[float], y: sad.In[float], slope: sad.Out[float]):
    """Forward: if x moves at speed 1 and y stands still, this is the speed of the result."""
    slope[i] = sad.fwd_diff(square)(sad.diff_pair(x[i], 1.0), sad.diff_pair(y[i], 0.0)).d


@sad.kernel
def gradient(
    i: sad.Index, x: sad.In[float], y: sad.In[float], dx: sad.Out[float], dy: sad.Out[float]
):
    """Backward: one call returns the derivative by every parameter."""
    x_pair = sad.diff_pair(x[i])
    y_pair = sad.diff_pair(y[i])
    sad.bwd_diff(square)(x_pair, y_pair, 1.0)
    dx[i] = x_pair.d
    dy[i] = y_pair.d


def main() -> None:
    x, y = np.float32([3.0]), np.float32([4.0])
    print("forward, by x:    ", slope_by_x(x, y, dim=1).numpy())
    dx, dy = gradient(x, y, dim=1)
    print("backward, by both:", dx.numpy(), dy.numpy())


if __name__ == "__main__":
    main()
