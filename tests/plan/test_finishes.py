"""Passes store what is made of their results, where that is all that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import arrays, ops, sizes
from shaderad.ir.arrays import Graph
from shaderad.ir.types import FLOAT
from shaderad.plan.planning import plan
from shaderad.rules.arrays import building as b
from tests.array_check import array

N = sizes.symbol("n")
LENGTHS = (0, 1, 7, 300, 100_003)


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


def test_what_others_read_too_is_stored_as_it_is() -> None:
    x = array((N,))
    total = b.reduce(ops.ADD, x)
    found = plan(Graph((x,), (b.applied(ops.SIN, total), total)))
    assert [type(step.writes[0].producer) for step in found.steps] == [
        arrays.Reduce,
        arrays.Elementwise,
    ]


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
