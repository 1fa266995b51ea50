"""Functions to wrap: kernels, graphs and plain functions, with arguments of any library."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2, float3


@sad.kernel
def square(i: sad.Index, x: sad.In[float], w: float, y: sad.Out[float]):
    y[i] = w * x[i] * x[i]


@sad.kernel
def gathered(i: sad.Index, x: sad.In[float], to: sad.In[int], total: sad.Add[float]):
    total[to[i]] += sad.sin(x[i])


@sad.kernel
def both(i: sad.Index, p: sad.In[float3], scale: int, long: sad.Out[float], big: sad.Out[int],
         back: sad.Out[float3]):  # fmt: skip
    long[i] = scale * sad.dot(p[i], p[i])
    big[i] = 1 if p[i].x > 0.5 else 0
    back[i] = p[i].zyx * p[i].x


@sad.struct
class Spot:
    center: float2
    color: float3
    number: int


@sad.kernel
def splat(y: sad.Index, x: sad.Index, spots: sad.In[Spot], image: sad.Out[float3, 2]):
    for k in range(len(spots)):
        d = 0.5 * (float2(x, y) - spots[k].center)
        image[y, x] += spots[k].number * spots[k].color * sad.exp(-sad.dot(d, d))


@sad.kernel
def moved(i: sad.Index, spots: sad.In[Spot], by: float2, out: sad.Out[Spot]):
    out[i].center = spots[i].center * by
    out[i].color = spots[i].color * spots[i].center.x
    out[i].number = spots[i].number + 1


@sad.struct
class Mesh:
    points: sad.In[float3]
    index: sad.In[int]


@sad.kernel
def looked_up(i: sad.Index, mesh: Mesh, out: sad.Out[float]):
    out[i] = sad.dot(mesh.points[mesh.index[i]], float3(1.0, 2.0, 3.0)) ** 2


@sad.struct
class Scene:
    weights: sad.Pointer[float2]
    scale: float


@sad.kernel
def pointed(i: sad.Index, scene: Scene, x: sad.In[float], out: sad.Out[float]):
    w = scene.weights[i % 2]
    out[i] = scene.scale * w.x * x[i] + w.y * w.y


@sad.struct
class Material:
    color: sad.Texture2D[float2]
    smooth: sad.Sampler
    scale: float


@sad.kernel
def textured(i: sad.Index, m: Material, uv: sad.In[float2], out: sad.Out[float2]):
    c = m.scale * m.color.sample(m.smooth, 0.2 + 0.4 * uv[i])
    out[i] = c * c.yx


@sad.graph
def textured_loss(t, s, uv):
    c = textured({"color": t, "smooth": s, "scale": 1.5}, uv)
    return sad.sum(sad.dot(c, uv))


@sad.kernel
def printed(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.log(x[i])
    print("x", x[i])  # noqa: T201


@sad.kernel
def root(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.sqrt(x[i])


@sad.kernel
def watched(i: sad.Index, x: sad.In[float]):
    print("watched", x[i])  # noqa: T201
    assert x[i] > 0.0, "positive"


def doubled(x):
    """With a kernel that prints, checks, and writes nothing."""
    watched(x)
    return 2.0 * x


def textured_parts(parts, uv, sampler):
    """With a texture that is the first part of a container."""
    t = parts.left if isinstance(parts, Pair) else parts["t" if isinstance(parts, dict) else 0]
    return textured({"color": t, "smooth": sampler, "scale": 1.5}, uv)


@sad.graph
def accumulated(x):
    """A gradient, added in place to an array."""
    _, pullback = sad.vjp(square, x, 2.0)
    return pullback(sad.sin(x), accumulate=(x * x, None))[0]


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)


@sad.graph
def dense(x, layer, scale=1.0):
    return {"y": sad.tanh(x @ layer["w"] + layer["b"]) * scale, "rows": x.shape[0]}


@dataclass
class Pair:
    left: Any
    right: Any


def mixed(pair: Pair, weights: list[Any], power: int):
    """A plain function of a dataclass and a list, with kernels and functions on arrays."""
    squares = square(pair.left, weights[0], dim=pair.left.shape[0])
    return Pair(sad.sum(squares**power), [sad.exp(pair.right) * weights[1], "seen", power])


def second_use(x):
    """One array twice among the results."""
    y = x * x
    return y, [y, x]


@dataclass
class Case:
    """A function with arguments."""

    name: str
    function: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    call: dict[str, Any]


Floats = Callable[..., Any]
"""From a shape an array of floats."""
Whole = Callable[[list[int]], Any]


def spots(floats: Floats, whole: Whole) -> dict[str, Any]:
    return {"center": floats(3, 2), "color": floats(3, 3), "number": whole([1, 2, 1])}


def mesh_dict(floats: Floats, whole: Whole) -> dict[str, Any]:
    return {"points": floats(4, 3), "index": whole([3, 0, 0, 2, 1])}


def scene(floats: Floats) -> Scene:
    return Scene(weights=sad.pointer(floats(2, 2)), scale=floats())  # pyright: ignore


TEXELS = np.float32([[[0.3, 0.9], [1.2, 0.4]], [[0.8, 0.1], [0.5, 1.4]]])


def material(floats: Floats) -> Material:
    return Material(sad.texture(TEXELS), sad.sampler(wrap="clamp"), floats())  # pyright: ignore


def cases(floats: Floats, whole: Whole) -> list[Case]:
    """Each function with arguments of a library: its arrays of floats and of whole numbers."""
    return [
        Case("square", square, lambda: (floats(5), floats()), {}),
        Case("gathered", gathered, lambda: (floats(5), whole([0, 2, 0, 1, 2])),
             {"shapes": {"total": (4,)}}),
        Case("both", both, lambda: (floats(3, 3), 3), {}),
        Case("splat", splat, lambda: (spots(floats, whole),), {"dim": (2, 3)}),
        Case("moved", moved, lambda: (spots(floats, whole), floats(2)), {}),
        Case("mesh_dict", looked_up, lambda: (mesh_dict(floats, whole),), {"dim": 5}),
        Case("mesh_struct", looked_up, lambda: (Mesh(**mesh_dict(floats, whole)),), {"dim": 5}),
        Case("pointed", pointed, lambda: (scene(floats), floats(3)), {}),
        Case("accumulated", accumulated, lambda: (floats(3),), {}),
        Case("textured", textured, lambda: (material(floats), floats(3, 2)), {}),
        Case("textured_loss", textured_loss,
             lambda: (sad.texture(TEXELS), sad.sampler(wrap="clamp"), floats(3, 2)), {}),
        Case("scan_product", scan_product, lambda: (floats(4),), {}),
        Case("dense", dense, lambda: (floats(2, 3), {"w": floats(3, 2), "b": floats(2)}), {}),
        Case("mixed", mixed, lambda: (Pair(floats(3), floats(2)), [floats(), floats(2)], 2), {}),
        Case("second_use", second_use, lambda: (floats(3),), {}),
        Case("transform", sad.grad(scan_product), lambda: (floats(4),), {}),
    ]  # fmt: skip


def arrays_in(tree: Any) -> list[Any]:
    """The arrays of arguments or results, in order."""
    if hasattr(tree, "dtype"):
        return [tree]
    return [leaf for part in _parts(tree).values() for leaf in arrays_in(part)]


def with_arrays(tree: Any, arrays: Sequence[Any]) -> Any:
    """A tree with other arrays, in order."""
    remaining = iter(arrays)

    def replaced(tree: Any) -> Any:
        if hasattr(tree, "dtype"):
            return next(remaining)
        parts = {key: replaced(part) for key, part in _parts(tree).items()}
        if isinstance(tree, dict):
            return parts
        if isinstance(tree, tuple | list):
            return type(tree)(parts.values())
        if hasattr(tree, "target"):
            return sad.pointer(parts["target"])
        return type(tree)(**parts) if parts else tree

    return replaced(tree)


def _parts(tree: Any) -> dict[Any, Any]:
    if isinstance(tree, dict):
        return tree
    if isinstance(tree, tuple | list):
        return dict(enumerate(tree))
    return dict(vars(tree)) if hasattr(tree, "__dict__") else {}
