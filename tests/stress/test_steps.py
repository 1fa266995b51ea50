"""Steps that follow each other keep nothing of those before."""

from __future__ import annotations

import pytest

import shaderad as sad
from tests.stress.steps import COUNT, STATM, descend

# A buffer that each step forgot would be 12 KB a step.
GROWTH_BYTES = 600 * COUNT * 12 // 2


@pytest.mark.skipif(not STATM.is_file(), reason="the memory of the process is read from /proc")
def test_steps_keep_no_memory_of_those_before_them(device: sad.Device) -> None:
    samples = list(descend(device, 900, 300))
    warm, last = samples[1], samples[-1]
    assert last.loss < 0.01 * samples[0].loss
    assert last.resident_bytes - warm.resident_bytes < GROWTH_BYTES
    assert last.object_count - warm.object_count < 100
    assert last.buffer_count - warm.buffer_count < 10
