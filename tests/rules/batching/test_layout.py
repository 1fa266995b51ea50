"""Batches of elementwise, layout, index and row nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.types import FLOAT, INT
from tests.array_check import array
from tests.batch_check import check_batches

X = np.random.default_rng(0).normal(size=(2, 3))
ROW, POSITIVE = X[0] + 2.0, np.abs(X) + 0.5
INDEX = np.array([2, 0, 5, -1])
"""Out of range at its end."""


def of_one(node: type[Node], **fields: Any) -> Graph:
    x = array((2, 3))
    return Graph((x,), node(operands=(x,), **fields).results)


@pytest.mark.parametrize(
    "graph",
    [
        of_one(arrays.Reshape, shape=(3, 2, 1)),
        of_one(arrays.Broadcast, shape=(4, 2, 3), axes=(1, 2)),
        of_one(arrays.Transpose, permutation=(1, 0)),
        of_one(arrays.Slice, starts=(1, 2), steps=(1, -2), shape=(1, 2)),
        of_one(arrays.Place, starts=(1, 0), steps=(2, 1), shape=(5, 4)),
        of_one(arrays.Roll, axis=1, start=2),
        of_one(arrays.ArgSort),
        of_one(arrays.ArgExtreme, kind="max"),
        *(of_one(arrays.Reduce, op=op) for op in (ops.ADD, ops.MUL, ops.MIN)),
        *(of_one(arrays.Scan, op=op) for op in (ops.ADD, ops.MUL, ops.MAX)),
    ],
    ids=lambda graph: type(graph.outputs[0].producer).__name__,
)
def test_nodes_of_one_operand(graph: Graph) -> None:
    check_batches(graph, [POSITIVE])


def of_two(x: Value, y: Value) -> list[Value]:
    product = b.applied(ops.MUL, b.applied(ops.SIN, x), y)
    return [product, b.concatenate((x, product), 1), y]


def test_convolutions() -> None:
    rng = np.random.default_rng(1)
    x, w = array((2, 3, 4, 5)), array((2, 6, 4, 2))
    node = arrays.Convolution(
        operands=(x, w), extents=(3,), strides=(2,), dilations=(1,), spacings=(1,), padding=(1,)
    )
    data = [rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 6, 4, 2))]
    check_batches(Graph((x, w), node.results), data)


def test_operands_that_are_shared_are_repeated() -> None:
    x, y = array((2, 3)), array((2, 3))
    check_batches(Graph((x, y), tuple(of_two(x, y))), [X, X + 1])


def test_what_depends_on_nothing_mapped_is_not_repeated() -> None:
    from shaderad.rules.batching import batched

    x, y = array((2, 3)), array((2, 3))
    outer = b.applied(ops.SIN, y)
    graph, flags = batched(Graph((x, y), (b.applied(ops.MUL, x, outer), outer)), [True, False], 4)
    assert flags == (True, False)
    assert graph.outputs[1] is outer


def test_reductions_begin_with_an_element() -> None:
    x, init = array((2, 3)), array((2,))
    check_batches(Graph((x, init), (b.reduce(ops.MUL, x, init),)), [X, X[:, 0]])


def test_positions_and_sizes_are_shared() -> None:
    x = array((2, 3))
    places = b.elementwise(c.convert(FLOAT, c.variable("i", INT)), {"i": b.iota((2, 3), 1)}, (2, 3))
    check_batches(Graph((x,), (b.applied(ops.MUL, x, places), places)), [X])


@pytest.mark.parametrize("is_reported", [False, True])
def test_gathers_of_rows_and_elements(*, is_reported: bool) -> None:
    x, row, column = array((2, 3)), array((4,), INT), array((4,), INT)
    rows = arrays.Gather(operands=(x, row), is_reported=is_reported).result
    both = arrays.Gather(operands=(x, row, column), is_reported=False).result
    check_batches(Graph((x, row, column), (rows, both)), [X, np.array([0, 1, 1, 0]), INDEX])


def test_reports_of_gathers_stay() -> None:
    x, at = array((3,)), array((4,), INT)
    check_batches(Graph((x, at), arrays.Gather(operands=(x, at)).results), [ROW, INDEX])


def test_scatters_add_to_the_own_element_of_the_batch() -> None:
    base, values, at = array((3, 2)), array((4, 2)), array((4,), INT)
    graph = Graph((base, values, at), arrays.ScatterAdd(operands=(base, values, at)).results)
    check_batches(graph, [X.T, np.ones((4, 2)), np.array([1, 1, 7, -1])])


@pytest.mark.parametrize("count", [0, 1, 4])
def test_the_last_writer_is_one_of_the_own_element_of_the_batch(count: int) -> None:
    at = array((6,), INT)
    graph = Graph((at,), arrays.LastWriter(operands=(at,), count=count).results)
    check_batches(graph, [np.array([3, 1, -1, 3, 9, 0])])
