"""The loops of groups over tiles of indices: each index has a thread, whatever the sizes."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered
from tests.launch_shapes import change_rows

pytestmark = pytest.mark.gpu

COUNTS = (0, 1, 7, 9, 63, 65, 1000, 8191, 8193, 16_385, 100_003)


@sad.kernel
def count_up(i: sad.Index, x: sad.In[int], y: sad.Out[int], total: sad.Add[float]):
    y[i] = 2 * x[i] + 1
    total[0] += 1.0


@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
@pytest.mark.parametrize("size", [8, 12, 64, 100])
def test_each_index_has_one_thread(
    runtime: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows(monkeypatch, workgroup=size)
    with entered(runtime, {}):
        for count in COUNTS:
            x = np.arange(count, dtype=np.int32)
            y, total = count_up(x, dim=count, shapes={"total": (1,)})
            np.testing.assert_array_equal(y.numpy(), 2 * x + 1)
            assert total.numpy().tolist() == [count]
