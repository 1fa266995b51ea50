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

KEPT = {"color": 0.05, "roughness": 0.8, "slope": 0.4}
"""The most that is kept of a first error; few pixels show the gloss of a texel."""
SHADING = SAMPLES / "material" / "shading.py"
TARGETS = ("spirv", "hlsl", "wgsl", "metal")


def test_a_material_is_found_by_its_photographs(device: sad.Device) -> None:
    """All three textures, by how they look from elsewhere and by themselves."""
    with live_sample("material") as sample:
        true, views = sample.tiles.textures(32), sample.shots(32)
        (start, found), errors = sample.fit(views, sample.photographed(true, views, 20), 32, 60)
        before, after, wanted = (
            sample.photographed(maps, sample.unseen(), 32).numpy() for maps in (start, found, true)
        )
    assert errors[-1] < 0.03 * errors[0]
    assert np.square(after - wanted).mean() < 0.04 * np.square(before - wanted).mean()
    for name, share in KEPT.items():
        before, after, wanted = (np.asarray(maps[name]) for maps in (start, found, true))
        if name == "color":  # alpha is not seen
            before, after, wanted = (x[..., :3] for x in (before, after, wanted))
        assert np.square(after - wanted).mean() < share * np.square(before - wanted).mean(), name


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
    """With its gradients, and what is loaded gives the same ones."""
    sad.build(SHADING, tmp_path, targets=TARGETS, require_backward=True)
    loaded = sad.load(tmp_path)
    with live_sample("material") as sample:
        true, views = sample.material(sample.tiles.textures(16)), sample.shots(2)
        wanted = np.full((2, 8, 8, 3), 0.3, np.float32)
        call = {"dim": (2, 8, 8), "shapes": {"total": 1}}
        pairs = [
            sad.value_and_grad(error)(true, views, wanted, **call)
            for error in (sample.shading.error, loaded.error)
        ]
    (value, live), (built_value, built) = pairs
    assert float(built_value) == pytest.approx(float(value), rel=1e-5)
    for name in KEPT:
        texels = getattr(live, name).numpy()
        found = getattr(built, name).numpy()
        np.testing.assert_allclose(found, texels, rtol=1e-3, atol=1e-4 * np.abs(texels).max())
