"""Eigenvalues of symmetric 3 x 3 matrices by Jacobi's rotations, by the matrices.

Golub, Van Loan, "Matrix Computations", section 8.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float3, float3x3

SWEEPS = 5


@sad.function
def rotated(a: float3x3, p: int, q: int) -> float3x3:
    off = a[p, q]
    if abs(off) < 1e-12:
        return a
    theta = (a[q, q] - a[p, p]) / (2.0 * off)
    sign = 1.0 if theta >= 0.0 else -1.0
    t = sign / (abs(theta) + sad.sqrt(theta * theta + 1.0))
    c = 1.0 / sad.sqrt(t * t + 1.0)
    s = t * c
    r = float3x3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    r[p, p] = c
    r[q, q] = c
    r[p, q] = s
    r[q, p] = -s
    return sad.transpose(r) @ a @ r


@sad.kernel
def kernel(i: sad.Index, matrices: sad.In[float3x3], values: sad.Out[float3]):
    a = 0.5 * (matrices[i] + sad.transpose(matrices[i]))
    for _sweep in range(SWEEPS):
        a = rotated(a, 0, 1)
        a = rotated(a, 0, 2)
        a = rotated(a, 1, 2)
    values[i] = float3(a[0, 0], a[1, 1], a[2, 2])


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared matrices."""
    rng = np.random.default_rng(4)
    matrices = rng.normal(0.0, 1.0, (size * size, 3, 3)).astype(np.float32)
    return (sad.array(matrices, dtype=float3x3),), {"dim": size * size}
