"""Scatters share kernels with each other, and with what is stored for each summand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3
from shaderad.ir.types import Access
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunKernel
from tests.devices import entered

Numbers = Any
COUNTS = (0, 1, 7, 300)


@sad.struct
class Bin:
    total: float
    moment: float2


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


@pytest.fixture(params=[("wgpu", 8), ("wgpu", 30), ("slangpy", 30)], scope="module")
def limited(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    runtime, limit = request.param
    with entered(runtime, {"kind": "discrete", "storage_buffer_limit": limit}) as opened:
        yield opened


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def kernels(function: Any, *args: Any, limit: int = 30) -> list[RunKernel]:
    variant = sad.graph(function).bound(tuple(map(sad.array, args)), {}).variant
    return [s for s in plan(variant.graph, limit).steps if isinstance(s, RunKernel)]


def accesses(step: RunKernel) -> list[Access]:
    return [step.work.kernel.buffer(name).access for name, _ in step.work.writes]


def added(base: Numbers, index: Numbers, values: Numbers) -> Numbers:
    """What `scatter_add` gives, in float64."""
    total = np.array(base, np.float64 if np.asarray(base).dtype.kind == "f" else np.int64)
    is_inside = (index >= 0) & (index < len(total))
    np.add.at(total, index[is_inside], np.asarray(values)[is_inside])
    return total


def tables(count: int) -> tuple[Numbers, ...]:
    """Numbers for each summand, two index arrays with ties and positions out of range."""
    x = rng().uniform(-1, 1, count).astype(np.float32)
    i, j = (rng().integers(-1, 6, count).astype(np.int32) for _ in range(2))
    return x, i, j[::-1].copy()


# -- kernels ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_scatters_into_several_arrays_are_one_kernel(parallel: sad.Device) -> None:
    def sums(x: Any, i: Any, j: Any) -> Any:
        y = sad.exp(sad.sin(x)) * sad.pow(x * x + 1.0, 0.3)
        zeros = sad.zeros(5)
        return [sad.scatter_add(zeros, k, z) for k, z in ((i, y), (i, y * x), (j, y + x))]

    (step,) = kernels(sums, *tables(7))
    assert accesses(step) == [Access.ADD] * 3
    # Each index array is read once.
    assert len(step.work.reads) == 3


@pytest.mark.gpu
def test_elements_are_stored_by_the_kernel_that_adds_them(parallel: sad.Device) -> None:
    def both(x: Any, i: Any, j: Any) -> Any:
        y = sad.exp(sad.sin(x)) * sad.pow(x * x + 1.0, 0.3)
        return y, sad.scatter_add(sad.zeros(5), i, y), sad.scatter_add(x, j, x * y)

    (step,) = kernels(both, *tables(7))
    assert accesses(step) == [Access.OUT, Access.ADD, Access.ADD]
    assert list(step.bases) == ["y2"]


@pytest.mark.gpu
def test_scatters_of_other_arrays_leave_elements_to_be_stored_by_four(parallel: sad.Device) -> None:
    def both(x: Any, y: Any, i: Any) -> Any:
        return sad.sin(x), sad.scatter_add(sad.zeros(5), i, y)

    x, i, _ = tables(8)
    first, second = kernels(both, x, x, i)
    assert accesses(first) == [Access.OUT]
    assert first.by_four is not None
    assert accesses(second) == [Access.ADD]


@pytest.mark.gpu
def test_a_scatter_into_what_another_made_runs_after_it(parallel: sad.Device) -> None:
    def chain(x: Any, i: Any, j: Any) -> Any:
        first = sad.scatter_add(sad.zeros(5), i, x)
        return first, sad.scatter_add(first, j, x * x), sad.scatter_add(sad.zeros(5), i, x * x)

    first, second = kernels(chain, *tables(7))
    assert (len(first.writes), len(second.writes)) == (2, 1)
    assert second.bases == {"y0": first.writes[0]}


@pytest.mark.gpu
@pytest.mark.parametrize("limit", [8, 12, 30])
def test_kernels_bind_no_more_buffers_than_there_are(limit: int, parallel: sad.Device) -> None:
    def sums(x: Any, i: Any, j: Any) -> Any:
        y = sad.exp(sad.sin(x))
        return [sad.scatter_add(sad.zeros(5), (i, j)[k % 2], y * float(k)) for k in range(20)]

    steps = kernels(sums, *tables(7), limit=limit)
    # One more is left for reports.
    assert all(len(s.work.reads) + len(s.work.writes) < limit for s in steps)
    free = limit - 1 - 3
    assert len(steps) == -(-20 // free)
    # Those by one index array are neighbours.
    assert sum(len(s.work.reads) == 3 for s in steps) <= 1


# -- values -------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("count", COUNTS)
def test_sums_agree_with_numpy(count: int, parallel: sad.Device) -> None:
    @sad.graph
    def sums(x: Any, i: Any, j: Any, base: Any) -> Any:
        y = sad.exp(sad.sin(x))
        by_i, by_j = sad.scatter_add(base, i, y), sad.scatter_add(sad.zeros(4), j, x * y)
        return y, by_i, by_j, sad.scatter_add(base, j, y)

    x, i, j = tables(count)
    base = np.arange(5, dtype=np.float32)
    y = np.exp(np.sin(x.astype(np.float64)))
    zeros = np.zeros(4, np.float32)
    expected = y, added(base, i, y), added(zeros, j, x * y), added(base, j, y)
    for result, number in zip(sums(x, i, j, base), expected, strict=True):
        np.testing.assert_allclose(result.numpy(), number, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_many_threads_add_to_one_element(parallel: sad.Device) -> None:
    @sad.graph
    def sums(x: Any, i: Any) -> Any:
        return [sad.scatter_add(sad.zeros(3, int), i, x * (k + 1)) for k in range(4)]

    x = np.arange(5000, dtype=np.int32)
    for k, result in enumerate(sums(x, np.full(5000, 1, np.int32))):
        np.testing.assert_array_equal(result.numpy(), [0, (k + 1) * x.sum(), 0])


@pytest.mark.gpu
@pytest.mark.parametrize("count", COUNTS)
def test_rows_vectors_and_structs_are_added(count: int, parallel: sad.Device) -> None:
    @sad.graph
    def sums(rows: Any, i: Any, j: Any, table: Any) -> Any:
        by_i = sad.scatter_add(sad.zeros((5, 3)), i, rows)
        doubled = rows * 2.0
        by_j = sad.scatter_add(table, j, doubled)
        x = rows[:, 0]
        vectors = sad.scatter_add(sad.zeros(5, float3), i, float3(x, x * 2.0, 1.0))
        bins = sad.scatter_add(sad.zeros(5, Bin), i, Bin(x, float2(x, 1.0)))
        return doubled, by_i, by_j, vectors, bins.total, bins.moment

    x, i, j = tables(count)
    rows = np.stack([x, x + 1, x * x], axis=1).reshape(count, 3)[:, ::-1][:, ::-1]
    table = rng().uniform(size=(4, 3)).astype(np.float32)
    ones = np.ones(count)
    expected = (
        rows * 2,
        added(np.zeros((5, 3)), i, rows),
        added(table, j, rows * 2),
        added(np.zeros((5, 3)), i, np.stack([x, 2 * x, ones], axis=1)),
        added(np.zeros(5), i, x),
        added(np.zeros((5, 2)), i, np.stack([x, ones], axis=1)),
    )
    for result, number in zip(sums(rows, i, j, table), expected, strict=True):
        np.testing.assert_allclose(result.numpy(), number, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_sums_that_no_device_adds_atomically(parallel: sad.Device) -> None:
    @sad.graph
    def sums(x: Any, i: Any) -> Any:
        wide, narrow = sad.cast(x, sad.double), sad.cast(x, sad.half)
        pairs = ((sad.zeros(4, sad.double), wide), (sad.zeros(4, sad.half), narrow))
        return [sad.scatter_add(base, i, y) for base, y in pairs for _ in range(2)]

    x = np.float32([0.5, 0.25, 1.0, 2.0, -4.0])
    i = np.int32([0, 1, 0, 9, 1])
    try:
        results = sums(x, i)
    except sad.DeviceError as failure:
        # A device without half or double.
        if failure.code != "SR0608":
            raise
        pytest.skip(failure.message)
    for result in results:
        np.testing.assert_array_equal(result.numpy(), [1.5, -3.75, 0, 0])


@pytest.mark.gpu
@pytest.mark.parametrize("count", COUNTS)
def test_gradients_of_tables_read_at_the_same_indices(count: int, limited: sad.Device) -> None:
    @sad.graph
    def gradient(a: Any, b: Any, c: Any, x: Any, i: Any, j: Any) -> Any:
        def loss(a: Any, b: Any, c: Any, x: Any) -> Any:
            u = sad.gather(a, i, "ignore") * x + sad.gather(b, i, "ignore")
            v = sad.sin(u) * sad.gather(c, j, "ignore") + sad.gather(a, j, "ignore")
            return sad.sum(v * v)

        return sad.value_and_grad(loss, argnums=(0, 1, 2, 3))(a, b, c, x)

    x, i, j = tables(count)
    a, b, c = (rng().uniform(0.5, 1.5, (3, 5)) + np.arange(3)[:, None]).astype(np.float32)

    def read(t: Numbers, index: Numbers) -> Numbers:
        is_inside = (index >= 0) & (index < 5)
        return np.where(is_inside, t[np.where(is_inside, index, 0)], 0.0).astype(np.float64)

    u = read(a, i) * x + read(b, i)
    v = np.sin(u) * read(c, j) + read(a, j)
    du, zeros = 2 * v * np.cos(u) * read(c, j), np.zeros(5)
    expected = (
        added(added(zeros, i, du * x), j, 2 * v),
        added(zeros, i, du),
        added(zeros, j, 2 * v * np.sin(u)),
        du * read(a, i),
    )
    value, gradients = gradient(a, b, c, x, i, j)
    np.testing.assert_allclose(value.numpy(), np.sum(v * v), rtol=1e-4, atol=1e-5)
    for result, number in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(result.numpy(), number, rtol=2e-4, atol=2e-4)


@pytest.mark.gpu
def test_scatters_in_a_loop_agree_with_numpy(parallel: sad.Device) -> None:
    """One workgroup runs the loop, or a kernel for each step."""

    @sad.graph
    def repeated(x: Any, i: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            y = sad.roll(x, 1) * 0.5
            return y + sad.scatter_add(sad.zeros(6), i, y) + sad.scatter_add(y, i, y * y)

        return sad.fori_loop(0, 3, step, x)

    x, i = np.linspace(0, 1, 6).astype(np.float32), np.int32([0, 0, 3, 9, 5, 1])
    expected = x.astype(np.float64)
    for _ in range(3):
        y = np.roll(expected, 1) * 0.5
        expected = y + added(np.zeros(6), i, y) + added(y, i, y * y)
    np.testing.assert_allclose(repeated(x, i).numpy(), expected, rtol=1e-4)
