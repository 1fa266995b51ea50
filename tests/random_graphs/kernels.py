"""Kernels that random functions call, each beside the same in PyTorch and float64.

Both take the inputs of a function and two arrays `a` and `b` of one shape, and return a third.
Inputs on a device are an `Inputs`; in PyTorch they are a dict of tensors and ints by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import shaderad as sad
from shaderad import float2, float4, int2

Tensors = dict[str, Any]
Function = Callable[[Any, Any, Any], Any]
WEIGHTS = (0.5, -0.25, 0.75, 0.25)


@dataclass(frozen=True)
class Inputs:
    """Arguments and captured values of a random function, on a device."""

    x: Any
    table: Any
    particles: Any
    cloud: Any
    scene: Any
    picture: Any
    mask: Any
    lens: Any
    gain: Any
    turn: Any


@dataclass(frozen=True)
class Twin:
    """One function on a device and in PyTorch."""

    device: Function
    torch: Function


@sad.struct
class Spin:
    rate: float
    side: int


@sad.struct
class Particle:
    at: float2
    spin: Spin
    mass: float


@sad.struct
class Spins:
    rates: sad.In[float]
    sides: sad.In[int]


@sad.struct
class Cloud:
    weights: sad.In[float]
    spins: Spins


@sad.struct
class Mesh:
    """Floats of its own would have no derivative in a function (SR0470)."""

    factor: int
    points: sad.Pointer[float]


@sad.struct
class Scene:
    meshes: sad.Pointer[Mesh]
    gain: float


@sad.struct
class Lens:
    gain: float
    steps: int
    centre: float2


@sad.struct
class Material:
    albedo: sad.Texture2D[float4]
    filter: sad.Sampler
    gain: float


@sad.kernel
def look(
    i: sad.Index,
    t: sad.Texture2D[float4],
    s: sad.Sampler,
    level: float,
    a: sad.In[float],
    b: sad.In[float],
    y: sad.Out[float],
):
    c = t.sample_level(s, float2(0.5 + 0.4 * a[i], 0.5 + 0.4 * b[i]), level)
    y[i] = sad.dot(c, float4(0.5, -0.25, 0.75, 0.25))


@sad.kernel
def shade(i: sad.Index, m: Material, a: sad.In[float], b: sad.In[float], y: sad.Out[float]):
    y[i] = m.gain * m.albedo.sample(m.filter, float2(a[i], 0.5 + b[i])).w


@sad.kernel
def fetch(i: sad.Index, t: sad.Texture2D[float4], turn: int, a: sad.In[float], y: sad.Out[float]):
    height, width = t.shape()
    y[i] = t.load(int2((i + turn) % width, 3 * i % height)).y * a[i]


@sad.kernel
def follow(i: sad.Index, scene: Scene, a: sad.In[float], b: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for m in range(len(scene.meshes)):
        mesh = scene.meshes[m]
        for k in range(len(mesh.points)):
            total += float(mesh.factor) * sad.sin(mesh.points[k] * a[i])
    y[i] = total * scene.gain + b[i]


@sad.kernel
def lead(i: sad.Index, p: sad.Pointer[float], turn: int, a: sad.In[float], y: sad.Out[float]):
    y[i] = p[(i + turn) % len(p)] * a[i]


@sad.kernel
def weigh(
    i: sad.Index,
    particles: sad.In[Particle],
    turn: int,
    a: sad.In[float],
    b: sad.In[float],
    y: sad.Out[float],
):
    p = particles[(i + turn) % len(particles)]
    side = 1.0 if p.spin.side > 0 else -0.5
    y[i] = p.mass * sad.dot(p.at, float2(a[i], b[i])) + side * p.spin.rate * a[i]


@sad.kernel
def gather_cloud(i: sad.Index, cloud: Cloud, a: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for k in range(len(cloud.weights)):
        total += cloud.weights[k] * sad.cos(cloud.spins.rates[k] * a[i])
        if cloud.spins.sides[k] > 0:
            total = -total
    y[i] = total


@sad.kernel
def focus(i: sad.Index, lens: Lens, gain: float, a: sad.In[float], y: sad.Out[float]):
    v = a[i]
    for _ in range(lens.steps):
        v = sad.sin(v * lens.gain + lens.centre.y)
    y[i] = v * gain + lens.centre.x * a[i]


@sad.kernel
def spread(i: sad.Index, turn: int, a: sad.In[float], total: sad.Add[float]):
    total[(i * i + turn) % 3] += a[i]


@sad.kernel
def pair_up(i: sad.Index, a: sad.In[float], b: sad.In[float], pair: sad.Out[Particle]):
    pair[i] = Particle(float2(a[i], b[i]), Spin(a[i] * b[i], i % 3 - 1), 0.5 * a[i])


@sad.kernel
def cross(
    i: sad.Index,
    j: sad.Index,
    a: sad.In[float],
    b: sad.In[float],
    gain: float,
    y: sad.Out[float, 2],
    total: sad.Add[float],
):
    y[i, j] = sad.sin(a[i] * gain + b[j])
    total[j] += a[i] * b[j]


def twins(options: dict[str, Any]) -> dict[str, Twin]:
    """All of them; `options` chooses the sampler and constants."""
    wrap, level = options["wrap"], options["level"]
    smooth, blocky = sad.sampler("linear", wrap), sad.sampler("nearest", wrap)
    n = torch.arange

    def looked(w: Inputs, a: Any, b: Any) -> Any:
        return look(w.picture, smooth, level, a, b)

    def looked_in_torch(w: Tensors, a: Any, b: Any) -> Any:
        return weighted(sampled(w, 0.5 + 0.4 * a, 0.5 + 0.4 * b, level, wrap))

    def crossed(w: Inputs, a: Any, b: Any) -> Any:
        y, total = cross(a, b, w.gain, shapes={"total": a.shape[0]})
        return 0.1 * sad.sum(y, axis=1) + total * b

    def crossed_in_torch(w: Tensors, a: Any, b: Any) -> Any:
        y = torch.sin(a[:, None] * w["gain"] + b[None])
        return 0.1 * y.sum(1) + a.sum() * b * b

    def joined(w: Inputs, a: Any, b: Any) -> Any:
        meshes = [Mesh(2, sad.pointer(a)), Mesh(-1, sad.pointer(w.table))]
        return follow(Scene(meshes=sad.pointer(meshes), gain=w.gain), a, b)

    def joined_in_torch(w: Tensors, a: Any, b: Any) -> Any:
        return followed([(2, a), (-1, w["table"])], w["gain"], a, b)

    def scattered(w: Inputs, a: Any, b: Any) -> Any:
        return lead(sad.pointer(spread(w.turn, a, shapes={"total": 3})), w.turn, b)

    def scattered_in_torch(w: Tensors, a: Any, b: Any) -> Any:
        index = (n(len(a)) ** 2 + w["turn"]) % 3
        total = torch.zeros(3, dtype=torch.float64).index_add(0, index, a)
        return total[(n(len(a)) + w["turn"]) % 3] * b

    def paired(w: Inputs, a: Any, b: Any) -> Any:
        pair = pair_up(a, b)
        return weigh(pair, w.turn, b, pair.mass)

    def paired_in_torch(w: Tensors, a: Any, b: Any) -> Any:
        at, side = torch.stack([a, b], -1), n(len(a)) % 3 - 1
        return weighed(at, 0.5 * a, a * b, side, w["turn"], b, 0.5 * a)

    return {
        "look": Twin(looked, looked_in_torch),
        "shade": Twin(
            lambda w, a, b: shade(Material(w.picture, smooth, w.gain), a, b),
            lambda w, a, b: w["gain"] * sampled(w, a, 0.5 + b, 0.0, wrap)[:, 3],
        ),
        "fetch": Twin(
            lambda w, a, b: fetch(w.picture, w.turn, a) + b,
            lambda w, a, b: loaded(w["texels"], w["turn"], a) + b,
        ),
        "fetch_bytes": Twin(
            lambda w, a, b: fetch(w.mask, w.turn, a) * b,
            lambda w, a, b: loaded(w["bytes"], w["turn"], a) * b,
        ),
        "blocks": Twin(
            lambda w, a, b: look(w.mask, blocky, 0.0, sad.sin(a), sad.sin(a)) + b,
            lambda w, a, b: weighted(nearest(w["bytes"], 0.5 + 0.4 * torch.sin(a))) + b,
        ),
        "cross": Twin(crossed, crossed_in_torch),
        "follow": Twin(
            lambda w, a, b: follow(w.scene, a, b),
            lambda w, a, b: followed(
                [(w["factor0"], w["points0"]), (w["factor1"], w["points1"])], w["scene_gain"], a, b
            ),
        ),
        "join": Twin(joined, joined_in_torch),
        "lead": Twin(
            lambda w, a, b: lead(sad.pointer(w.table), w.turn, a) + b,
            lambda w, a, b: w["table"][(n(len(a)) + w["turn"]) % len(w["table"])] * a + b,
        ),
        "weigh": Twin(
            lambda w, a, b: weigh(w.particles, w.turn, a, b),
            lambda w, a, b: weighed(w["at"], w["mass"], w["rate"], w["side"], w["turn"], a, b),
        ),
        "cloud": Twin(lambda w, a, b: gather_cloud(w.cloud, a) * b, clouded),
        "focus": Twin(lambda w, a, b: focus(w.lens, w.gain, a) - b, focused),
        "scatter": Twin(scattered, scattered_in_torch),
        "pair": Twin(paired, paired_in_torch),
    }


# -- the same in PyTorch ------------------------------------------------------------------------


def weighted(colours: Any) -> Any:
    return colours @ torch.tensor(WEIGHTS, dtype=torch.float64)


def followed(meshes: Any, gain: Any, a: Any, b: Any) -> Any:
    total = torch.zeros_like(a)
    for factor, points in meshes:
        total = total + factor * torch.sin(points[None] * a[:, None]).sum(1)
    return total * gain + b


def weighed(at: Any, mass: Any, rate: Any, side: Any, turn: int, a: Any, b: Any) -> Any:
    k = (torch.arange(len(a)) + turn) % len(mass) if len(mass) else torch.arange(0)
    sign = torch.where(side[k] > 0, 1.0, -0.5)
    return mass[k] * (at[k, 0] * a + at[k, 1] * b) + sign * rate[k] * a


def clouded(w: Tensors, a: Any, b: Any) -> Any:
    total = torch.zeros_like(a)
    for k, side in enumerate(w["sides"]):
        total = total + w["weights"][k] * torch.cos(w["rates"][k] * a)
        total = -total if side > 0 else total
    return total * b


def focused(w: Tensors, a: Any, b: Any) -> Any:
    v = a
    for _ in range(w["steps"]):
        v = torch.sin(v * w["lens_gain"] + w["centre"][1])
    return v * w["gain"] + w["centre"][0] * a - b


def loaded(texels: Any, turn: int, a: Any) -> Any:
    height, width, _ = texels.shape
    i = torch.arange(len(a))
    return texels[3 * i % height, (i + turn) % width, 1] * a


def sampled(w: Tensors, u: Any, v: Any, level: float, wrap: str) -> Any:
    """Between two levels of `texels`; coarser levels are means, where there are any."""
    levels = [w["texels"]]
    while w["has_mips"] and max(levels[-1].shape[:2]) > 1:
        levels.append(halved(levels[-1]))
    level = min(level, len(levels) - 1)
    fine = bilinear(levels[int(level)], u, v, wrap)
    share = level - int(level)
    if not share:
        return fine
    return (1 - share) * fine + share * bilinear(levels[int(level) + 1], u, v, wrap)


def halved(texels: Any) -> Any:
    """The next level, of even extents or 1."""
    if texels.shape[0] > 1:
        texels = (texels[0::2] + texels[1::2]) / 2
    if texels.shape[1] > 1:
        texels = (texels[:, 0::2] + texels[:, 1::2]) / 2
    return texels


def bilinear(texels: Any, u: Any, v: Any, wrap: str) -> Any:
    height, width, _ = texels.shape
    x, y = u * width - 0.5, v * height - 0.5
    left, top = torch.floor(x.detach()), torch.floor(y.detach())
    s, t = (x - left)[:, None], (y - top)[:, None]

    def texel(down: int, right: int) -> Any:
        row, column = (top + down).long(), (left + right).long()
        return texels[wrapped(row, height, wrap), wrapped(column, width, wrap)]

    return (1 - t) * ((1 - s) * texel(0, 0) + s * texel(0, 1)) + t * (
        (1 - s) * texel(1, 0) + s * texel(1, 1)
    )


def nearest(texels: Any, uv: Any) -> Any:
    """The texels at u = v, which lie within the picture."""
    height, width, _ = texels.shape
    at = uv.detach()
    return texels[torch.floor(at * height).long(), torch.floor(at * width).long()]


def wrapped(k: Any, extent: int, wrap: str) -> Any:
    if wrap == "repeat":
        return k % extent
    if wrap == "mirror":
        k = k % (2 * extent)
        return torch.where(k >= extent, 2 * extent - 1 - k, k)
    return k.clamp(0, extent - 1)
