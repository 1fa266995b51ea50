"""Linear colours -> PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

GAMMA = 2.2


def save(pixels: np.ndarray[Any, Any], path: Path) -> None:
    """Writes linear colours, of shape (height, width, 3), as an 8-bit PNG."""
    display = np.clip(pixels, 0, 1) ** (1 / GAMMA)
    Image.fromarray(np.rint(255 * display).astype(np.uint8)).save(path, optimize=True)
    print(f"wrote {path}")
