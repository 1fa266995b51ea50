"""What a loaded build is asked for: results and, where there is one, a gradient, by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays import trees
from tests.spoiled_builds.model import Mesh

_DRAW = np.random.default_rng(7)
X = _DRAW.uniform(0.5, 1.5, 5).astype(np.float32)
PAIRS = (X[::-1].copy(), np.int32([2, 0, 4]))
CLOUD = {"points": _DRAW.normal(size=(3, 3)), "sizes": X, "scale": 1.5}
BASE = np.float32([[1, 2], [3, 4], [5, 6]])


def gradient(function: Any, *args: Any, **options: Any) -> Any:
    """Results, and the gradients for cotangents of one."""
    out, pullback = sad.vjp(function, *args, **options)
    return out, pullback(trees.mapped(_one, out))


def _one(leaf: Any) -> Any:
    return np.ones(leaf.shape) if isinstance(leaf, sad.Array) else None


def _meshes() -> list[Mesh]:
    return [Mesh(triangles=sad.pointer([[1.0, 2.0], [3.0, 4.0]]), weight=w) for w in (2.0, 3.0)]


CALLS: dict[str, Callable[[Any], Any]] = {
    "splat": lambda f: gradient(f, CLOUD, [0, 2, 1, 2, 0], 0.75, dim=5,
                                shapes={"total": 3, "low": 1}),
    "behind": lambda f: f(_meshes(), [0, 1, 1], dim=3),
    "powers": lambda f: gradient(f, X, 3, dim=(5, 2)),
    "scan_product": lambda f: gradient(f, X),
    "moved": lambda f: f(X, PAIRS),
    "halved": lambda f: f(X),
    "sorted_rows": lambda f: f(X, BASE),
}  # fmt: skip


def numbers(found: Any) -> list[Any]:
    """What a call gave, on the host."""
    return [
        one.numpy().astype(np.float64) if isinstance(one, sad.Array) else one
        for one in trees.leaves(found)
    ]
