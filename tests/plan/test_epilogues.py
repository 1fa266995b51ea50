"""Kernels that follow a scan are part of it, where that gives the same."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import arrays, ops, sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunKernel, RunPass, RunScans
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from tests.array_check import array

N = sizes.symbol("n")
LENGTHS = (0, 1, 2, 300, 2049, 100_003)


def steps_of(x: Value, *outputs: Value) -> list[type]:
    return [type(step) for step in plan(Graph((x,), outputs)).steps]


def test_what_reads_a_scan_at_its_own_index_is_part_of_it() -> None:
    x = array((N,))
    assert steps_of(x, b.applied(ops.MUL, b.scan(ops.ADD, x), x)) == [RunPass]


def test_what_reads_a_scan_the_other_way_round_is_part_of_it() -> None:
    x = array((N,))
    assert steps_of(x, b.applied(ops.MUL, b.reverse(b.scan(ops.ADD, x)), x)) == [RunPass]


def test_what_reads_the_element_before_is_part_of_it_unless_it_reads_others_too() -> None:
    x = array((N,))
    scanned = b.scan(ops.ADD, x)
    before = b.shift_right(scanned, c.number(FLOAT, 0.0))
    after = b.shift_left(scanned, c.number(FLOAT, 0.0))
    assert steps_of(x, b.applied(ops.MUL, before, x)) == [RunPass]
    both = b.applied(ops.MUL, b.scan(ops.ADD, b.applied(ops.MUL, x, x)), before)
    assert steps_of(x, both) == [RunScans]
    assert steps_of(x, b.applied(ops.MUL, before, b.reverse(scanned))) == [RunPass, RunKernel]
    assert steps_of(x, b.applied(ops.MUL, after, x)) == [RunPass, RunKernel]


def test_a_scan_that_others_read_too_is_stored() -> None:
    x = array((N,))
    scanned = b.scan(ops.ADD, x)
    product = b.applied(ops.MUL, scanned, x)
    assert steps_of(x, product, scanned) == [RunPass, RunKernel]
    assert steps_of(x, product, b.reduce(ops.MAX, scanned)) == [RunPass, RunKernel, RunPass]


def test_a_scatter_of_what_was_scanned_is_not() -> None:
    x, index = array((N,)), array((N,), INT)
    start = b.zeros(x.type)
    summed = arrays.ScatterAdd(operands=(start, b.scan(ops.ADD, x), index)).result
    steps = plan(Graph((x, index), (summed,))).steps
    assert [type(step) for step in steps] == [RunPass, RunKernel]


def test_of_two_scans_the_one_that_is_read_at_its_own_index_takes_the_kernel() -> None:
    x = array((N,))
    first, second = b.scan(ops.ADD, x), b.scan(ops.MAX, x)
    joined = b.applied(ops.MUL, b.shift_left(first, c.number(FLOAT, 0.0)), second)
    found = plan(Graph((x,), (joined,)))
    assert [value for step in found.steps for value in step.writes] == [first, joined]


@pytest.mark.gpu
@pytest.mark.parametrize("length", LENGTHS)
def test_scans_with_kernels_behind_them_are_right(device: sad.Device, length: int) -> None:
    draw = np.random.default_rng(length)
    x, y = draw.uniform(-1, 1, (2, length)).astype(np.float32)

    @sad.graph
    def own(x: sad.Array[float], y: sad.Array[float], scale: float) -> sad.Array[float]:
        return sad.scan(sad.add, x) * y + scale * sad.reverse(x)

    @sad.graph
    def mirrored(x: sad.Array[float], y: sad.Array[float], scale: float) -> sad.Array[float]:
        return sad.reverse(sad.scan(sad.add, x)) * y - scale * sad.reverse(x)

    @sad.graph
    def exclusive(x: sad.Array[float], y: sad.Array[float], scale: float) -> sad.Array[float]:
        return sad.scan(sad.add, x, exclusive=True) * y + scale

    sums = np.cumsum(x, dtype=np.float64)
    with device:
        found = own(x, y, 3.0).numpy(), mirrored(x, y, 3.0).numpy(), exclusive(x, y, 3.0).numpy()
    np.testing.assert_allclose(found[0], sums * y + 3 * x[::-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[2], (sums - x) * y + 3, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], sums[::-1] * y - 3 * x[::-1], rtol=1e-4, atol=1e-4)


def test_names_before_and_behind_a_scan_differ() -> None:
    x, y, (a, d, e) = array((N,)), array((N,)), (array(()) for _ in range(3))
    terms = b.applied(ops.ADD, b.applied(ops.MUL, x, b.broadcast(a, (N,), ())),
                      b.broadcast(d, (N,), ()))  # fmt: skip
    for factor in (y, b.broadcast(e, (N,), ())):
        found = b.applied(ops.MUL, b.scan(ops.ADD, terms), factor)
        (step,) = plan(Graph((x, y, a, d, e), (found,))).steps
        assert isinstance(step, RunPass)
        assert step.epilogue is not None
        names = [name for name, _ in (*step.producer.reads, *step.epilogue.work.reads)]
        assert len(names) == len(set(names)) == 4


@pytest.mark.gpu
def test_single_elements_before_and_behind_a_scan_are_told_apart(device: sad.Device) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, 100).astype(np.float32)

    @sad.graph
    def scaled(
        x: sad.Array[float], a: sad.Array[float], b: sad.Array[float], c: sad.Array[float]
    ) -> sad.Array[float]:
        return sad.scan(sad.add, x * a + b) * c

    with device:
        found = scaled(x, *(np.float32(value) for value in (0.5, 0.25, 3.0))).numpy()
    wanted = 3.0 * np.cumsum(0.5 * x.astype(np.float64) + 0.25)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_scans_are_right(device: sad.Device, length: int) -> None:
    x = 1 + 1e-3 * np.random.default_rng(length).standard_normal(length)
    x[length // 2 : length // 2 + 1] = 0.0

    @sad.graph
    def scan_product(x: sad.Array[float]) -> sad.Array[float]:
        return sad.sum(sad.scan(sad.mul, x) * x)

    with device:
        found = sad.grad(scan_product)(x).numpy()
    given = x.astype(np.float32).astype(np.float64)
    # With one zero, everything behind it depends on its factor alone.
    products = np.cumprod(given)
    wanted = products.copy()
    flow = np.zeros(length + 1)
    for k in reversed(range(length)):
        after = flow[k + 1] * given[k + 1] if k + 1 < length else 0.0
        flow[k] = given[k] + after
        wanted[k] += flow[k] * (products[k - 1] if k else 1.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
