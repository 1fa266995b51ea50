"""The material on small textures: what the fit finds, the files it writes, and its build."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from tests.samples.live_loading import live_sample
from tests.samples.loading import SAMPLES

pytestmark = pytest.mark.gpu

TARGETS = ("spirv", "hlsl", "wgsl", "metal")


def test_a_material_is_found_by_its_photographs(device: sad.Device) -> None:
    with live_sample("material") as sample:
        views = sample.shots(8)
        true, start = (sample.arrays(x) for x in (sample.tiles.textures(32), sample.grey(32)))
        wanted = sample.photographed(true, views, 24)
        found, errors = sample.fit(start, views, wanted, 40)
        photographs = [
            sample.photographed(maps, sample.unseen(), 24).numpy() for maps in (start, found, true)
        ]
    assert errors[-1] < 0.1 * errors[0]
    before, after = (np.square(x - photographs[2]).mean() for x in photographs[:2])
    print(before, after)
    for name, texels in found.items():
        before, after = (
            np.square(maps[name].numpy() - true[name].numpy()).mean() for maps in (start, found)
        )
        print(name, before, after, texels.shape)
    assert 0


def test_pictures_and_a_curve_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    with live_sample("material") as sample:
        sample.main(["--out", str(tmp_path), "--steps", "2", "--size", "12"])
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"start.png", "fit.png", "target.png", "overview.png", "loss.svg"}
    with Image.open(tmp_path / "overview.png") as picture:
        assert 3 * picture.width == 4 * picture.height


@pytest.mark.slow
def test_the_material_is_built_for_every_target(tmp_path: Path) -> None:
    sad.build(SAMPLES / "material" / "shading.py", tmp_path, targets=TARGETS)
    names = {path.suffix for path in tmp_path.iterdir()}
    assert {".spv", ".hlsl", ".wgsl", ".metal"} <= names
