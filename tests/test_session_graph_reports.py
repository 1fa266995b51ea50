"""What `@sad.graph` functions tell about themselves."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)


@pytest.mark.gpu
def test_explain_tells_dispatches_and_bytes_at_the_sizes_of_a_call(device: sad.Device) -> None:
    text = scan_product.explain(sad.array(np.ones(1000, np.float32), device=device))
    assert "float[1,000] (4,000 bytes)" in text
    assert "most live at one time: " in text
    assert "in one submission" in text


@pytest.mark.gpu
def test_explain_without_arguments_leaves_sizes_open(device: sad.Device) -> None:
    scan_product(sad.array(np.ones(8, np.float32), device=device))
    assert "scan by " in scan_product.explain()
    assert "[n]" in scan_product.explain()


@pytest.mark.gpu
def test_draw_shows_the_function_beside_its_gradient(device: sad.Device, tmp_path: Path) -> None:
    path = tmp_path / "scan_product.svg"
    scan_product.draw(path, sad.array(np.ones(8, np.float32), device=device))
    text = path.read_text()
    assert "scan_product" in text
    assert "gradient" in text
