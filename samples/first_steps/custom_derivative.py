"""Your own derivatives of a function, in place of Slang's.

`sad.gradcheck` checks both against the primal, and every transform uses them.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad


@sad.function
def square(x: float, y: float) -> float:
    return x * x + y * y


@square.forward_derivative
def square_fwd(
    x: sad.DifferentialPair[float], y: sad.DifferentialPair[float]
) -> sad.DifferentialPair[float]:
    return sad.diff_pair(square(x.p, y.p), 2.0 * (x.p * x.d + y.p * y.d))


@square.backward_derivative
def square_bwd(x: sad.DifferentialPair[float], y: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out
    y.d += 2.0 * y.p * d_out


@sad.kernel
def squares(i: sad.Index, x: sad.In[float], y: sad.In[float], z: sad.Out[float]):
    z[i] = square(x[i], y[i])


def main() -> None:
    x, y = np.float32([3.0, 1.0]), np.float32([4.0, -2.0])
    z, pullback = sad.vjp(squares, x, y, dim=2)
    dx, dy = pullback(np.ones(2))
    print("backward:", z.numpy(), dx.numpy(), dy.numpy())
    _, z_dot = sad.jvp(squares, (x, y), (np.ones(2), np.zeros(2)), dim=2)
    print("forward: ", z_dot.numpy())
    print(sad.gradcheck(squares, x, y, dim=2))


if __name__ == "__main__":
    main()
