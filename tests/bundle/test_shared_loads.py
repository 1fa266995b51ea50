"""Products of builds whose threads share what they load, in memory of the workgroup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from tests.samples import host_graphs


@pytest.mark.gpu
@pytest.mark.parametrize(("workgroup", "is_shared"), [(64, True), (8, True), (100, False)])
def test_products_in_workgroups_of_any_size(
    workgroup: int, is_shared: bool, tmp_path: Path, device: sad.Device
) -> None:
    sad.build(
        host_graphs.__file__,
        tmp_path,
        entries="layer",
        targets="spirv-core",
        workgroup=workgroup,
        validate=False,
    )
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("spirv-core/*.slang")]
    sharing = [text for text in texts if "groupshared uint shared_" in text]
    # The product, alone and with what its gradients need, and these.
    assert len(sharing) == (4 if is_shared else 0)
    x, w = (
        np.random.default_rng(7).normal(size=s).astype(np.float32) for s in ((40, 80), (80, 32))
    )
    out, pullback = sad.vjp(sad.load(tmp_path).layer, x, w)
    exact = x.astype(np.float64) @ w
    np.testing.assert_allclose(out.numpy(), np.maximum(exact, 0.0), atol=1e-4)
    bar = np.float64(exact > 0.0)
    for found, wanted in zip(
        pullback(np.ones_like(out.numpy())), (bar @ w.T, x.T @ bar), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)
