"""A ray marcher: 8 spheres in a smooth union, Lambert's law and a soft shadow, by the spheres."""

from __future__ import annotations

from typing import Any

import numpy as np
from raw_slang import PROGRAMS, ByHand, Dispatched, Pass
from timing import relative_error

import shaderad as sad
from shaderad import float2, float3

N = 8
K = 0.25
LIGHT = (0.57735, 0.57735, -0.57735)


@sad.struct
class Sphere:
    center: float3
    radius: float
    color: float3


@sad.function
def smin(a: float, b: float) -> float:
    h = sad.max(K - abs(a - b), 0.0) / K
    return sad.min(a, b) - h * h * K * 0.25


@sad.function
def scene(p: float3, spheres: sad.LocalArray[Sphere, N]) -> float:
    d = 1e3
    for k in sad.static_range(N):
        d = smin(d, sad.length(p - spheres[k].center) - spheres[k].radius)
    return d


@sad.function
def color_at(p: float3, spheres: sad.LocalArray[Sphere, N]) -> float3:
    total = float3(0.0)
    weight = 1e-6
    for k in sad.static_range(N):
        w = sad.exp(-8.0 * (sad.length(p - spheres[k].center) - spheres[k].radius))
        total += w * spheres[k].color
        weight += w
    return total / weight


@sad.function
def normal(p: float3, spheres: sad.LocalArray[Sphere, N]) -> float3:
    nx = sad.fwd_diff(scene)(sad.diff_pair(p, float3(1, 0, 0)), sad.diff_pair(spheres)).d
    ny = sad.fwd_diff(scene)(sad.diff_pair(p, float3(0, 1, 0)), sad.diff_pair(spheres)).d
    nz = sad.fwd_diff(scene)(sad.diff_pair(p, float3(0, 0, 1)), sad.diff_pair(spheres)).d
    return sad.normalize(float3(nx, ny, nz))


@sad.function
def march(ro: float3, rd: float3, spheres: sad.LocalArray[Sphere, N]) -> float:
    t = 0.0
    steps = 0
    while sad.limit(steps < 48 and t < 8.0, 48):
        d = scene(ro + rd * t, spheres)
        if d < 1e-3:
            break
        t += d
        steps += 1
    return t


@sad.function
def shadow(p: float3, light: float3, spheres: sad.LocalArray[Sphere, N]) -> float:
    res = 1.0
    t = 0.03
    for _ in sad.static_range(16):
        d = scene(p + light * t, spheres)
        res = sad.min(res, 8.0 * d / t)
        t += sad.clamp(d, 0.03, 0.3)
    return sad.smoothstep(0.0, 1.0, sad.clamp(res, 0.0, 1.0))


@sad.kernel
def kernel(
    y: sad.Index,
    x: sad.Index,
    spheres: sad.In[Sphere],
    light: float3,
    size: int,
    out: sad.Out[float3, 2],
):
    s = sad.LocalArray[Sphere, N]()
    for k in sad.static_range(N):
        s[k] = spheres[k]
    uv = (float2(x, y) + 0.5) / float(size) * 2.0 - 1.0
    ro = float3(0, 0, -4)
    rd = sad.normalize(float3(uv.x, -uv.y, 2.0))
    t = march(ro, rd, s)
    if t < 8.0:
        p = ro + rd * t
        n = normal(p, s)
        lam = sad.max(sad.dot(n, light), 0.0)
        out[y, x] = color_at(p, s) * (0.15 + 0.85 * lam * shadow(p + 0.02 * n, light, s))


def _spheres() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "center": rng.uniform(-1.0, 1.0, (N, 3)).astype(np.float32),
        "radius": rng.uniform(0.2, 0.5, N).astype(np.float32),
        "color": rng.uniform(0.1, 0.9, (N, 3)).astype(np.float32),
    }


def by_hand(size: int) -> ByHand:
    """`sdf.slang`, with ones for cotangents."""
    parts = [part.reshape(N, -1) for part in _spheres().values()]
    arrays = {
        "spheres": np.concatenate(parts, 1),
        "out_bar_words": np.ones((size * size, 3), np.float32),
        "spheres_bar": np.zeros((N, 7), np.float32),
        "light_bar_words": np.zeros(3, np.float32),
    }
    parameters = {"size": size, **{f"light_{k}": LIGHT[k] for k in range(3)}}
    text = (PROGRAMS / "sdf.slang").read_text(encoding="utf-8")
    passes = [Pass(text, size * size, arrays, parameters)]
    return ByHand(passes, arrays, ("spheres_bar", "light_bar_words"))


def error(found: Any, other: Dispatched) -> float:
    """How far the gradients by the spheres and by the light are apart."""
    spheres = found[0].numpy()
    parts = [np.asarray(spheres[name]).reshape(N, -1) for name in ("center", "radius", "color")]
    by_spheres = relative_error(np.concatenate(parts, 1), other.found("spheres_bar"))
    return max(by_spheres, relative_error(found[1].numpy(), other.found("light_bar_words")))


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A picture of `size` x `size` pixels."""
    given = (sad.array(_spheres(), dtype=Sphere), float3(*LIGHT), size)
    return given, {"dim": (size, size)}
