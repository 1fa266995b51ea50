"""Which triangle shows in each pixel, in float64, by trying all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

NEAR = 1e-6
"""Decisions nearer than this, in units of clip space, may fall either way in 32 bits."""


def centers(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """X and y of the pixels' centres in normalised device coordinates."""
    y, x = np.mgrid[0:height, 0:width]
    return (2 * x + 1) / width - 1, 1 - (2 * y + 1) / height


def faces(clip: Any, triangles: Any, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The nearest triangle of each pixel, -1 for none, and where that is certain."""
    px, py = centers(*size)
    nearest, second = np.full(size, np.inf), np.full(size, np.inf)
    face, is_sure = np.full(size, -1), np.ones(size, bool)
    for number, corners in enumerate(triangles):
        depth, margin = _shown(np.float64(clip)[corners], px, py)
        is_sure &= np.abs(margin) > NEAR
        depth = np.where(margin > 0, depth, np.inf)
        is_nearer = depth < nearest
        second = np.where(is_nearer, nearest, np.minimum(second, depth))
        face, nearest = np.where(is_nearer, number, face), np.minimum(nearest, depth)
    with np.errstate(invalid="ignore"):
        is_sure &= ~(second - nearest <= NEAR)
    return face, is_sure


def _shown(v: np.ndarray, px: np.ndarray, py: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A triangle's depth, and how far inside of it and of the depth's range each pixel is."""
    x, y, z, w = v.T
    seen = [(x[k] - px * w[k], y[k] - py * w[k]) for k in range(3)]
    pairs = ((1, 2), (2, 0), (0, 1))
    e = [seen[j][0] * seen[k][1] - seen[j][1] * seen[k][0] for j, k in pairs]
    det = e[0] * w[0] + e[1] * w[1] + e[2] * w[2]
    depth = (e[0] * z[0] + e[1] * z[1] + e[2] * z[2]) / det
    margin = np.minimum(depth, 1 - depth)
    for across, (j, k) in zip(e, pairs, strict=True):
        slope = np.hypot(y[j] * w[k] - w[j] * y[k], w[j] * x[k] - x[j] * w[k])
        margin = np.minimum(margin, across * np.sign(det) / slope)
    return depth, margin
