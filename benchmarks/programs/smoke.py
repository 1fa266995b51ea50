"""Smoke over a periodic grid: semi-Lagrangian steps, each projected by Jacobi sweeps."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import float2

SWEEPS = 20
DT = 0.8


@sad.function
def velocity_at(v: sad.In[float2, 2], p: float2) -> float2:
    n = v.shape[0]
    corner = sad.floor(p)
    f = p - corner
    x = int(corner.x) % n
    y = int(corner.y) % n
    x1 = (x + 1) % n
    y1 = (y + 1) % n
    return sad.lerp(sad.lerp(v[y, x], v[y, x1], f.x), sad.lerp(v[y1, x], v[y1, x1], f.x), f.y)


@sad.function
def density_at(d: sad.In[float, 2], p: float2) -> float:
    n = d.shape[0]
    corner = sad.floor(p)
    f = p - corner
    x = int(corner.x) % n
    y = int(corner.y) % n
    x1 = (x + 1) % n
    y1 = (y + 1) % n
    return sad.lerp(sad.lerp(d[y, x], d[y, x1], f.x), sad.lerp(d[y1, x], d[y1, x1], f.x), f.y)


@sad.kernel
def advect(
    y: sad.Index,
    x: sad.Index,
    v: sad.In[float2, 2],
    d: sad.In[float, 2],
    dt: float,
    new_v: sad.Out[float2, 2],
    new_d: sad.Out[float, 2],
):
    p = float2(x, y) - dt * v[y, x]
    new_v[y, x] = velocity_at(v, p)
    new_d[y, x] = density_at(d, p)


@sad.kernel
def divergence(y: sad.Index, x: sad.Index, v: sad.In[float2, 2], out: sad.Out[float, 2]):
    n = v.shape[0]
    across = v[y, (x + 1) % n].x - v[y, (x + n - 1) % n].x
    along = v[(y + 1) % n, x].y - v[(y + n - 1) % n, x].y
    out[y, x] = 0.5 * (across + along)


@sad.kernel
def sweep(
    y: sad.Index, x: sad.Index, p: sad.In[float, 2], b: sad.In[float, 2], out: sad.Out[float, 2]
):
    n = p.shape[0]
    beside = p[y, (x + 1) % n] + p[y, (x + n - 1) % n]
    out[y, x] = 0.25 * (beside + p[(y + 1) % n, x] + p[(y + n - 1) % n, x] - b[y, x])


@sad.kernel
def subtract(
    y: sad.Index, x: sad.Index, v: sad.In[float2, 2], p: sad.In[float, 2], out: sad.Out[float2, 2]
):
    n = p.shape[0]
    across = p[y, (x + 1) % n] - p[y, (x + n - 1) % n]
    along = p[(y + 1) % n, x] - p[(y + n - 1) % n, x]
    out[y, x] = v[y, x] - 0.5 * float2(across, along)


def pressure(b: Any, count: int) -> Any:
    """The pressure of a divergence, after `count` sweeps from 0."""
    return sad.fori_loop(count, lambda _, p: sweep(p, b, dim=b.shape), sad.zeros(b.shape))


def loss(count: int, v: Any, d: Any, wanted: Any) -> Any:
    """The mean squared difference of `wanted` to the density after `count` steps."""

    def step(_: Any, carry: Any) -> Any:
        v, d = carry
        v, d = advect(v, d, DT, dim=d.shape)
        p = pressure(divergence(v, dim=d.shape), SWEEPS)
        return subtract(v, p, dim=d.shape), d

    _, d = sad.fori_loop(count, step, (v, d))
    return sad.mean((d - wanted) ** 2)
