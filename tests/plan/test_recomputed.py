"""What a scan holds is computed from what it holds before, where all that reads it can."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.nodes import Expr
from shaderad.ir.types import FLOAT
from shaderad.plan.planning import plan
from shaderad.plan.recomputed import recomputed
from shaderad.plan.steps import RunKernel, RunPass
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b
from tests.array_check import array

N = sizes.symbol("n")
X = array((N,))


def product(op: ops.Op, fill: Expr, x: Value = X) -> Value:
    """A scan times what comes before it."""
    scanned = b.scan(op, x)
    return b.applied(ops.MUL, scanned, b.shift_right(scanned, fill))


def is_left(*outputs: Value) -> bool:
    graph = Graph((X,), outputs)
    return recomputed(graph).outputs == graph.outputs


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MIN, ops.MAX])
def test_a_scan_and_what_comes_before_it_are_read_as_one(op: ops.Op) -> None:
    steps = plan(Graph((X,), (product(op, c.neutral(op, FLOAT)),))).steps
    assert [type(step) for step in steps] == [RunPass]


def test_what_is_put_before_must_be_neutral() -> None:
    assert is_left(product(ops.ADD, c.number(FLOAT, 1.0)))
    assert is_left(product(ops.MUL, c.number(FLOAT, 0.0)))
    assert not is_left(product(ops.MUL, c.number(FLOAT, 1.0)))


def test_elements_that_are_computed_are_not_computed_again() -> None:
    squares = b.applied(ops.MUL, X, X)
    assert is_left(product(ops.MUL, c.number(FLOAT, 1.0), squares))


def test_a_scan_that_is_wanted_itself_is_read() -> None:
    one = c.number(FLOAT, 1.0)
    scanned = b.scan(ops.MUL, X)
    before = b.shift_right(scanned, one)
    both = b.applied(ops.MUL, scanned, before)
    assert is_left(scanned, both)
    assert is_left(b.reverse(scanned), both)
    assert is_left(b.applied(ops.MUL, before, X))
    steps = plan(Graph((X,), (b.reverse(scanned), both))).steps
    assert [type(step) for step in steps] == [RunPass, RunKernel]


@pytest.mark.gpu
@pytest.mark.parametrize("length", [0, 1, 2, 7, 300, 5003])
def test_values_are_the_same(device: sad.Device, length: int) -> None:
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
