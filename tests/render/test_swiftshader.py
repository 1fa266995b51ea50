"""The kit on a driver without float atomics, whose compiler follows each path through a loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import swiftshader


@pytest.mark.slow
@pytest.mark.swiftshader
@swiftshader.needed
def test_a_driver_without_float_atomics_draws_and_differentiates() -> None:
    here = Path(__file__).parent
    files = ("test_rasterization.py", "test_textures.py", "test_antialiasing.py")
    # Its compiler gives up on gradients of mips of cubes.
    which = "and (derivatives or gradients or agree) and not direction_of_0"
    swiftshader.check_passes(tuple(here / file for file in files), which)
