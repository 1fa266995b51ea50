"""Arrays that share a buffer, where a device binds few: it is filled for those that add."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.lower.bindings import Mode, Role, Variant
from shaderad.lower.kernels import lower_kernel


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], gain: float, y: sad.Out[float], total: sad.Add[float]):
    y[i] = x[i] * gain
    total[i % 3] += x[i] * gain


def test_tangents_that_are_added_up_start_at_zero_behind_ones_that_are_stored() -> None:
    variant = Variant(
        wanted=frozenset({"x", "gain"}),
        launch_shaped=frozenset({"y"}),
        atomics="exchange",
        storage_buffer_limit=6,
    )
    (lowered,) = lower_kernel(spread.specialise({}), Mode.FORWARD, variant)
    (shared,) = [r for r in lowered.resources if r.role is Role.OUTPUT_TANGENT]
    assert shared.members == ("y", "total")
    assert shared.fill_word == 0


@pytest.mark.gpu
def test_a_buffer_that_is_used_again_does_not_add_to_old_tangents() -> None:
    x = np.arange(1.0, 7.0, dtype=np.float32)
    with sad.open_device("wgpu", limits={"storage_buffer_limit": 6}) as device:
        for _ in range(3):
            _, dots = sad.jvp(spread, (x, 2.0), (None, 1.0), dim=6, shapes={"total": 3})
            np.testing.assert_allclose(dots[1].numpy(), [5.0, 7.0, 9.0])
            del dots
    device.close()
