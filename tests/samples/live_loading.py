"""The samples whose scripts import one another by their short names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from tests.samples.loading import SAMPLES, module_of

SHARED = ("live", "mesh_interpolation")
GRAPHS = {
    "neural_texture": "texture",
    "silhouettes": "shape",
    "smoke": "fluid",
    "texture": "planet",
}


@contextmanager
def live_sample(name: str) -> Iterator[ModuleType]:
    """The main script of a sample; what it imports is forgotten afterwards."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(SAMPLES / name), *sys.path])
        try:
            yield module_of(SAMPLES / name / "main.py")
        finally:
            own = {path.stem for path in (SAMPLES / name).glob("*.py")}
            short = own | {"live", "chart", "pictures"}
            for module in short & (set(sys.modules) - before):
                del sys.modules[module]
