"""Several launches in a row, views of arrays between them, and stores in an order."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from tests.conformance.programs.program import over_arrays, over_kernel


@sad.kernel
def square(i: sad.Index, a: sad.In[float], b: sad.Out[float]):
    b[i] = a[i] * a[i]


@sad.kernel
def triple(i: sad.Index, b: sad.In[float], c: sad.Out[float]):
    c[i] = 3.0 * b[i]


@sad.kernel
def sine_plus(i: sad.Index, a: sad.In[float], b: sad.In[float], d: sad.Out[float]):
    d[i] = sad.sin(b[i]) + a[i]


@sad.kernel
def dot(i: sad.Index, c: sad.In[float], d: sad.In[float], loss: sad.Add[float]):
    loss[0] += c[i] * d[i]


@sad.kernel
def square_times(i: sad.Index, a: sad.In[float], b: sad.In[float], c: sad.Out[float]):
    c[i] = b[i] * b[i] * a[i]


@sad.kernel
def square_transposed(i: sad.Index, j: sad.Index, v: sad.In[float, 2], y: sad.Out[float, 2]):
    y[i, j] = v[j, i] * v[j, i]


@sad.kernel
def from_planes(i: sad.Index, x: sad.In[float, 3], y: sad.Out[float]):
    y[i] = x[i, 1, 0] * x[i, 1, 1] + x[i, 0, 0]


@sad.kernel
def square_at(i: sad.Index, x: sad.In[float], place: sad.In[int], y: sad.Out[float]):
    y[i] = x[place[i]] * x[place[i]]


@sad.kernel
def store_in_turn(i: sad.Index, dst: sad.In[float], idx: sad.In[int], v: sad.In[float],
                  y: sad.Out[float]):  # fmt: skip
    """The case squares what is there in the end, which its formula leaves out."""
    held = sad.LocalArray[float, 3]()
    for k in range(3):
        held[k] = dst[k]
    for k in sad.range(len(idx), limit=8):
        held[idx[k]] = v[k]
    for k in range(3):
        y[sad.unique(k)] = held[k] * held[k]


def fan_out(a: Any) -> Any:
    b = square(a, dim=3)
    d = sine_plus(a, b, dim=3)
    return dot(triple(b, dim=3), d, dim=3, shapes={"loss": 1})


def two_launches(a: Any) -> Any:
    return square_times(a, square(a, dim=2), dim=2)


def strided_view(base: Any) -> Any:
    return square_transposed(base[0::2, 1::2], dim=(3, 2))


def indexed_view(x: Any) -> Any:
    return square_at(x, [3, 1, 3], dim=3)


PROGRAMS = {
    "own-fanout": over_arrays(fan_out, "loss"),
    "own-backward-twice": over_arrays(two_launches, "c"),
    "warp-strided-view": over_arrays(strided_view),
    "own-slice-3d": over_kernel(from_planes, dim=2),
    "own-indexed-view": over_arrays(indexed_view),
    "own-scatter-dup-lastwins": over_kernel(store_in_turn, dim=1, shapes={"y": 3}),
}
