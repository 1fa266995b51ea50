"""Derivatives of layout and index nodes: both modes, to second order, for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.interpret.arrays import evaluate
from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import ArrayType, Graph, Node, Value
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array, check, gradients

FLOAT2 = Vector(FLOAT, 2)
REPEATED = np.array([4, 0, 4, 9, -1])
"""An index twice, and two out of range."""


def draw(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape)


def graph_of(node: Node, *inputs: Value) -> Graph:
    return Graph(inputs, node.results)


X, Y = array((3, 4)), array((3, 2))
ROW, EMPTY = array((3, 1)), array((0, 4))
LONG, SHORT = array((7,)), array((3,))
NODES: dict[str, Node] = {
    "a row repeated": arrays.Broadcast(operands=(ROW,), shape=(2, 3, 4), axes=(1, 2)),
    "nothing repeated": arrays.Broadcast(operands=(EMPTY,), shape=(2, 0, 4), axes=(1, 2)),
    "a matrix repeated no times": arrays.Broadcast(operands=(X,), shape=(0, 3, 4), axes=(1, 2)),
    "reshape": arrays.Reshape(operands=(X,), shape=(2, 6)),
    "transpose": arrays.Transpose(operands=(X,), permutation=(1, 0)),
    "slice backward": arrays.Slice(operands=(LONG,), starts=(6,), steps=(-2,), shape=(3,)),
    "empty slice": arrays.Slice(operands=(LONG,), starts=(7,), steps=(1,), shape=(0,)),
    "place": arrays.Place(operands=(SHORT,), starts=(6,), steps=(-3,), shape=(7,)),
    "roll": arrays.Roll(operands=(X,), axis=1, start=3),
    "roll by all": arrays.Roll(operands=(LONG,), axis=0, start=7),
    "roll of nothing": arrays.Roll(operands=(EMPTY,), axis=0, start=0),
    "concatenate": arrays.Concatenate(operands=(X, Y, X), axis=1),
    "concatenate with nothing": arrays.Concatenate(operands=(X, EMPTY), axis=0),
}


@pytest.mark.parametrize("name", NODES)
def test_both_modes_agree_with_differences_up_to_second_order(name: str) -> None:
    node = NODES[name]
    inputs = tuple(dict.fromkeys(node.operands))
    data = [draw(*(int(str(n)) for n in v.shape)) for v in inputs]
    check(Graph(inputs, node.results), data)


# -- reads and sums by index arrays ---------------------------------------------------------------


def test_gather_reads_rows_that_repeat_or_do_not_exist() -> None:
    x, i = array((5, 2)), array((5,), INT)
    check(graph_of(arrays.Gather(operands=(x, i)), x, i), [draw(5, 2), REPEATED])


def test_gather_by_two_indices() -> None:
    x, i, j = array((5, 2), FLOAT2), array((5,), INT), array((5,), INT)
    columns = np.array([1, 0, 1, 0, 0])
    node = arrays.Gather(operands=(x, i, j))
    check(graph_of(node, x, i, j), [draw(5, 2, 2), REPEATED, columns])


def test_gather_by_a_single_index_drops_the_axis() -> None:
    x, i = array((5, 2)), array((), INT)
    check(graph_of(arrays.Gather(operands=(x, i)), x, i), [draw(5, 2), np.array(3)])


def test_scatter_add_to_elements_that_repeat_or_do_not_exist() -> None:
    base, v, i = array((5,), FLOAT2), array((5,), FLOAT2), array((5,), INT)
    node = arrays.ScatterAdd(operands=(base, v, i))
    check(graph_of(node, base, v, i), [draw(5, 2), draw(5, 2), REPEATED])


@pytest.mark.parametrize("count", [0, 1])
def test_few_or_no_indices(count: int) -> None:
    base, v, i = array((5,)), array((count,)), array((count,), INT)
    node = arrays.ScatterAdd(operands=(base, v, i))
    check(graph_of(node, base, v, i), [draw(5), draw(count), REPEATED[:count]])
    x = array((0,))
    node = arrays.Gather(operands=(x, i))
    check(graph_of(node, x, i), [draw(0), REPEATED[:count]])


def test_only_the_primal_reports_an_index_out_of_range() -> None:
    x, i = array((5,)), array((5,), INT)
    graph = graph_of(arrays.Gather(operands=(x, i)), x, i)
    for derived, extra in ((jvp, draw(5)), (vjp, draw(5))):
        _, reports = evaluate(derived(graph, [True, False]), [draw(5), REPEATED, extra])
        assert len(reports) == 1


def test_a_gradient_sums_over_the_reads_of_one_element() -> None:
    x, i = array((5,)), array((5,), INT)
    graph = graph_of(arrays.Gather(operands=(x, i)), x, i)
    (x_bar,) = gradients(graph, [draw(5), REPEATED], [np.array([1.0, 2, 4, 8, 16])])
    np.testing.assert_array_equal(x_bar, [2, 0, 0, 0, 5])


def test_positions_carry_no_derivative() -> None:
    x, i = array((4,)), array((4,), INT)
    last = arrays.LastWriter(operands=(i,), count=4).result
    order = arrays.ArgSort(operands=(x,)).result
    first = arrays.ArgExtreme(operands=(x,), kind="min").result
    values = arrays.Gather(operands=(x, order)).result
    graph = Graph((x, i), (last, order, first, values))
    x_bar, *_ = gradients(graph, [np.array([3.0, 1, 2, 0]), np.arange(4)], [np.arange(4.0)])
    np.testing.assert_array_equal(x_bar, [3, 1, 2, 0])


def test_extents_that_are_equal_in_a_call_alone_are_not_repeated() -> None:
    """A trace may name one extent by two sizes, which are equal where it serves."""
    n, m = sizes.symbol("n"), sizes.symbol("m")
    x = Value(ArrayType(FLOAT, (m, n)))
    node = arrays.Broadcast(operands=(x,), shape=(4, n, m), axes=(1, 2))
    graph, bar = Graph((x,), node.results), draw(4, 5, 5)
    (found,) = gradients(graph, [draw(5, 5)], [bar], n=5, m=5)
    np.testing.assert_allclose(found, bar.sum(0))
