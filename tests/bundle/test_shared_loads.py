"""Products of builds whose threads share what they load, in memory of the workgroup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad

SOURCE = """
import shaderad as sad

@sad.graph
def layer(x: sad.Array[float, 64, 96], w: sad.Array[float, 96, 128]):
    return sad.relu(x @ w)
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("workgroup", "is_shared"), [(64, True), (16, True), (100, False)])
def test_products_in_workgroups_of_any_size(
    workgroup: int, is_shared: bool, tmp_path: Path, device: sad.Device
) -> None:
    source, out = tmp_path / "layers.py", tmp_path / "out"
    source.write_text(SOURCE, encoding="utf-8")
    sad.build(source, out, targets="spirv-core", workgroup=workgroup, validate=False)
    texts = [path.read_text(encoding="utf-8") for path in out.glob("spirv-core/*.slang")]
    sharing = [text for text in texts if "groupshared uint4 row_part" in text]
    # The product, alone and with what its gradients need, and these.
    assert len(sharing) == (4 if is_shared else 0)
    x, w = (
        np.random.default_rng(7).normal(size=s).astype(np.float32) for s in ((64, 96), (96, 128))
    )
    z, pullback = sad.vjp(sad.load(out).layer, x, w)
    exact = x.astype(np.float64) @ w
    np.testing.assert_allclose(z.numpy(), np.maximum(exact, 0.0), atol=1e-4)
    bar = np.float64(exact > 0.0)
    for found, wanted in zip(
        pullback(np.ones_like(z.numpy())), (bar @ w.T, x.T @ bar), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-4)
