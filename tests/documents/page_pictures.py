"""Pictures that pages write, and whether they are the ones in docs/pictures."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

PAGE_PICTURES = {
    "graphs": ("graph.svg", "graph.svg"),
    "fit_a_texture": ("fit.png", "fit_a_texture.png"),
}
"""The picture that a page writes, and the one in docs/pictures that it shows, by page."""


def are_alike(written: Path, shown: Path) -> bool:
    """True for equal drawings, and for pictures that the eye does not tell apart."""
    if written.suffix == ".svg":  # Graphviz, where it is installed, places nodes otherwise.
        return bool(shutil.which("dot")) or written.read_bytes() == shown.read_bytes()
    image = pytest.importorskip("PIL.Image")
    one, other = (np.asarray(image.open(path), np.float32) for path in (written, shown))
    return one.shape == other.shape and bool(np.abs(one - other).mean() < 2.0)
