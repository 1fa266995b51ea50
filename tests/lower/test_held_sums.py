"""Where threads run in turn, they hold sums of gradients before they add to memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float4
from shaderad.decorators import KernelFunction
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.agreement import check_against_oracle
from tests.devices import entered
from tests.launch_shapes import change_rows, shape_of

COUNT = 20_003
"""Indices: more than one for each thread, and no multiple of anything."""
SIZE = 37


@sad.kernel
def picked(i: sad.Index, w: sad.In[float4], k: sad.In[int], y: sad.Out[float4]):
    y[i] = w[k[i]] * w[k[i]]


@sad.kernel
def blended(i: sad.Index, w: sad.In[float2], k: sad.In[int], y: sad.Out[float2]):
    """Four elements, as a lookup between texels reads them."""
    result = float2(0.0)
    for row in sad.static_range(2):
        for column in sad.static_range(2):
            result += w[k[i] + 9 * row + column] * float(1 + row + 2 * column)
    y[i] = result


@sad.kernel
def often(i: sad.Index, w: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    result = 0.0
    for j in range(9):
        result += w[k[i] + j]
    y[i] = result


@sad.kernel
def as_data_says(i: sad.Index, w: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    if k[i] > 3:
        y[i] = w[k[i]] + w[k[i] - 1]


@sad.kernel
def in_part(i: sad.Index, w: sad.In[float4], k: sad.In[int], y: sad.Out[float]):
    y[i] = w[k[i]].y


WIDTHS = {picked: 4, blended: 2}


def held(kernel: KernelFunction, **device: bool) -> list[str]:
    """The types of the sums that threads hold."""
    ir = kernel.specialise({})
    floats = frozenset(b.name for b in ir.buffers if is_differentiable(b.type.element))
    shape = shape_of(**{"is_parallel": False, **device})
    variant = Variant(wanted=floats - {"y"}, shape=shape)
    (lowered,) = lower_kernel(ir, Mode.BACKWARD, variant)
    return re.findall(r"static HeldSums<(.*?)> ", lowered.program.slang)


@pytest.mark.parametrize(
    ("kernel", "sums"),
    [
        (picked, ["float4, 1"]),
        (blended, ["float2, 5"]),
        (often, []),
        (as_data_says, ["float, 5"]),
        (in_part, []),
    ],
)
def test_threads_hold_what_an_index_adds_to_and_one_more(
    kernel: KernelFunction, sums: list[str]
) -> None:
    assert held(kernel) == sums


def test_other_devices_hold_nothing() -> None:
    assert held(blended, is_parallel=True) == []
    assert held(blended, has_float_atomics=False) == []


def places(order: str) -> np.ndarray:
    last = SIZE - 11
    if order == "one":
        return np.full(COUNT, 5, np.int32)
    if order == "random":
        return np.random.default_rng(0).integers(0, last, COUNT).astype(np.int32)
    there = (np.arange(COUNT) // 3 % last).astype(np.int32)
    return {"up": there, "down": there[::-1].copy(), "down a column": there * 9 % last}[order]


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["one", "random", "up", "down", "down a column"])
@pytest.mark.parametrize("kernel", [picked, blended, as_data_says])
def test_gradients_are_those_of_the_oracle(
    kernel: KernelFunction, order: str, device: sad.Device
) -> None:
    shape = (SIZE, WIDTHS[kernel]) if kernel in WIDTHS else (SIZE,)
    w = np.random.default_rng(1).uniform(0.5, 1.0, shape).astype(np.float32)
    check_against_oracle(kernel, w, places(order), dim=COUNT)
    device.synchronize()


@pytest.mark.gpu
def test_what_is_out_of_range_adds_nothing(device: sad.Device) -> None:
    k = np.arange(COUNT, dtype=np.int32) % (SIZE + 5) - 2
    _, pullback = sad.vjp(picked, np.ones((SIZE, 4), np.float32), k, bounds="ignore")
    w_bar, *_ = pullback(np.ones((COUNT, 4), np.float32))
    counts = np.bincount(k[(k >= 0) & (k < SIZE)], minlength=SIZE)
    np.testing.assert_allclose(w_bar.numpy(), 2.0 * counts[:, None].repeat(4, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_what_threads_hold_reaches_memory_in_every_row(
    runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, counts = np.array([0, 3, 0, 1, 1, 1], np.int32), [2.0, 3.0, 0.0, 1.0]
    for group_limit, is_parallel in ((0, False), (2, True)):
        change_rows(monkeypatch, group_limit=group_limit, held_additions=4, is_parallel=is_parallel)
        with entered(runtime):
            _, pullback = sad.vjp(picked, np.ones((4, 4), np.float32), k)
            w_bar, *_ = pullback(np.ones((6, 4), np.float32))
            np.testing.assert_array_equal(w_bar.numpy(), 2.0 * np.outer(counts, np.ones(4)))


@sad.kernel
def weighed(i: sad.Index, w: sad.In[float], k: sad.In[int], x: sad.In[float], y: sad.Out[float]):
    total = 0.0
    for j in range(3):
        total += w[j] * x[i]
    y[i] = total * w[k[i]]


@pytest.mark.gpu
def test_threads_that_meet_at_barriers_hold_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads past the end repeat the last index there."""
    change_rows(monkeypatch, held_additions=4, adds_at_barriers=True)
    monkeypatch.setattr(Variant, "adds_in_waves", False)
    rng = np.random.default_rng(2)
    with entered("wgpu"):
        w, x = rng.uniform(0.5, 1.0, 5).astype(np.float32), rng.random(77, np.float32)
        check_against_oracle(weighed, w, rng.integers(0, 5, 77, np.int32), x, dim=77)
