"""Sums over tiles leave out tests for discarded cotangents, and make up for it where that shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, walk
from shaderad.ir.arrays import Graph
from shaderad.ir.types import FLOAT
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunTiles
from tests.array_check import array
from tests.launch_shapes import shape_of
from tests.plan.test_tiles import K, M, N

SHAPES = [(16, 8, 32), (7, 3, 5), (5, 300, 3), (3, 1200, 64), (4, 5001, 16), (4, 0, 16)]
"""Rows, elements and columns."""


def multiplied(x: Any, bar: Any) -> Any:
    """``x * bar`` where `bar` is not 0, whatever `x` is."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(bar == 0, 0, x * bar)


def chosen(x: Any, w: Any, mask: Any) -> Any:
    return sad.where(mask > 0.5, x @ w, 0.0)


@pytest.mark.gpu
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (np.float64, "all sizes"),
        *((np.float32, kind) for kind in ("all sizes", "alone", "grouped", "eight")),
    ],
    indirect=["kind"],
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.usefixtures("kind")
def test_discarded_infinities_and_nans_do_not_reach_gradients(
    shape: tuple[int, int, int], dtype: Any, device: sad.Device
) -> None:
    if dtype is np.float64 and "double" not in device.capabilities.features:
        pytest.skip("no double")
    rows, inner, columns = shape
    random = np.random.default_rng(sum(shape))
    x = random.uniform(-1, 1, (rows, inner)).astype(dtype)
    w = random.uniform(-1, 1, (inner, columns)).astype(dtype)
    bar = random.uniform(-1, 1, (rows, columns)).astype(dtype)
    mask = np.ones((rows, columns), dtype)
    odd = random.integers(0, max(inner, 1), 3 if inner else 0)
    # Row 0 and the last column are discarded; what a result keeps of row 2 is infinite or NaN.
    mask[:1], mask[:, -1:] = 0, 0
    x[:1, odd[:1]], x[:1, odd[1:2]] = np.inf, np.nan
    w[odd[2:], -1:] = -np.inf
    x[2:3, odd[:1]], x[2:3, odd[1:2]] = np.inf, np.nan
    mask[2:3, ::2] = 0
    _, pullback = sad.vjp(sad.graph(chosen), x, w, mask)
    x_bar, w_bar, _ = (v.numpy() for v in pullback(bar))
    kept = (bar * mask).astype(np.float64)
    exact_x = multiplied(w.astype(np.float64)[None], kept[:, None]).sum(-1)
    exact_w = multiplied(x.astype(np.float64)[:, :, None], kept[:, None]).sum(0)
    np.testing.assert_allclose(x_bar, exact_x, rtol=1e-5, atol=2e-5 * max(1, columns) ** 0.5)
    np.testing.assert_allclose(w_bar, exact_w, rtol=1e-5, atol=2e-5 * max(1, rows) ** 0.5)
    assert rows < 3 or inner == 0 or np.isnan(w_bar).any()


def places_of_tests(known: dict[str, int], *, is_inside: bool) -> set[bool]:
    """For each comparison of a cotangent with 0, whether it is where a total is NaN."""
    x, bar = (b.broadcast(array(s), (N, M, K), a) for s, a in (((N, K), (0, 2)), ((M, K), (1, 2))))
    parts = {"x": x, "bar": bar}
    factor, cotangent = (c.variable(name, FLOAT) for name in parts)
    is_discarded = c.apply(ops.EQ, cotangent, c.number(FLOAT, 0.0))
    element = c.select(is_discarded, c.zero(FLOAT), c.apply(ops.MUL, factor, cotangent))
    if is_inside:
        element = c.apply(ops.ADD, element, factor)
    total = b.reduce(ops.ADD, b.elementwise(element, parts, (N, M, K)))
    graph = Graph((*(v.producer.operands[0] for v in (x, bar) if v.producer),), (total,))
    (step,) = PlanChoices(known, shape=shape_of(lanes=8)).chosen(plan(graph)).steps
    assert isinstance(step, RunTiles)
    return found(step.works[0].kernel.body, inside=False)


def found(body: Iterable[nodes.Stmt], *, inside: bool) -> set[bool]:
    every: set[bool] = set()
    for s in body:
        if isinstance(s, nodes.If):
            is_nan = isinstance(s.condition, nodes.Apply) and s.condition.op is ops.ISNAN
            every |= found(s.then, inside=inside or is_nan) | found(s.otherwise, inside=inside)
        elif isinstance(s, nodes.For):
            every |= found(s.body, inside=inside)
        elif any(isinstance(e, nodes.Apply) and e.op is ops.EQ for e in walk.all_expressions((s,))):
            every.add(inside)
    return every


@pytest.mark.parametrize(
    "known",
    [{}, {"n": 3, "m": 3, "k": 8}, {"n": 64, "m": 64, "k": 64}, {"n": 64, "m": 64, "k": 512}],
)
def test_products_are_added_without_tests(known: dict[str, int]) -> None:
    assert places_of_tests(known, is_inside=False) == {True}


def test_a_test_inside_of_an_element_stays() -> None:
    assert places_of_tests({}, is_inside=True) == {False}


@pytest.mark.parametrize("is_sized", [False, True])
def test_a_transposed_product_is_stored_as_it_is_read(is_sized: bool) -> None:
    n, m, k = (8, 12, 16) if is_sized else (N, M, K)
    x, y = array((n, k)), array((k, m))
    spread = [
        b.broadcast(x, (n, m, k), (0, 2)),
        b.broadcast(b.transpose(y, (1, 0)), (n, m, k), (1, 2)),
    ]
    total = b.reduce(ops.ADD, b.applied(ops.MUL, *spread))
    turned = b.transpose(total, (1, 0))
    (step,) = plan(Graph((x, y), (turned,))).steps
    assert isinstance(step, RunTiles)
    assert step.writes[0].shape == (m, n)
    assert len(plan(Graph((x, y), (turned, total))).steps) == 2
