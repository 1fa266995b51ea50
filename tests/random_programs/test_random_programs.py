"""Random programs agree with the oracle: a fixed forty here, as many as wanted by the long run.

``python -m tests.random_programs --help`` tells how to run more.
"""

from __future__ import annotations

from itertools import cycle

import pytest

import shaderad as sad
from tests.random_programs.comparison import compare
from tests.random_programs.generation import chunk
from tests.random_programs.hlsl_route import AS_PARALLEL
from tests.random_programs.reproduction import reproduction

SEED = 0
CHUNKS = 5
# Nine or so of twelve are different from each other: forty in all.
PROGRAMS = 40


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize("number", range(CHUNKS))
def test_results_and_derivatives_agree_with_the_oracle(number: int, device: sad.Device) -> None:
    runtime = device.capabilities.runtime
    parallel = sad.open_device(runtime, limits=AS_PARALLEL)
    for program, chosen in zip(chunk(SEED, number), cycle((device, parallel)), strict=False):
        with chosen:
            verdict = compare(program, chosen)
        assert not verdict.is_fault, reproduction(program, verdict.detail)
    parallel.close()


def test_the_chunks_hold_forty_programs() -> None:
    assert sum(len(chunk(SEED, number)) for number in range(CHUNKS)) >= PROGRAMS


def test_a_seed_stands_for_the_same_programs_every_time() -> None:
    first = [p.source for p in chunk(SEED, 0)]
    chunk.cache_clear()
    assert [p.source for p in chunk(SEED, 0)] == first
