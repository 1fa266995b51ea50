"""Glazed tiles like the scales of a fish, as the textures of a seamlessly repeating material.

Heights are computed first. Colours, roughness and slopes follow from the scale of a point and its
distance to the edge of the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ACROSS = 4
"""Scales in a row; there are twice as many rows."""
GROUT = 0.035
"""Half the width of the grout, in widths of a scale."""
DOME, GRAIN = 0.12, 0.01
"""Heights in widths of a scale: from its edge to its middle, and of the grain of the grout."""
GLAZES = np.float64(
    [[0.02, 0.18, 0.26], [0.03, 0.32, 0.34], [0.10, 0.45, 0.40], [0.55, 0.30, 0.07]]
)
SHARES = (0.36, 0.32, 0.22, 0.10)
"""The share of scales with each of the colours, which are in linear light."""
MORTAR = np.float64([0.36, 0.33, 0.29])
OVERSAMPLED = 4
"""Points along an edge of a texel."""


def scales(points: int) -> tuple[Any, Any]:
    """The distance of each point to the edge of its scale, in widths, and the scale's number.

    A scale is a disk; the disks of each row lie on those of the row above.
    """
    at = ACROSS * (np.arange(points) + 0.5) / points
    x, y = at, at[:, None]
    inside, number = np.zeros((points, points)), np.zeros((points, points), int)
    low = np.floor(2 * y).astype(int)
    for row in (low, low + 1):  # the last one that covers a point is visible
        shift = 0.5 * (row % 2)
        column = np.floor(x - shift)
        distance = 0.5 - np.hypot(x - shift - column - 0.5, y - 0.5 * row)
        is_covered = distance > 0
        inside = np.where(is_covered, distance, inside)
        index = (row % (2 * ACROSS)) * ACROSS + column.astype(int) % ACROSS
        number = np.where(is_covered, index, number)
    return inside, number


def grain(rng: np.random.Generator, points: int, finest: float) -> Any:
    """Periodic noise of mean 0 and deviation 1, without waves below `finest` of the whole."""
    wave = np.hypot(np.fft.fftfreq(points, 1 / points), np.fft.fftfreq(points, 1 / points)[:, None])
    kept = np.exp(-((wave * finest) ** 2)) / np.maximum(wave, 3)
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=(points, points))) * kept).real
    return (noise - noise.mean()) / noise.std()


def textures(size: int) -> dict[str, Any]:
    """Base colour (size, size, 4), roughness (size, size) and slopes (size, size, 2), all float32.

    Slopes are derivatives of the height by u and v, all in lengths of the texture.
    """
    rng, points = np.random.default_rng(5), size * OVERSAMPLED
    inside, number = scales(points)
    fine, cloud = grain(rng, points, 0.01), grain(rng, points, 0.05)
    glazed = np.clip((inside - GROUT) / 0.02, 0, 1)  # 0 in the grout, 1 on a scale
    middle = np.clip((inside - GROUT) / (0.5 - GROUT), 0, 1)
    dome = DOME * middle * (2 - middle)
    height = (glazed * (dome + 0.004 * cloud) + (1 - glazed) * GRAIN * fine) / ACROSS

    count = 2 * ACROSS**2
    hue = GLAZES[rng.choice(len(GLAZES), count, p=SHARES)] * rng.uniform(0.75, 1.25, (count, 1))
    worn = rng.uniform(0.22, 0.6, count)
    color = hue[number] * (1 + 0.18 * cloud + 0.5 * (0.25 - inside))[..., None]
    color = mixed(MORTAR * (1 + 0.15 * fine)[..., None], color, glazed[..., None])
    roughness = mixed(0.85 + 0.05 * fine, worn[number] + 0.05 * cloud, glazed)

    def texels(values: Any) -> Any:
        shape = (size, OVERSAMPLED, size, OVERSAMPLED, *values.shape[2:])
        return values.reshape(shape).mean((1, 3)).astype(np.float32)

    slopes = [0.5 * points * (np.roll(height, -1, k) - np.roll(height, 1, k)) for k in (1, 0)]
    alpha = np.ones((points, points, 1))
    return {
        "color": texels(np.clip(np.concatenate([color, alpha], 2), 0, 1)),
        "roughness": texels(np.clip(roughness, 0.1, 1)),
        "slope": texels(np.stack(slopes, 2)),
    }


def mixed(a: Any, b: Any, share: Any) -> Any:
    return a + (b - a) * share
