"""Textures in kernels on a driver without float atomics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import swiftshader


@pytest.mark.slow
@pytest.mark.swiftshader
@swiftshader.needed
def test_a_driver_without_float_atomics_has_gradients_by_texels() -> None:
    which = "and (all_threads or given_levels or struct_of)"
    swiftshader.check_passes((Path(__file__).parent / "test_kernels.py",), which)
