"""Derivatives by silhouettes against those of Mitsuba 3, where it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, render
from tests.render.test_antialiasing import AREA, coverage

pytest.importorskip("mitsuba")
pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SIZE = (48, 48)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, np.ndarray]:
    out = tmp_path_factory.mktemp("mitsuba") / "pictures.npz"
    command = [sys.executable, "-m", "tests.render.mitsuba_pictures", str(out)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        pytest.skip(f"Mitsuba does not run here: {done.stderr.strip().splitlines()[-1]}")
    return np.load(out)


def by_parameter(positions: np.ndarray, corners: np.ndarray, moved: Any) -> np.ndarray:
    """How the coverage of triangles changes with the parameter of `moved`, at 0."""
    lens = render.perspective(2 * np.arctan(1 / 5), 1.0, 1.0, 10.0)
    camera = lens @ render.look_at((0.0, 0.0, 5.0), (0.0, 0.0, 0.0))

    def picture(x: Any) -> Any:
        clip = render.transform(camera, moved(sad.array(positions, dtype=float3), x))
        return coverage(clip, corners, SIZE)

    zero, one = (sad.array(np.float32(k)) for k in (0, 1))
    return sad.jvp(picture, (zero,), (one,))[1].numpy()


def check_thresholds(found: np.ndarray, wanted: np.ndarray) -> None:
    """The error and thresholds of Mitsuba 3, test_ad_integrators."""
    error = np.abs(found - wanted) / np.maximum(np.abs(wanted), 0.2)
    assert error.mean() < 0.03
    assert error.max() <= 1.0


def test_rectangle_that_moves(device: sad.Device, pictures: Mapping[str, np.ndarray]) -> None:
    x, y, width, height = 0.0123, -0.0321, 0.5, 0.4
    points = [(x + a * width, y + b * height, 0) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    found = by_parameter(
        np.float32(points), np.int32([[0, 1, 2], [0, 2, 3]]), lambda p, x: p + float3(x, 0.0, 0.0)
    )
    check_thresholds(found, pictures["rectangle"])


def test_disk_that_grows(device: sad.Device, pictures: Mapping[str, np.ndarray]) -> None:
    count = 200
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    rim = 0.6 * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    corners = np.int32([[k, (k + 1) % count, count] for k in range(count)])
    found = by_parameter(np.float32([*rim, [0, 0, 0]]), corners, lambda p, x: p * (1.0 + x))
    wanted = pictures["disk"]
    assert abs(found.sum() / wanted.sum() - 1) < AREA
    # Pixels share an outline by the lines between their centres, not by area: means over 3 x 3.
    blurred = [x.reshape(16, 3, 16, 3).mean((1, 3)) for x in (found, wanted)]
    assert np.abs(blurred[0] - blurred[1]).mean() < 0.15 * np.abs(blurred[1]).mean()
