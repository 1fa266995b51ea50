"""What samplers do, in NumPy: values at points of textures of one to three dimensions."""

from __future__ import annotations

from itertools import product

import numpy as np

from shaderad.runtime.textures import SamplerSettings

FACES = (
    lambda a, b: (1, -b, -a),
    lambda a, b: (-1, -b, a),
    lambda a, b: (a, 1, b),
    lambda a, b: (a, -1, -b),
    lambda a, b: (a, -b, 1),
    lambda a, b: (-a, -b, -1),
)
"""The direction of a point (a, b) of each face, from -1 to 1 to the right and down."""


def sampled(
    levels: list[np.ndarray], at: np.ndarray, level: np.ndarray, settings: SamplerSettings
) -> np.ndarray:
    """Values of levels of shape [..., rows, columns, channels] at points (x, y, z)."""
    level = np.clip(level, 0, len(levels) - 1)
    if settings.mip_filter == "nearest":
        level = np.rint(level)
    every = np.array([_on_level(texels, at, settings) for texels in levels])
    low = np.minimum(level.astype(int), len(levels) - 1)
    high, share = np.minimum(low + 1, len(levels) - 1), (level - low)[:, None]
    points = np.arange(len(at))
    return every[low, points] * (1 - share) + every[high, points] * share


def _on_level(texels: np.ndarray, at: np.ndarray, settings: SamplerSettings) -> np.ndarray:
    extents = texels.shape[-2::-1]
    is_nearest = settings.filter == "nearest"
    places = at * extents - (0.0 if is_nearest else 0.5)
    low = np.floor(places).astype(int)
    value = np.zeros((len(at), texels.shape[-1]))
    for corner in product((0,) if is_nearest else (0, 1), repeat=len(extents)):
        weights = np.where(corner, places - low, 1.0 if is_nearest else 1 - (places - low))
        index = [
            _wrapped(low[:, k] + corner[k], n, settings.wrap[k]) for k, n in enumerate(extents)
        ]
        value += weights.prod(1)[:, None] * texels[tuple(index[::-1])]
    return value


def _wrapped(k: np.ndarray, n: int, wrap: str) -> np.ndarray:
    if wrap == "repeat":
        return k % n
    if wrap == "clamp":
        return np.clip(k, 0, n - 1)
    return np.minimum(k % (2 * n), 2 * n - 1 - k % (2 * n))
