"""Your own derivative of a buffer read, which decides where the gradient goes.

Here four threads read one weight. The backward derivative of the read adds each thread's cotangent
atomically to the gradient buffer, as shaderad's own would; it could also clip it, or count reads.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad


@sad.function
def get_param(w: sad.In[float], index: int) -> float:
    return w[index]


@get_param.backward_derivative
def get_param_bwd(w: sad.DifferentialPair[sad.In[float]], index: int, d_out: float):
    w.d[index] += d_out


@sad.kernel
def weighted(
    i: sad.Index, w: sad.In[float], which: sad.In[int], x: sad.In[float], y: sad.Out[float]
):
    y[i] = get_param(w, which[i]) * x[i]


WEIGHTS = np.float32([0.5, 2.0, -1.0])
WHICH = np.int32([0, 2, 0, 0, 2, 0])
X = np.float32([1, 2, 3, 4, 5, 6])


def main() -> None:
    y, pullback = sad.vjp(weighted, WEIGHTS, WHICH, X, dim=len(X))
    by_weights, _, by_x = pullback(np.ones(len(X)))
    print("y:         ", y.numpy())
    print("by weights:", by_weights.numpy())  # 1 + 3 + 4 + 6, no reads, 2 + 5
    print("by x:      ", by_x.numpy())


if __name__ == "__main__":
    main()
