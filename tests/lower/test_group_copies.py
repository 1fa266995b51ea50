"""Where threads run in parallel, they add to copies of small arrays in group memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.bodies.scattered import GroupCopy
from shaderad.compiler.compile import compile_program
from shaderad.compiler.validate import Status, validate
from shaderad.decorators import KernelFunction
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import DOUBLE, FLOAT, HALF, Type, Vector
from shaderad.lower.bindings import Lowered, Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.targets import PROFILES
from shaderad.plan.nest.copies import rooms_of
from tests.agreement import check_against_oracle
from tests.devices import entered
from tests.launch_shapes import change_rows, shape_of

COUNTS = (0, 1, 63, 64, 65, 1000, 100_003)
SIZES = (1, 255, 4096, 4097)
SKIPPED = 7
"""The place at which a thread of `picked` returns early."""


@sad.kernel
def picked(i: sad.Index, x: sad.In[float], k: sad.In[int], y: sad.Out[float]):
    if k[i] == SKIPPED:
        return
    y[i] = x[k[i]] * x[k[i]]


@sad.kernel
def counted(
    i: sad.Index,
    k: sad.In[int],
    x: sad.In[float],
    total: sad.Add[float],
    number: sad.Add[int],
    pairs: sad.Add[sad.uint],
    sums: sad.Add[float3],
):
    if k[i] == SKIPPED:
        return
    total[k[i]] += x[i]
    number[k[i]] += -k[i]
    pairs[k[i] // 2] += sad.uint(k[i])
    sums[k[i]] += float3(x[i], 1.0, 2.0)


@sad.kernel
def weighed(i: sad.Index, j: sad.Index, w: sad.In[float], k: sad.In[int], y: sad.Out[float, 2]):
    """Weights of all threads, and one at a place of the data."""
    total = 0.0
    for n in range(3):
        total += w[n] * float(i + j)
    y[i, j] = total * w[k[j]] + w[0]


def copied(device: sad.Device, mode: Mode) -> list[tuple[str, ...]]:
    """The arrays with copies in each program that a device has for a mode."""
    stages = device.stages.by_program.values()
    return [s.lowered.copies for s in stages if s.lowered.mode is mode]


@pytest.fixture(params=["wgpu", "slangpy"])
def parallel(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[sad.Device]:
    """A device on which every dispatch copies what it can."""
    change_rows(
        monkeypatch, workgroup=64, indices_per_copied_word=1, fewest_copying_groups=0,
        copied_words=4096, sum_group_limit=5,
    )  # fmt: skip
    with entered(request.param, {"kind": "discrete"}) as device:
        yield device


def places(order: str, count: int, size: int) -> np.ndarray:
    if order == "one":
        return np.full(count, size - 1, np.int32)
    return np.random.default_rng(count).integers(0, size, count).astype(np.int32)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["one", "random"])
def test_gradients_of_gathers_are_sums(order: str, parallel: sad.Device) -> None:
    for size in SIZES:
        x = np.random.default_rng(size).uniform(0.5, 1.0, size).astype(np.float32)
        for count in COUNTS:
            k = places(order, count, size)
            bar = np.random.default_rng(1).random(count, np.float32)
            _, pullback = sad.vjp(picked, x, k)
            x_bar, *_ = pullback(bar)
            weights = 2.0 * x[k].astype(float) * bar * (k != SKIPPED)
            expected = np.bincount(k, weights, size)
            np.testing.assert_allclose(x_bar.numpy(), expected, rtol=2e-5, atol=1e-6)
    assert sorted(copied(parallel, Mode.BACKWARD)) == [(), ("x",), ("x",), ("x",)]


@pytest.mark.gpu
def test_add_arrays_of_floats_and_integers_are_sums(parallel: sad.Device) -> None:
    size = 300
    for count in (1, 65, 20_003):
        k, x = places("random", count, size), np.random.default_rng(2).random(count, np.float32)
        shapes = dict.fromkeys(("total", "number", "pairs", "sums"), (size,))
        total, number, pairs, sums = counted(k, x, dim=count, shapes=shapes)
        k, x = k[k != SKIPPED], x[k != SKIPPED]
        counts = np.bincount(k, minlength=size)
        np.testing.assert_allclose(total.numpy(), np.bincount(k, x, size), rtol=1e-5)
        np.testing.assert_array_equal(number.numpy(), -np.arange(size) * counts)
        np.testing.assert_array_equal(pairs.numpy(), np.bincount(k // 2, k, size))
        np.testing.assert_allclose(sums.numpy()[:, 0], np.bincount(k, x, size), rtol=1e-5)
        np.testing.assert_array_equal(sums.numpy()[:, 1:], np.outer(counts, [1.0, 2.0]))
    assert copied(parallel, Mode.PRIMAL) == [("total", "number", "pairs", "sums")]


@pytest.mark.gpu
def test_scatters_of_graphs_are_sums(parallel: sad.Device) -> None:
    size, count = 100, 5_003
    x, k = np.random.default_rng(3).random((size, 2), np.float32), places("random", count, size)
    graph = sad.graph(sad.grad(lambda x, k: sad.sum(x[k] * x[k])))
    expected = 2.0 * x * np.bincount(k, minlength=size)[:, None]
    np.testing.assert_allclose(graph(x, k).numpy(), expected, rtol=1e-5)
    assert ("y0",) in copied(parallel, Mode.PRIMAL)
    assert "in group memory first" in graph.explain(x, k)


@pytest.mark.gpu
def test_nan_and_infinity_reach_memory(parallel: sad.Device) -> None:
    k = np.arange(400, dtype=np.int32) % 20
    bar = np.zeros(400, np.float32)
    bar[[0, 21, 42, 62, 383]] = np.nan, np.inf, np.inf, -np.inf, -np.inf
    _, pullback = sad.vjp(picked, np.full(20, 0.5, np.float32), k)
    x_bar, *_ = pullback(bar)
    expected = np.zeros(20)
    expected[[0, 1, 2, 3]] = np.nan, np.inf, np.nan, -np.inf
    np.testing.assert_array_equal(x_bar.numpy(), expected)


@pytest.mark.gpu
def test_gradients_accumulate(parallel: sad.Device) -> None:
    k, x = places("random", 1000, 50), np.full(50, 0.5, np.float32)
    before = sad.array(np.arange(50, dtype=np.float32))
    _, pullback = sad.vjp(picked, x, k)
    x_bar, *_ = pullback(np.ones(1000, np.float32), accumulate=(before, None))
    expected = np.arange(50) + np.bincount(k[k != SKIPPED], minlength=50)
    np.testing.assert_array_equal(x_bar.numpy(), expected)


@pytest.mark.gpu
def test_places_out_of_range_add_nothing_and_are_reported(parallel: sad.Device) -> None:
    k = np.arange(1000, dtype=np.int32) % 60 - 5
    x, bar = np.full(50, 0.5, np.float32), np.ones(1000, np.float32)
    _, pullback = sad.vjp(picked, x, k, bounds="ignore")
    inside = k[(k >= 0) & (k < 50) & (k != SKIPPED)]
    np.testing.assert_array_equal(pullback(bar)[0].numpy(), np.bincount(inside, minlength=50))
    with pytest.raises(sad.BoundsError):
        sad.vjp(picked, x, k)[1](bar)[0].numpy()


@pytest.mark.gpu
@pytest.mark.parametrize("has_waves", [False, True])
def test_sums_of_waves_and_groups_reach_copies(
    has_waves: bool, parallel: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_waves:
        monkeypatch.setattr(Variant, "adds_in_waves", False)
    rng = np.random.default_rng(4)
    w, k = rng.uniform(0.5, 1.0, 5).astype(np.float32), rng.integers(0, 5, 77, np.int32)
    check_against_oracle(weighed, w, k, dim=(9, 77))
    assert ("w",) in copied(parallel, Mode.BACKWARD)


@pytest.mark.parametrize(
    ("element", "size", "threads", "room"),
    [
        (FLOAT, 1024, 1 << 24, 1024),
        (FLOAT, 1 << 20, 1 << 24, 0),
        (FLOAT, 4096, 262_144, 4096),
        (FLOAT, 4096, 262_143, 0),
        (FLOAT, 4097, 1 << 24, 0),
        (FLOAT, 1, 4096, 64),
        (FLOAT, 1, 4095, 0),
        (FLOAT, 0, 4096, 0),
        (Vector(FLOAT, 3), 1300, 1 << 24, 1365),
        (HALF, 300, 1 << 20, 512),
        (DOUBLE, 300, 1 << 20, 0),
    ],
)
def test_copies_pay_for_what_they_add_to_memory(
    element: Type, size: int, threads: int, room: int
) -> None:
    array, known = ArrayType(element, (sizes.symbol("m"),)), {"m": size, "n": threads}
    dim, shape = (sizes.symbol("n"),), shape_of()
    assert rooms_of([("x", array)], dim, known, shape) == {"x": room}
    assert rooms_of([("x", array)], dim, {"m": size}, shape) == {"x": 0}
    assert rooms_of([("x", array)], dim, known, shape_of(is_parallel=False)) == {"x": 0}


def lowered(kernel: KernelFunction, copies: dict[str, int], **fields: Any) -> Lowered:
    """The backward dispatch, for a variant with these fields."""
    rooms = tuple(GroupCopy(name, room) for name, room in copies.items())
    variant = Variant(wanted=frozenset(copies), shape=shape_of(), copies=rooms)
    return lower_kernel(kernel.specialise({}), Mode.BACKWARD, replace(variant, **fields))[0]


def test_copies_fit_the_memory_of_a_group() -> None:
    assert lowered(picked, {"x": 4096}).copies == ("x",)
    assert lowered(picked, {"x": 4096}, group_bytes=16_383).copies == ()
    assert lowered(weighed, {"w": 4096}).copies == ()  # its sums take the rest
    assert lowered(picked, {"x": 64}, is_one_group=True).copies == ()


@pytest.mark.parametrize("target", list(PROFILES))
def test_every_target_has_copies(target: str) -> None:
    profile = PROFILES[target]
    dispatch = lowered(
        picked, {"x": 300}, atomics=profile.atomics, group_atomics=profile.group_atomics
    )
    assert re.search(r"groupshared Atomic<uint> x_bar_copy\[300\]", dispatch.program.slang)
    code = compile_program(dispatch.program, profile.format)
    judgement = validate(code, dispatch.program.name)
    assert judgement is None or judgement.status is not Status.REFUSED, judgement
