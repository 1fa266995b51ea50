"""Cheaper tests for discarded cotangents have the values of those that they replace."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import shaderad as sad
from shaderad.interpret.arrays import evaluate
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import Graph
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Apply, Expr
from shaderad.ir.types import FLOAT, Type, Vector
from shaderad.plan.discarded import simply_discarded
from tests.array_check import array

VALUES = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan]


def names(t: Type = FLOAT) -> list[Expr]:
    return [c.variable(name, t) for name in ("x", "y", "bar")]


def discarded(part: Expr, bar: Expr) -> Expr:
    """As `rules.arrays.layout` writes it."""
    is_zero = c.apply(ops.EQ, bar, c.number(bar.type, 0))
    is_unused = c.apply(ops.BIT_AND, c.apply(ops.ISNAN, part), is_zero)
    return c.select(is_unused, c.zero(part.type), part)


def count_of(op: ops.Op, e: Expr) -> int:
    return sum(isinstance(part, Apply) and part.op == op for part in in_order(e))


def values_of(e: Expr) -> np.ndarray:
    inputs = [np.array(column) for column in zip(*product(VALUES, repeat=3), strict=True)]
    xs = [array((len(inputs[0]),)) for _ in inputs]
    result = b.elementwise(e, dict(zip(("x", "y", "bar"), xs, strict=True)), xs[0].shape)
    with np.errstate(all="ignore"):
        found, _ = evaluate(Graph(tuple(xs), (result,)), inputs)
    return found[0]


X, Y, BAR = names()
CASES = {
    "product": (c.apply(ops.MUL, X, BAR), 0, 1),
    "product of two": (c.apply(ops.MUL, c.apply(ops.MUL, BAR, X), Y), 0, 1),
    "quotient": (c.apply(ops.DIV, c.apply(ops.NEG, BAR), X), 0, 1),
    "chosen": (c.select(c.apply(ops.LT, X, Y), BAR, c.zero(FLOAT)), 0, 0),
    "negative": (c.apply(ops.NEG, BAR), 0, 0),
    "chosen product": (c.select(c.apply(ops.LT, X, Y), c.apply(ops.MUL, X, BAR), BAR), 0, 1),
    "sum": (c.apply(ops.ADD, c.apply(ops.MUL, X, BAR), Y), 1, 1),
    "reciprocal": (c.apply(ops.DIV, X, BAR), 1, 1),
    "other cotangent": (c.apply(ops.MUL, X, Y), 1, 1),
}
"""A part, and the tests for NaN and for 0 that remain."""


@pytest.mark.parametrize("name", CASES)
def test_values_stay_and_tests_for_nan_go_where_the_part_is_zero_or_nan(name: str) -> None:
    part, nan_count, zero_count = CASES[name]
    e = discarded(part, BAR)
    simple = simply_discarded(e)
    assert (count_of(ops.ISNAN, simple), count_of(ops.EQ, simple)) == (nan_count, zero_count)
    np.testing.assert_array_equal(values_of(simple), values_of(e))


def test_tests_inside_of_tests() -> None:
    e = discarded(c.apply(ops.MUL, Y, discarded(c.apply(ops.MUL, X, BAR), BAR)), BAR)
    simple = simply_discarded(e)
    assert count_of(ops.ISNAN, simple) == 0
    np.testing.assert_array_equal(values_of(simple), values_of(e))


def test_vectors_are_tested_by_component() -> None:
    x, _, bar = names(Vector(FLOAT, 3))
    simple = simply_discarded(discarded(c.apply(ops.MUL, x, bar), bar))
    assert (count_of(ops.ISNAN, simple), count_of(ops.EQ, simple)) == (0, 1)


def test_expressions_without_such_tests_are_not_touched() -> None:
    e = c.apply(ops.MUL, X, c.select(c.apply(ops.EQ, BAR, Y), X, Y))
    assert simply_discarded(e) is e


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [5, 16, 33])
def test_infinite_weights_of_discarded_results_have_no_part_in_gradients(
    rows: int, device: sad.Device
) -> None:
    rng = np.random.default_rng(rows)
    x, w = (rng.uniform(0.5, 1, shape).astype(np.float32) for shape in ((rows, 8), (8, 32)))
    kept = np.arange(32) % 3 != 0
    w[2:4, ~kept] = [[np.inf], [np.nan]]

    def loss(x: sad.Array, w: sad.Array, kept: sad.Array) -> sad.Array:
        return sad.sum(sad.where(kept, x @ w, 0.0))

    gradient = sad.graph(sad.grad(loss, argnums=(0, 1)))
    x_bar, w_bar = gradient(x, w, sad.array(np.broadcast_to(kept, (rows, 32))))
    exact = np.where(kept, w, 0).astype(np.float64).sum(1)
    np.testing.assert_allclose(x_bar.numpy(), np.broadcast_to(exact, x.shape), rtol=1e-5)
    columns = np.where(kept, x.astype(np.float64).sum(0)[:, None], 0)
    np.testing.assert_allclose(w_bar.numpy(), columns, rtol=1e-5)
