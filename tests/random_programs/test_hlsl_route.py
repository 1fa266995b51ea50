"""The route through HLSL runs what glslang translates rightly, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2
from tests.random_programs import hlsl_route
from tests.random_programs.hlsl_route import Untranslatable, check_products, hlsl_device

TREE = """\
0:{line}        matrix-multiply ( temp 2X2 matrix of float)
0:{line}          'a' ( temp 2X2 matrix of float)

Linked compute stage:

0:{line}        matrix-multiply ( temp 2X2 matrix of float)
"""
TEXT = "c = mul(a, b);\nd = a * b;\n"
IDENTITY = np.eye(2, dtype=np.float32)[None]


def test_a_call_of_mul_is_a_matrix_product() -> None:
    check_products(TEXT, TREE.format(line=1))


def test_a_matrix_product_made_of_an_operator_is_refused() -> None:
    with pytest.raises(Untranslatable, match="d = a"):
        check_products(TEXT, TREE.format(line=2))


@sad.kernel
def by_component(
    i: sad.Index, m: sad.In[float2x2], n: sad.In[float2x2], scale: float, y: sad.Out[float2x2]
):
    product = m[i]
    product *= n[i]
    y[i] = product * scale + float2x2(1.0) * scale * m[i]


@sad.kernel
def by_matrix(i: sad.Index, m: sad.In[float2x2], v: sad.In[float2], y: sad.Out[float2]):
    y[i] = m[i] @ (m[i] @ m[i]) @ v[i]


@pytest.fixture
def device() -> object:
    if not hlsl_route.is_available():
        pytest.skip(f"{hlsl_route.TOOL} is missing")
    with hlsl_device() as opened, opened:
        yield opened


@pytest.mark.gpu
def test_products_by_component_are_run(device: sad.Device) -> None:
    """Of HLSL's operator glslang would make matrix products."""
    m = np.float32([[[1, 2], [3, 4]]])
    y, pullback = sad.vjp(by_component, m, 2 * m, 3.0, dim=1)
    np.testing.assert_array_equal(y.numpy(), 3 * m * 2 * m + 3 * m)
    by_m, by_n, by_scale = pullback(np.ones_like(m))
    np.testing.assert_array_equal(by_m.numpy(), 6 * m + 3)
    np.testing.assert_array_equal(by_n.numpy(), 3 * m)
    assert by_scale.item() == (2 * m * m + m).sum()


@pytest.mark.gpu
def test_matrix_products_are_run(device: sad.Device) -> None:
    v = np.float32([[3.0, 5.0]])
    assert by_matrix(2.0 * IDENTITY, v, dim=1).numpy().tolist() == [[24.0, 40.0]]


@pytest.mark.gpu
def test_a_translator_that_dies_is_at_no_fault_of_the_text(
    device: sad.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / hlsl_route.TOOL
    tool.write_text("#!/bin/sh\nkill -SEGV $$\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(Untranslatable, match="dies of signal 11"):
        by_matrix(IDENTITY, np.ones((1, 2), np.float32), dim=1)
