"""In-place updates, said with values.

Arrays are values here: a kernel reads one array and writes another, and no gradient can be taken
of something overwritten. The mathematics of each case is that of the old and the new value; what
overwrites a buffer elsewhere is a local value or a second array here. `left_out.py` has the
refusals that users get for the cases as they stand.
"""

from __future__ import annotations

from typing import Any

import shaderad as sad
from tests.conformance.programs.program import Program, over_kernel


@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


@sad.kernel
def square_in_loop(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 5]()
    for k in range(5):
        a[k] = x[k]
    for k in range(5):
        a[k] = a[k] * a[k]
    for k in range(5):
        y[sad.unique(k)] = a[k]


@sad.kernel
def depend_on_last(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 5]()
    for k in range(5):
        a[k] = x[k]
    for k in range(4):
        a[k + 1] = a[k] * a[k]
    for k in range(5):
        y[sad.unique(k)] = a[k]


@sad.kernel
def overwrite_first(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]
    if i == 0:
        y[i] = 0.0


@sad.kernel
def overwrite_middle(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    t = 2.0 * x[i]
    y[i] = x[i]
    if i == 1:
        y[i] = t


@sad.kernel
def sum_into_middle(i: sad.Index, x: sad.In[float], z: sad.Out[float]):
    value = x[i]
    if i == 1:
        value = 0.0
        for k in sad.range(len(x), limit=4):
            value += x[k]
    z[i] = 2.0 * value


@sad.kernel
def square_then_overwrite(i: sad.Index, a: sad.In[float], b: sad.Out[float]):
    value = a[i]
    b[i] = value * value
    value = 1.0


@sad.kernel
def total(i: sad.Index, x: sad.In[float], loss: sad.Add[float]):
    loss[0] += x[i]


def overwrite_input(a: Any, c: Any) -> dict[str, Any]:
    b = square(a, dim=3)
    a = c
    return {"loss": total(b, dim=3, shapes={"loss": 1})}


@sad.kernel
def cube(i: sad.Index, c: sad.In[float], y: sad.Out[float]):
    y[i] = c[i] * c[i] * c[i]


def overwrite_output(x: Any, c: Any) -> dict[str, Any]:
    y = square(x, dim=3)
    y = cube(c, dim=3)
    return {"y": y}


@sad.kernel
def multiply_and_divide(i: sad.Index, a: sad.In[float], b: sad.In[float], c: sad.In[float],
                        a_out: sad.Out[float]):  # fmt: skip
    a_out[i] = a[i]
    a_out[i] *= b[i]
    a_out[i] /= c[i]


@sad.kernel
def add_and_subtract(i: sad.Index, a: sad.In[float], b: sad.In[float], a_out: sad.Out[float]):
    a_out[i] = a[i]
    a_out[i] += b[i] * b[i]
    a_out[i] -= b[i]


@sad.kernel
def overwrite_local(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    t = sad.LocalArray[float, 3]()
    t[0] = x[i]
    t[1] = t[0] * t[0]
    t[2] = t[1] * t[0]
    t[0] = t[2] * x[i]
    y[i] = t[0] + t[1]


PROGRAMS = {
    "fut-for-inplace-square": over_kernel(square_in_loop, dim=1, shapes={"y": 5}),
    "fut-truedep-1d": over_kernel(depend_on_last, dim=1, shapes={"y": 5}),
    "fut-consume0": over_kernel(overwrite_first, dim=3),
    "fut-consume4": over_kernel(overwrite_middle, dim=3),
    "fut-consume5": over_kernel(sum_into_middle, "z", dim=3),
    "warp-war-intra": over_kernel(square_then_overwrite, "b", dim=3),
    "warp-war-inter": Program(overwrite_input),
    "warp-dead-write": Program(overwrite_output),
    "own-inplace-square": over_kernel(square, dim=2),
    "own-array-imul": over_kernel(multiply_and_divide, "a_out", dim=2),
    "warp-array-iadd": over_kernel(add_and_subtract, "a_out", dim=2),
    "own-local-array": over_kernel(overwrite_local, dim=2),
}
