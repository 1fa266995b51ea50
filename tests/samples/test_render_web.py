"""The rendering kit in Chromium, from a build: rasterise, interpolate, texture, antialias."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from tests.render import pictures
from tests.render.test_everywhere import arguments
from tests.samples import browser
from tests.samples.test_hosts_web import given, results_of

pytestmark = [pytest.mark.gpu, browser.needed, pytest.mark.slow]

CLOSE = 1e-4
"""Of the largest number: sums over some hundred pixels, in another order."""


def test_pictures_and_gradients_are_those_of_the_python_api(
    wgpu_features: frozenset[str], tmp_path: Path
) -> None:
    build = tmp_path / "pictures"
    sad.build(pictures.__file__, build, targets="wgsl", validate=False)
    with sad.open_device("wgpu") as device:
        inputs = arguments()
        shown, pullback = sad.vjp(pictures.picture, *inputs)
        bar = np.random.default_rng(1).normal(size=(*shown.shape, 3)).astype(np.float32)
        gradients = pullback(sad.array(bar, dtype=sad.float3))
        expected = [one.numpy() for one in (shown, *gradients) if one is not None]
        arrays = [given(str(x.element), x.numpy(), x.shape) for x in inputs]
    device.close()
    arrays.append(given("float3", bar, shown.shape))
    call = {"graph": "picture", "mode": "backward", "arrays": arrays}
    (found,) = results_of(build, [call], tmp_path)
    assert isinstance(found, dict), found
    assert len(found) == len(expected)
    for words, wanted in zip(found.values(), expected, strict=True):
        numbers = np.array(words, np.uint32).view(np.float32).reshape(wanted.shape)
        np.testing.assert_allclose(numbers, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())
    *moving, canvas_bar = expected
    assert all(one.any() for one in moving)
    assert not canvas_bar.any()
