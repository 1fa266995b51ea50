"""What `@sad.graph` functions tell about themselves."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
    assert scan_product.explain()._repr_html_().startswith("<pre>")


@pytest.mark.gpu
def test_a_notebook_shows_a_graph_that_was_called_as_its_picture(device: sad.Device) -> None:
    @sad.graph
    def doubled(x: Any) -> Any:
        return 2.0 * x

    assert repr(doubled) == "<graph doubled(x)>"
    assert doubled._repr_html_() is None
    doubled(sad.array(np.ones(8, np.float32), device=device))
    assert re.findall(r'font-size="14">(\w+)<', doubled._repr_html_()) == ["doubled", "gradient"]


@pytest.mark.gpu
def test_draw_shows_the_function_beside_its_gradient(device: sad.Device, tmp_path: Path) -> None:
    path = tmp_path / "scan_product.svg"
    scan_product.draw(path, sad.array(np.ones(8, np.float32), device=device))
    text = path.read_text()
    assert "scan_product" in text
    assert "gradient" in text


def test_a_report_of_an_array_function_names_no_kernel_or_buffer_of_ours(
    device: sad.Device,
) -> None:
    for read in (lambda x, k: sad.gather(x, k), lambda x, k: x[k], lambda x, k: 2.0 * x[k] + 1.0):
        with pytest.raises(sad.BoundsError) as caught:
            read(sad.array([1.0, 2.0, 3.0]), [7]).numpy()
        assert caught.value.message == "index 7 is out of range for an array of length 3"


def test_a_report_of_a_users_kernel_in_a_graph_names_both(device: sad.Device) -> None:
    @sad.graph
    def chosen(x: sad.Array[float], k: sad.Array[int]) -> sad.Array[float]:
        return 2.0 * picked(x, k, dim=1)

    with pytest.raises(sad.BoundsError) as caught:
        chosen([1.0, 2.0, 3.0], [7]).numpy()
    assert caught.value.message == "index 7 is out of range for `x` of length 3 in kernel `picked`"


@sad.kernel
def picked(i: sad.Index, x: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    y[i] = x[k[i]]
