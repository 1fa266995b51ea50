"""Random graphs agree with NumPy: forty here, as many as wanted by the long run.

``python -m tests.random_graphs --help`` tells how to run more.
"""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.compiler.launch_shapes import launch_shape
from tests.random_graphs.census import work_kinds
from tests.random_graphs.comparison import fault, pulled
from tests.random_graphs.generation import case

COUNT = 20
"""Of each runtime, which have different ones."""
MOST_PLANNED = 400
NESTS = """
elements
elements by four
elements by transposed tiles
loop in a thread
Repeat
RunGroup
scatter
scatters together
reduction, a thread per row
reduction, threads share rows
reduction, by four
reduction, adjacent rows
reduction, adjacent rows by four
reduction, in parts
columns of a sum, adjacent rows
columns of a sum, adjacent rows by four
columns of a sum, threads share rows
chain, a thread per row
chain, threads share rows
chain, by four
scan, a thread per row
scan, threads share rows
scan, by four
scan, in parts
mirrored scan, threads share rows
mirrored scan, by four
sum over tiles
sum over tiles of several axes
sum over tiles, a rest
sum over tiles, by four
sum over tiles, in parts
sum over tiles, loads shared by waves
sum over tiles, loads shared in groups
sum over tiles, windows
sum over tiles, with sums of columns
"""


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_results_and_derivatives_agree_with_numpy(device: sad.Device, seed: int) -> None:
    is_second = device.capabilities.runtime == "slangpy"
    assert not fault(case(seed + COUNT if is_second else seed), device)


@pytest.mark.slow
def test_graphs_and_their_derivatives_reach_all_nests() -> None:
    shape = launch_shape(is_parallel=True, has_float_atomics=True, lanes=8)
    missing = set(NESTS.strip().splitlines())
    for seed in range(MOST_PLANNED):
        one = case(seed)
        for graph in (one.graph, pulled(one)):
            missing -= work_kinds(graph, one.sizes, shape)
        if not missing:
            break
    assert not missing
