"""Which pipelines a runtime keeps, and that programs still run once theirs has ended."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import shaderad as sad
from shaderad.runtime import kept_pipelines
from shaderad.runtime.kept_pipelines import KeptPipelines

pytestmark = pytest.mark.gpu


class Pipeline:
    pass


def test_a_pipeline_is_found_while_it_is_held_or_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_pipelines, "RECENT_LIMIT", 2)
    kept: KeptPipelines[Pipeline] = KeptPipelines()
    held = Pipeline()
    kept.keep("held", held)
    for name in "abc":
        kept.keep(name, Pipeline())
    gc.collect()
    assert [kept.find(name) is not None for name in ("held", "a", "b", "c")] == [
        True,
        False,
        False,
        True,
    ]
    assert kept.count == 4


def test_an_addition_tells_the_numbers_of_pipelines_that_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_pipelines, "RECENT_LIMIT", 1)
    kept: KeptPipelines[Pipeline] = KeptPipelines()
    ended = [kept.keep(name, Pipeline()) for name in "abcd"]
    assert ended == [set(), {0}, {1}, {2}]
    assert len(kept) == 1


HELD = 8
"""Caches by content hold a few of the latest kernels."""


def powers(exponent: int) -> sad.Kernel:
    """A kernel of its own for each exponent."""

    @sad.kernel
    def power(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = 1.0
        for _ in sad.static_range(exponent):
            y[i] = y[i] * x[i]

    return power


def test_kernels_run_again_after_many_others(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pipelines, "RECENT_LIMIT", 4)
    pipelines, bindings = device.runtime.pipelines, device.runtime.bindings
    x = np.linspace(0.5, 1.5, 37, dtype=np.float32)
    given = sad.array(x, device=device)
    first = powers(1)
    y, pullback = sad.vjp(first, given)
    before = len(pipelines)
    for exponent in range(2, 26):
        result = powers(exponent)(given)
        np.testing.assert_allclose(result.numpy(), x**exponent, rtol=1e-5)
    # Threads that compiled or waited may let go of the last ones a little later.
    end = time.monotonic() + 10
    while len(pipelines) > before + 4 + HELD and time.monotonic() < end:
        gc.collect()
    assert len(pipelines) <= before + 4 + HELD
    assert {key[0] for key in bindings._bound_by_key} <= {
        n for _, n in pipelines._pipeline_by_program.values()
    }
    # The kernel that is held, its gradient, and a program whose pipeline has ended.
    np.testing.assert_array_equal(first(given).numpy(), x)
    np.testing.assert_array_equal(pullback(y)[0].numpy(), x)
    np.testing.assert_allclose(powers(2)(given).numpy(), x**2, rtol=1e-6)
    device.synchronize()
