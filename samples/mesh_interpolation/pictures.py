"""Colours at the samples of a view -> PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from scene import View

SAMPLES_A_PIXEL = 2
"""Along each edge; averaging them smooths the outline."""
BACKGROUND = 0.018
GAMMA = 2.2

Pixels = np.ndarray[Any, np.dtype[np.float64]]


def picture(view: View, colors: np.ndarray[Any, Any]) -> Pixels:
    """Linear pixels, of shape (height, width, 3), of what each covered sample shows."""
    samples = np.full((view.size * view.size, 3), BACKGROUND)
    samples[view.sample] = colors
    edge = view.size // SAMPLES_A_PIXEL
    return samples.reshape(edge, SAMPLES_A_PIXEL, edge, SAMPLES_A_PIXEL, 3).mean((1, 3))


def signed_picture(view: View, values: np.ndarray[Any, Any]) -> Pixels:
    """Zero as grey; what should grow is bright, what should shrink is dark."""
    scale = np.quantile(np.abs(values), 0.98)
    return picture(view, np.clip(0.5 - 0.5 * values / scale, 0, 1) ** GAMMA)


def save(pixels: Pixels, path: Path) -> None:
    """Writes linear pixels as an 8-bit PNG."""
    display = np.clip(pixels, 0, 1) ** (1 / GAMMA)
    Image.fromarray(np.rint(255 * display).astype(np.uint8)).save(path, optimize=True)
    print(f"wrote {path}")
