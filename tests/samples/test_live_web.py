"""Pages of samples in Chromium: products, random numbers, convolutions, loops, meshes.

The driver that Chromium brings has no float atomics.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.samples import browser
from tests.samples.browser import chromium
from tests.samples.live_loading import live_sample

pytestmark = [pytest.mark.gpu, browser.needed, pytest.mark.slow]

STEPS = 3
LOSS_TOLERANCE = 1e-3
"""Relative: float32 sums in another order, through `STEPS` steps of Adam."""
TRAINED = """(async () => {
  const { Training } = await import(new URL("training.js", location));
  const training = await Training.of(".");
  const found = [];
  for (let k = 0; k < STEPS; k++) {
    training.step();
    found.push(await training.loss());
  }
  training.reset();
  training.step();
  const again = await training.loss();
  const view = await training.view(Object.keys(training.told.views)[0]);
  return { found, again, pixels: [...new Float32Array(await training.read(view))] };
})()"""


def texture_losses(sample: ModuleType) -> list[float]:
    return sample.fit(sample.picture(24), sample.untrained(), STEPS)[1]


def smoke_losses(sample: ModuleType) -> list[float]:
    start, goal = (sample.blot(32, shape) for shape in (sample.ring, sample.sign))
    return sample.fit(start, goal, STEPS)[1]


def planet_losses(sample: ModuleType) -> list[float]:
    return sample.fit(sample.on_device(sample.texels(16)), STEPS)[1]


def shape_losses(sample: ModuleType) -> list[float]:
    return sample.fit(*sample.start(4, 32), STEPS).errors


@pytest.mark.parametrize(
    ("name", "size", "losses"),
    [
        ("neural_texture", 24, texture_losses),
        ("silhouettes", 32, shape_losses),
        ("smoke", 32, smoke_losses),
        ("texture", 16, planet_losses),
    ],
)
def test_the_page_fits_as_python_does(
    name: str, size: int, losses: Callable[[Any], list[float]], tmp_path: Path,
    wgpu_features: frozenset[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "path", list(sys.path))
    with live_sample(name) as sample:
        sample.main(["--web", str(tmp_path), "--size", str(size)])
        with sad.open_device("wgpu") as device:
            wanted = losses(sample)
        device.close()
    with chromium.served(tmp_path) as address, chromium.Tab(flags=chromium.WEBGPU) as tab:
        tab.open(f"{address}/page.json")
        found = tab.value(TRAINED.replace("STEPS", str(STEPS)))
    np.testing.assert_allclose(found["found"], wanted, rtol=LOSS_TOLERANCE)
    assert found["again"] == pytest.approx(wanted[0], rel=LOSS_TOLERANCE)
    assert found["found"][-1] < found["found"][0]
    assert len(found["pixels"]) % (3 * size * size) == 0
    assert np.isfinite(found["pixels"]).all()
