"""Elementwise work after reductions and scans is part of them where results stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import FLOAT, INT
from shaderad.plan.nest.chains import without_chains
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunKernel, RunPass
from tests.array_check import array

M, N = sizes.symbol("m"), sizes.symbol("n")
LENGTHS = (0, 1, 2, 300, 2048, 2049, 2300, 100_003)


def steps_of(x: Value, *outputs: Value) -> list[type]:
    return [type(step) for step in without_chains(plan(Graph((x,), outputs))).steps]


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
    assert steps_of(x, b.applied(ops.MUL, before, scanned)) == [RunPass, RunKernel]
    assert steps_of(x, b.applied(ops.MUL, before, b.reverse(scanned))) == [RunPass, RunKernel]
    assert steps_of(x, b.applied(ops.MUL, after, x)) == [RunPass, RunKernel]


def test_the_last_of_two_scans_takes_a_kernel_that_reads_both() -> None:
    x = array((N,))
    before = b.shift_right(b.scan(ops.ADD, x), c.number(FLOAT, 0.0))
    both = b.applied(ops.MUL, b.scan(ops.ADD, b.applied(ops.MUL, x, x)), before)
    assert steps_of(x, both) == [RunPass, RunPass]


def test_an_elementwise_node_and_the_kernel_after_it_are_one_epilogue() -> None:
    x = array((N,))
    (step,) = plan(
        Graph((x,), (b.applied(ops.MUL, b.applied(ops.SIN, b.scan(ops.ADD, x)), x),))
    ).steps
    assert isinstance(step, RunPass)
    assert step.epilogue is not None
    assert step.reads == (x,)


def test_a_scan_that_others_read_too_is_stored() -> None:
    x = array((N,))
    scanned = b.scan(ops.ADD, x)
    product = b.applied(ops.MUL, scanned, x)
    assert steps_of(x, product, scanned) == [RunPass, RunKernel]
    assert steps_of(x, product, b.reduce(ops.MAX, scanned)) == [RunPass, RunPass]


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


def test_a_scan_of_products_stores_one_float_an_element() -> None:
    x = array((N,))
    products = b.scan(ops.MUL, x)
    (step,) = plan(Graph((x,), (products,))).steps
    assert step.writes[0].element == FLOAT


def test_what_only_one_node_reads_is_stored_as_that_node_makes_it() -> None:
    x = array((N,))
    total = b.reduce(ops.ADD, x)
    halved = b.applied(ops.SIN, total)
    (step,) = plan(Graph((x,), (halved,))).steps
    assert step.writes == (halved,)


def test_what_others_read_too_is_stored_beside_it() -> None:
    x = array((N,))
    total = b.reduce(ops.ADD, x)
    sine = b.applied(ops.SIN, total)
    (step,) = plan(Graph((x,), (sine, total))).steps
    assert step.writes == (total, sine)


def test_what_reads_others_at_the_number_of_its_row_is_stored_with_it() -> None:
    x, y = array((M, N)), array((M, 1))
    total = b.reduce(ops.MAX, x)
    scaled = b.applied(ops.MUL, b.reshape(total, (M, 1)), y)
    found = plan(Graph((x, y), (scaled,)))
    (step,) = found.steps
    assert step.writes == (scaled,)
    assert set(step.reads) == {x, y}


def test_kernels_one_after_the_other_are_stored_with_the_first_result() -> None:
    x, y = array((M, N)), array((M,))
    lowest = b.applied(ops.SIN, b.reduce(ops.MIN, x))
    scaled = b.applied(ops.MUL, lowest, y)
    column = b.applied(ops.COS, b.reshape(scaled, (M, 1)))
    (step,) = plan(Graph((x, y), (scaled, column))).steps
    assert set(step.writes) == {scaled, column}
    assert set(step.reads) == {x, y}


def test_what_reads_results_of_other_rows_is_a_step_of_its_own() -> None:
    x = array((M, N))
    total = b.reduce(ops.MAX, x)
    assert steps_of(x, b.applied(ops.MUL, total, b.reverse(total))) == [RunPass, RunKernel]
    assert steps_of(x, b.applied(ops.SIN, b.broadcast(total, (M, N), (0,)))) == [
        RunPass,
        RunKernel,
    ]


def test_what_reads_a_value_that_the_pass_stores_comes_after_it() -> None:
    x = array((1,))
    sine = b.applied(ops.SIN, x)
    total = b.reshape(b.reduce(ops.ADD, b.applied(ops.COS, x)), (1,))
    difference = b.applied(ops.SUB, total, sine)
    for step in plan(Graph((x,), (sine, difference))).steps:
        assert set(step.reads).isdisjoint(step.writes)


def test_a_result_that_comes_before_what_a_kernel_needs_is_stored_by_the_kernel_s_place() -> None:
    x = array((M, N))
    total = b.reduce(ops.MAX, x)
    moved = b.applied(ops.SUB, x, b.broadcast(total, (M, N), (0,)))
    rest = b.reduce(ops.MAX, b.applied(ops.EXP, moved))
    found = without_chains(plan(Graph((x,), (b.applied(ops.ADD, total, rest),))))
    assert [type(step) for step in found.steps] == [RunPass, RunPass]
    assert found.steps[0].writes == (total,)


def test_scans_of_the_same_elements_are_steps_of_their_own() -> None:
    x = array((N,))
    scans = [b.scan(op, x) for op in (ops.ADD, ops.MAX, ops.MIN)]
    assert steps_of(x, *scans) == [RunPass, RunPass, RunPass]
    twice = b.scan(ops.MAX, b.applied(ops.MUL, scans[0], x))
    assert steps_of(x, scans[0], twice) == [RunPass, RunPass]


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


def test_a_scan_reads_what_comes_before_and_behind_it() -> None:
    x, y, (a, d, e) = array((N,)), array((N,)), (array(()) for _ in range(3))
    terms = b.applied(ops.ADD, b.applied(ops.MUL, x, b.broadcast(a, (N,), ())),
                      b.broadcast(d, (N,), ()))  # fmt: skip
    for factor in (y, b.broadcast(e, (N,), ())):
        found = b.applied(ops.MUL, b.scan(ops.ADD, terms), factor)
        (step,) = plan(Graph((x, y, a, d, e), (found,))).steps
        assert isinstance(step, RunPass)
        assert set(step.reads) == {x, a, d, y if factor is y else e}


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


@pytest.mark.gpu
@pytest.mark.parametrize("length", LENGTHS)
def test_finished_sums_and_scans_are_right(device: sad.Device, length: int) -> None:
    x = np.random.default_rng(length).uniform(-1, 1, length)

    @sad.graph
    def root_of_sum(x: sad.Array[float]) -> sad.Array[float]:
        return sad.sqrt(1 + sad.abs(sad.sum(x)))

    @sad.graph
    def sines(x: sad.Array[float]) -> sad.Array[float]:
        return sad.sin(sad.scan(sad.add, x))

    with device:
        found = root_of_sum(x), sines(x)
    given = x.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(float(found[0]), np.sqrt(1 + abs(given.sum())), rtol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), np.sin(np.cumsum(given)), atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [0, 1, 2, 7, 300, 5003])
def test_inclusive_and_exclusive_scans_in_one_expression_are_right(
    device: sad.Device, length: int
) -> None:
    draw = np.random.default_rng(length)
    x = draw.uniform(0.9, 1.1, length).astype(np.float32)
    x[length // 2 : length // 2 + 1] = 0.0

    @sad.graph
    def products(x: sad.Array[float]) -> sad.Array[float]:
        return sad.scan(sad.mul, x) + 3.0 * sad.scan(sad.mul, x, exclusive=True)

    @sad.graph
    def least(x: sad.Array[float]) -> sad.Array[float]:
        return sad.scan(sad.min, x) - sad.scan(sad.min, x, exclusive=True)

    wanted = np.cumprod(x, dtype=np.float64)
    before = np.concatenate([[1.0], wanted])[:length]
    lows = np.minimum.accumulate(x)
    with device:
        np.testing.assert_allclose(products(x).numpy(), wanted + 3 * before, rtol=1e-5, atol=1e-6)
        found = least(x).numpy()
    assert found[:1].size == 0 or found[0] == -np.inf
    np.testing.assert_array_equal(found[1:], lows[1:] - lows[:-1] if length else lows)


@sad.struct
class Line:
    slope: float
    offset: float


@sad.function
def after(first: Line, second: Line) -> Line:
    """Not commutative."""
    return Line(first.slope * second.slope, second.slope * first.offset + second.offset)


@pytest.fixture(scope="module", params=[{}, {"kind": "discrete"}], ids=["alone", "together"])
def opened(device: sad.Device, request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """The device, and as if its groups ran at once."""
    if not request.param:
        yield device
        return
    other = sad.open_device(device.capabilities.runtime, limits=request.param)
    yield other
    other.close()


def composed(slopes: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found, slope, offset = np.zeros((len(slopes), 2)), 1.0, 0.0
    for k, (s, o) in enumerate(zip(slopes, offsets, strict=True)):
        slope, offset = slope * s, s * offset + o
        found[k] = slope, offset
    return found


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.parametrize("length", LENGTHS)
def test_pairs_of_scans_are_right(opened: sad.Device, length: int) -> None:
    draw = np.random.default_rng(length)
    x = (1 + 1e-2 * draw.standard_normal(length)).astype(np.float32)

    @sad.graph
    def forward(x: sad.Array[float]) -> tuple[sad.Array[float], sad.Array[float]]:
        return sad.scan(sad.add, x), sad.scan(sad.max, x)

    @sad.graph
    def lines(x: sad.Array[float]) -> tuple[sad.Array[Line], sad.Array[Line]]:
        made = Line(x, 1.0 - x)
        return sad.scan(after, made), sad.scan(after, made, reverse=True)

    with opened:
        sums, highs = (found.numpy() for found in forward(x))
        ahead, behind = (found.numpy() for found in lines(x))
    np.testing.assert_allclose(sums, np.cumsum(x, dtype=np.float64), rtol=1e-5)
    np.testing.assert_array_equal(highs, np.maximum.accumulate(x))
    exact = x.astype(np.float64)
    turned = composed(exact[::-1], 1.0 - exact[::-1])[::-1]
    for found, wanted in ((ahead, composed(exact, 1.0 - exact)), (behind, turned)):
        np.testing.assert_allclose(found["slope"], wanted[:, 0], rtol=2e-3, atol=1e-6)
        np.testing.assert_allclose(found["offset"], wanted[:, 1], rtol=2e-3, atol=2e-3)


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.parametrize("length", LENGTHS)
def test_scans_and_their_gradients_in_one_graph_are_right(opened: sad.Device, length: int) -> None:
    x = (1 + 1e-3 * np.random.default_rng(length).standard_normal(length)).astype(np.float32)

    @sad.graph
    def total(x: sad.Array[float]) -> sad.Array[float]:
        return sad.sum(sad.scan(sad.mul, x) * sad.scan(sad.mul, x, reverse=True))

    with opened:
        found = sad.grad(total)(x).numpy()
    exact = x.astype(np.float64)
    ahead, behind = np.cumprod(exact), np.cumprod(exact[::-1])[::-1]
    terms = ahead * behind
    # The factor x[k] is in the terms of all: once, and twice in its own.
    wanted = (terms.sum() + terms) / exact
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
