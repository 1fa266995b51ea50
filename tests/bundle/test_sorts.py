"""Builds of sorts by digits: every target takes them, and WGSL gives the same order as SPIR-V."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shaderad as sad
from shaderad.lower.targets import DEFAULT_TARGETS

LENGTH = 9000
SOURCE = f"""
import shaderad as sad

@sad.graph
def order(x: sad.Array[float, {LENGTH}]):
    return sad.argsort(x)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sorts") / "model.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_every_target_takes_them(source: Path) -> None:
    sad.build(source, source.parent / "all", targets=(*DEFAULT_TARGETS, "metal"))
    names = {path.name for path in (source.parent / "all").rglob("order_sorted_by_digit*")}
    for suffix in ("spv", "hlsl", "wgsl", "metal"):
        assert f"order_sorted_by_digit_primal.{suffix}" in names


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("target", ["spirv", "wgsl"])
def test_devices_run_them(target: str, source: Path) -> None:
    folder = source.parent / target
    sad.build(source, folder, targets=target, validate=False)
    x = np.random.default_rng(0).integers(-99, 99, LENGTH).astype(np.float32)
    with sad.open_device("wgpu") as device:
        order = sad.load(folder).order(x).numpy()
    device.close()
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
