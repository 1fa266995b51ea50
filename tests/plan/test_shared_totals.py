"""Two scans over the same elements find what their chunks come to in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunKernel, RunPass, RunScans
from shaderad.rules.arrays import building as b
from tests.array_check import array

N = sizes.symbol("n")
LENGTHS = (0, 1, 2, 300, 2048, 2049, 2300, 100_003)


def steps_of(inputs: tuple[Value, ...], *outputs: Value) -> list[type]:
    return [type(step) for step in plan(Graph(inputs, outputs)).steps]


def test_scans_of_the_same_elements_share_a_pass_in_either_direction() -> None:
    x = array((N,))
    once, again = b.scan(ops.ADD, x), b.scan(ops.MAX, x)
    assert steps_of((x,), once, again) == [RunScans]
    (step,) = plan(Graph((x,), (once, b.scan(ops.MIN, b.reverse(x))))).steps
    assert isinstance(step, RunScans)
    assert step.is_mirrored


def test_scans_that_read_nothing_in_common_do_not() -> None:
    x, y = array((N,)), array((N,))
    assert steps_of((x, y), b.scan(ops.ADD, x), b.scan(ops.ADD, y)) == [RunPass, RunPass]


def test_a_scan_of_a_scan_does_not() -> None:
    x = array((N,))
    once = b.scan(ops.ADD, x)
    twice = b.scan(ops.MAX, b.applied(ops.MUL, once, x))
    assert steps_of((x,), once, twice) == [RunPass, RunPass]


def test_rows_and_reductions_do_not() -> None:
    rows, x = array((N, 3)), array((N,))
    assert steps_of((rows,), b.scan(ops.ADD, rows), b.scan(ops.MAX, rows)) == [RunPass, RunPass]
    assert steps_of((x,), b.reduce(ops.ADD, x), b.scan(ops.ADD, x)) == [RunPass, RunPass]
    assert steps_of((x,), b.applied(ops.MUL, x, x), b.scan(ops.ADD, x)) == [RunKernel, RunPass]


def test_three_scans_are_a_pair_and_one() -> None:
    x = array((N,))
    scans = [b.scan(op, x) for op in (ops.ADD, ops.MAX, ops.MIN)]
    assert steps_of((x,), *scans) == [RunScans, RunPass]


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
