"""The small samples on small inputs: losses fall as far as they should, pictures appear."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from shaderad import float3
from tests.samples.loading import SAMPLES, module_of

pytestmark = pytest.mark.gpu


def sample(name: str) -> ModuleType:
    return module_of(SAMPLES / name / "main.py")


def test_splats_come_to_look_like_the_picture(device: sad.Device) -> None:
    splats = sample("splats")
    target = splats.picture(24)
    errors, *ends = splats.fit(target, 40, 31)
    start, found = (splats.rendered(x, 24) for x in ends)
    assert errors[-1] < 0.2 * errors[0]
    assert np.square(found - target).sum(-1).mean() < 0.2 * np.square(start - target).sum(-1).mean()


def test_the_wind_is_found_through_all_time_steps(device: sad.Device) -> None:
    cloth = sample("cloth")
    errors, (still, found, goal) = cloth.fit(6, 40)
    assert errors[-1] < 1e-3 * errors[0]
    assert np.abs(found - goal).max() < 0.05 * np.abs(still - goal).max()


def test_the_winds_gradient_is_that_of_finite_differences(device: sad.Device) -> None:
    cloth = sample("cloth")
    p = sad.array(cloth.hung(4), dtype=float3)
    goal = cloth.blown(p, cloth.WIND, 1 / 3)
    wind = sad.array(np.array([0.2, 0.1, 0.4]), dtype=float3)
    sad.gradcheck(lambda wind: cloth.error(wind, p, 1 / 3, goal), wind)


def test_brightness_moves_until_its_histogram_is_flat(device: sad.Device) -> None:
    histogram = sample("histogram")
    pixels, flat = histogram.picture(48).ravel(), np.full(histogram.BINS, 1 / histogram.BINS)
    distances, values = histogram.fit(pixels, flat.astype(np.float32), 60)
    assert distances[-1] < 0.02 * distances[0]
    shares = histogram.counts(sad.array(values)).numpy()
    assert shares.sum() == pytest.approx(1.0, rel=1e-5)
    assert np.abs(np.cumsum(shares - flat)).max() < 0.05


@pytest.mark.parametrize(
    ("name", "few"),
    [("splats", ["--count", "9"]), ("cloth", []), ("histogram", [])],
)
def test_a_picture_is_written(
    name: str, few: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found.png"
    sample(name).main(["--out", str(out), "--steps", "3", "--size", "12", *few])
    with Image.open(out) as picture:
        assert picture.width > picture.height
    assert f"wrote {out}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["splats", "cloth", "histogram"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--size", "0"], "--size"),
        (["--steps", "0"], "--steps"),
        (["--out", "{folder}"], "Is a directory"),
    ],
)
def test_a_wrong_argument_is_one_line_and_no_traceback(
    name: str, wrong: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--out", str(tmp_path / "found.png"), "--size", "6", "--steps", "1"]
    with pytest.raises(SystemExit) as stopped:
        sample(name).main([*few, *(word.format(folder=tmp_path) for word in wrong)])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
