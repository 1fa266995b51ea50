"""Derivatives of graphs as one step: checkpoints, and the user's own pullbacks."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.diagnostics import DerivativeError
from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import CustomPullback, Graph, Subgraph, Value
from shaderad.ir.types import FLOAT, INT
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array, check, gradients

X, Y = np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.5, -0.5])
INDEX = np.array([2, 0, 2])


def product_of_waves(x: Value, y: Value, index: Value) -> Graph:
    gathered = arrays.Gather(operands=(b.applied(ops.SIN, x), index)).result
    return Graph((x, y, index), (b.applied(ops.MUL, gathered, y), y))


def graph_of(custom: CustomPullback | None = None) -> Graph:
    inputs = (array((3,)), array((3,)), array((3,), INT))
    body = product_of_waves(array((3,)), array((3,)), array((3,), INT))
    node = Subgraph(operands=inputs, body=body, custom=custom)
    return Graph(inputs, node.results)


def test_a_checkpoint_has_the_derivatives_of_its_body() -> None:
    check(graph_of(), [X, Y, INDEX])


def test_reverse_mode_keeps_the_operands_of_a_checkpoint_alone() -> None:
    graph = graph_of()
    derived = vjp(graph, [True, True, False])
    assert [type(n) for n in derived.nodes if n.operands] == [Subgraph, Subgraph]
    assert all(len(n.results) == 2 for n in derived.nodes if n.operands)


def test_a_checkpoint_inside_of_a_loop() -> None:
    k, carry = array((), INT), array((3,))
    x = array((3,))
    body = Graph((x,), (b.applied(ops.SIN, b.applied(ops.MUL, x, x)),))
    step = Graph((k, carry), Subgraph(operands=(carry,), body=body).results)
    start = array((3,))
    node = arrays.Loop(operands=(start,), body=step, count=5, carry_count=1, constant_count=0)
    check(Graph((start,), node.results), [X])


def straight_through() -> CustomPullback:
    """The cotangent of the first result goes to x, twice; y gets none."""
    primal = product_of_waves(array((3,)), array((3,)), array((3,), INT))
    x, _, _ = primal.inputs
    bar, other, saved = array((3,)), array((3,)), array((3,))
    twice = b.applied(ops.MUL, bar, b.full((3,), c.number(FLOAT, 2.0)))
    backward = Graph((saved, bar, other), (b.applied(ops.MUL, twice, saved), b.zeros(saved.type)))
    return CustomPullback("straight", Graph(primal.inputs, (*primal.outputs, x)), backward)


def test_a_pullback_of_the_users_own_is_followed() -> None:
    bars = [np.array([1.0, 10, 100]), np.ones(3)]
    x_bar, y_bar = gradients(graph_of(straight_through()), [X, Y, INDEX], bars)
    np.testing.assert_array_equal(x_bar, 2 * bars[0] * X)
    np.testing.assert_array_equal(y_bar, np.zeros(3))


def test_forward_mode_through_a_pullback_of_the_users_own_is_refused() -> None:
    with pytest.raises(DerivativeError, match="SR0472"):
        jvp(graph_of(straight_through()), [True, True, False])


def test_the_gradient_of_the_users_own_pullback_is_differentiated_again() -> None:
    derived = vjp(graph_of(straight_through()), [True, True, False])
    check(derived, [X, Y, INDEX, Y, X], order=1)
