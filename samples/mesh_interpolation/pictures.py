"""Linear pixels from 0 to 1, of shape (height, width, 3) -> PNG and animated WebP, as bytes.

Brighter values are clipped to 1. Nothing here depends on meshes or devices.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

GAMMA = 2.2
FRAME_MS = 60
LAST_FRAME_MS = 1800
"""The duration of the last frame, at which an animation pauses before it starts again."""

Pixels = np.ndarray[Any, np.dtype[np.floating[Any]]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def png(pixels: Pixels) -> bytes:
    """An 8-bit picture; the same pixels always give the same bytes."""
    written = io.BytesIO()
    Image.fromarray(displayed(pixels)).save(written, "PNG", optimize=True)
    return written.getvalue()


def webp(frames: Sequence[Bytes], quality: int = 85) -> bytes:
    """An endless animation of pictures that are `displayed`."""
    first, *others = [Image.fromarray(frame) for frame in frames]
    times = [FRAME_MS] * len(others) + [LAST_FRAME_MS]
    written = io.BytesIO()
    first.save(
        written,
        "WEBP",
        save_all=True,
        append_images=others,
        duration=times,
        quality=quality,
        loop=0,
    )
    return written.getvalue()


def displayed(pixels: Pixels) -> Bytes:
    """Pixels encoded for displays: gamma-corrected, with 8 bits per channel."""
    display = np.clip(pixels, 0, 1) ** (1 / GAMMA)
    return np.rint(255 * display).astype(np.uint8)


def smaller(pixels: Pixels, largest_edge: int) -> Pixels:
    """A smaller picture with edges up to `largest_edge`, by means over squares of pixels."""
    factor = -(-max(pixels.shape[:2]) // largest_edge)
    height, width = (edge // factor for edge in pixels.shape[:2])
    kept = pixels[: height * factor, : width * factor]
    return kept.reshape(height, factor, width, factor, 3).mean((1, 3))


def row(*pictures: Pixels) -> Pixels:
    """Pictures of one height, side by side."""
    return np.concatenate(pictures, axis=1)
