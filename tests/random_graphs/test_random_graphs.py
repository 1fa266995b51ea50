"""Random graphs agree with NumPy: forty here, as many as wanted by the long run.

``python -m tests.random_graphs --help`` tells how to run more.
"""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.random_graphs.comparison import fault
from tests.random_graphs.generation import case

COUNT = 20
"""Of each runtime, which have different ones."""


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_results_and_derivatives_agree_with_numpy(device: sad.Device, seed: int) -> None:
    is_second = device.capabilities.runtime == "slangpy"
    assert not fault(case(seed + COUNT if is_second else seed), device)
