"""Random functions that call kernels agree with PyTorch in float64."""

from __future__ import annotations

import pytest

import shaderad as sad

pytest.importorskip("torch")

from tests.random_graphs.function_comparison import function_fault
from tests.random_graphs.interpreted import interpreted

# PyTorch scripts its own forward derivatives.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")

COUNT = 12
"""Functions per runtime; the runtimes have different ones."""
INTERPRETED = range(1000, 1006)


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_values_and_derivatives_agree_with_pytorch(device: sad.Device, seed: int) -> None:
    is_second = device.capabilities.runtime == "slangpy"
    assert not function_fault(seed + COUNT if is_second else seed, device)


@pytest.mark.gpu
@pytest.mark.slow
def test_traces_agree_with_pytorch() -> None:
    device = sad.open_device("wgpu")
    with interpreted(device):
        faults = [function_fault(seed, device) for seed in INTERPRETED]
    device.close()
    assert not any(faults), faults
