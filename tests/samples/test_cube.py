"""The cube that is found from pictures of 16 x 16 pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from tests.samples.loading import SAMPLES, module_of

pytestmark = pytest.mark.gpu

cube = module_of(SAMPLES / "silhouettes" / "cube.py")


def test_vertices_of_a_cube_are_found_from_16_by_16_pixels(device: sad.Device) -> None:
    errors, (first, last) = cube.fit(16, 500, 6)
    assert errors.shape == (500, 6)
    assert errors[0].min() > 0.3
    assert np.median(errors[-1]) < cube.GOAL
    true = sad.array(cube.COLORS, dtype=sad.float3)
    apart = [np.linalg.norm((colors - true).numpy(), axis=-1) for _, colors in (first, last)]
    assert np.median(apart[1]) < 0.05 * np.median(apart[0])


def test_curves_and_cubes_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cube.png"
    cube.main(["--out", str(out), "--steps", "2", "--starts", "2"])
    with Image.open(out) as picture:
        assert picture.width > picture.height
    printed = capsys.readouterr().out
    assert printed.count("from 0 of 2 starts") == len(cube.SIZES)
    assert printed.endswith(f"wrote {out}\n")
