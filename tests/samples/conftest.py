"""The scripts of samples/mesh_interpolation, which import one another by their short names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.samples.loading import SAMPLES, module_of

FOLDER = SAMPLES / "mesh_interpolation"
SHORT_NAMES = ("kernels", "scene", "pictures")


@pytest.fixture(scope="module")
def mesh_sample() -> Iterator[ModuleType]:
    """Its main.py, with the other scripts as attributes."""
    for name in SHORT_NAMES:
        module_of(FOLDER / f"{name}.py", name)
    yield module_of(FOLDER / "main.py")
    for name in SHORT_NAMES:
        del sys.modules[name]
