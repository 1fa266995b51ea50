"""Reads of textures in NumPy and float64, written from Vulkan's specification, section 16."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Levels = Sequence[np.ndarray]
"""Texels of shape (..., channels) by level; layers and the faces of cubes come first."""


@dataclass(frozen=True)
class Settings:
    filter: str = "linear"
    wrap: str = "repeat"
    mip_filter: str = "linear"


def _wrapped(k: np.ndarray, n: int, wrap: str) -> np.ndarray:
    if wrap == "repeat":
        return k % n
    if wrap == "mirror":
        k = k % (2 * n)
        return np.where(k >= n, 2 * n - 1 - k, k)
    return np.clip(k, 0, n - 1)


def _taps(u: np.ndarray, n: int, s: Settings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if s.filter == "nearest":
        k = _wrapped(np.floor(u * n).astype(int), n, s.wrap)
        return k, k, np.zeros_like(u)
    at = u * n - 0.5
    low = np.floor(at).astype(int)
    return _wrapped(low, n, s.wrap), _wrapped(low + 1, n, s.wrap), at - low


def _on_level(texels: np.ndarray, uv: np.ndarray, s: Settings) -> np.ndarray:
    """Uv has x first, texels have it last."""
    axes = uv.shape[-1]
    taps = [_taps(uv[:, axes - 1 - k], texels.shape[k], s) for k in range(axes)]
    total = np.zeros((len(uv), texels.shape[-1]))
    for corner in range(2**axes):
        bits = [corner >> k & 1 for k in range(axes)]
        index = tuple(t[b] for t, b in zip(taps, bits, strict=True))
        weight = np.prod([t[2] if b else 1 - t[2] for t, b in zip(taps, bits, strict=True)], axis=0)
        total += texels[index] * weight[:, None]
    return total


def cube_place(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Face and coordinates of directions."""
    x, y, z = d.T
    major = np.argmax(np.abs(d), axis=1)
    face = 2 * major + (d[np.arange(len(d)), major] < 0)
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    size = np.abs(d[np.arange(len(d)), major])
    return face, np.stack([s / size, t / size], -1) / 2 + 0.5


def _on_cube(faces: np.ndarray, d: np.ndarray, s: Settings) -> np.ndarray:
    """Directions must be away from the edges of faces."""
    face, uv = cube_place(d)
    inside = Settings(s.filter, "clamp", s.mip_filter)
    total = np.zeros((len(d), faces.shape[-1]))
    for k in range(6):
        total[face == k] = _on_level(faces[k], uv[face == k], inside)
    return total


def _on_layers(layers: np.ndarray, at: np.ndarray, s: Settings) -> np.ndarray:
    layer = np.int64(np.clip(np.rint(at[:, 2]), 0, len(layers) - 1))
    total = np.zeros((len(at), layers.shape[-1]))
    for k, texels in enumerate(layers):
        total[layer == k] = _on_level(texels, at[layer == k, :2], s)
    return total


FILTERS: dict[str, Callable[..., np.ndarray]] = {"2d-array": _on_layers, "cube": _on_cube}


def sample(
    levels: Levels, at: Any, settings: Settings, level: Any = 0.0, dimension: str = "2d"
) -> np.ndarray:
    """The filtered value at each place."""
    at = np.asarray(at, np.float64)
    at = at[:, None] if at.ndim == 1 else at
    on = FILTERS.get(dimension, _on_level)
    last = len(levels) - 1
    wanted = np.clip(np.broadcast_to(np.asarray(level, float), len(at)), 0, last)
    if settings.mip_filter == "nearest":
        wanted = np.floor(wanted + 0.5)
    finer = np.floor(wanted).astype(int)
    share = (wanted - finer)[:, None]
    result = np.zeros((len(at), levels[0].shape[-1]))
    for k in range(last + 1):
        here = finer == k
        if here.any():
            fine = on(levels[k], at[here], settings)
            coarse = on(levels[min(k + 1, last)], at[here], settings)
            result[here] = fine + (coarse - fine) * share[here]
    return result


def level_of(size: Sequence[int], dx: Any, dy: Any) -> np.ndarray:
    """The level of steps to the right and down; size has x first."""
    scale = np.asarray(size, np.float64)
    lengths = [np.linalg.norm(np.reshape(d, (len(d), -1)) * scale, axis=1) for d in (dx, dy)]
    return np.log2(np.maximum(*lengths))


def halved(texels: np.ndarray, *, has_layers: bool = False) -> np.ndarray:
    """The next level, of even extents or 1."""
    for axis in range(1 if has_layers else 0, texels.ndim - 1):
        n = texels.shape[axis]
        if n > 1:
            texels = np.moveaxis(texels, axis, 0)
            texels = np.moveaxis((texels[0::2] + texels[1::2]) / 2, 0, axis)
    return texels


def chain(texels: np.ndarray, *, has_layers: bool = False) -> list[np.ndarray]:
    levels = [texels]
    while max(levels[-1].shape[1 if has_layers else 0 : -1]) > 1:
        levels.append(halved(levels[-1], has_layers=has_layers))
    return levels
