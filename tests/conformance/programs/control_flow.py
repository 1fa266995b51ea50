"""Branches: both taken, guarded singularities, early returns, numbers that step."""

from __future__ import annotations

import shaderad as sad
from shaderad import float3
from tests.conformance.programs.program import over_kernel


@sad.kernel
def multiply_or_divide(i: sad.Index, b: sad.In[int], x: sad.In[float], z: sad.In[float],
                       y: sad.Out[float]):  # fmt: skip
    if b[i] != 0:
        y[i] = x[i] * z[i]
    else:
        y[i] = x[i] / z[i]


@sad.kernel
def choose_factor(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    z = x[0] if x[0] < 0.0 else x[1]
    y[i] = x[2] * z


@sad.kernel
def guard_by_expression(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = sad.sqrt(x[i]) if x[i] > 0.0 else 0.0
    z[i] = sad.sin(x[i]) / x[i] if x[i] != 0.0 else 1.0


@sad.kernel
def guard_by_statement(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    if x[i] > 0.0:
        y[i] = sad.sqrt(x[i])
    z[i] = 1.0
    if x[i] != 0.0:
        z[i] = sad.sin(x[i]) / x[i]


@sad.kernel
def return_early(i: sad.Index, x: sad.In[float], y0: sad.In[float], y: sad.Out[float]):
    y[i] = y0[i]
    if x[i] < 0.0:
        return
    y[i] = x[i] * x[i]


@sad.kernel
def distance_to_sphere(i: sad.Index, p: float3, d: sad.Out[float]):
    center = float3(-1.0, -1.2, 0.2)
    radius = 0.8
    d[i] = max(sad.length(p - center) - radius, 0.0)


@sad.kernel
def step_numbers(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    k = int(x[i])
    y[i] = k * x[i] + sad.floor(x[i]) * x[i] + sad.round(x[i])


PROGRAMS = {
    "fut-if0": over_kernel(multiply_or_divide, dim=2),
    "fut-if2": over_kernel(choose_factor, dim=1),
    "own-where-safe": over_kernel(guard_by_expression, "y z", dim=3),
    "own-where-safe/statements": over_kernel(guard_by_statement, "y z", dim=3),
    "warp-early-return": over_kernel(return_early, dim=3),
    "fut-sdf": over_kernel(distance_to_sphere, "d", dim=1),
    "own-floor-int": over_kernel(step_numbers, dim=2),
}
