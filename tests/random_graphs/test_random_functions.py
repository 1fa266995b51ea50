"""Random functions that call kernels agree with PyTorch in float64."""

from __future__ import annotations

import pytest

import shaderad as sad

pytest.importorskip("torch")

from tests.random_graphs.function_comparison import function_fault

COUNT = 12
"""Functions per runtime; the runtimes have different ones."""


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_values_and_derivatives_agree_with_pytorch(device: sad.Device, seed: int) -> None:
    is_second = device.capabilities.runtime == "slangpy"
    assert not function_fault(seed + COUNT if is_second else seed, device)
