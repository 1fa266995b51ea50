"""What the nodes of array graphs mean, against NumPy's own functions and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.interpret.arrays import evaluate
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.types import BOOL, FLOAT, INT, Vector
from tests.array_check import array

X = np.arange(12.0).reshape(3, 4)


def run(node: Node, *data: Any, **size_by_name: int) -> Any:
    """The result of one node, whose operands are all inputs."""
    found, _ = evaluate(Graph(node.operands, node.results), data, size_by_name)
    return found[0] if len(found) == 1 else found


def matrix() -> Value:
    return array((3, 4))


def test_layout_follows_numpy() -> None:
    repeated = arrays.Broadcast(operands=(array((3, 1)),), shape=(2, 3, 4), axes=(1, 2))
    np.testing.assert_array_equal(run(repeated, X[:, :1]), np.broadcast_to(X[:, :1], (2, 3, 4)))
    turned = arrays.Transpose(operands=(array((2, 3, 4)),), permutation=(2, 0, 1))
    data = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(turned, data), data.transpose(2, 0, 1))
    piece = arrays.Slice(operands=(matrix(),), starts=(2, 1), steps=(-1, 2), shape=(3, 2))
    np.testing.assert_array_equal(run(piece, X), X[::-1, 1::2])
    joined = arrays.Concatenate(operands=(matrix(), array((3, 2))), axis=1)
    np.testing.assert_array_equal(run(joined, X, X[:, :2]), np.hstack([X, X[:, :2]]))


def test_place_is_zero_beside_its_operand() -> None:
    node = arrays.Place(operands=(array((2,), Vector(FLOAT, 2)),), starts=(3,), steps=(-2,),
                        shape=(5,))  # fmt: skip
    expected = [[0, 0], [3, 4], [0, 0], [1, 2], [0, 0]]
    np.testing.assert_array_equal(run(node, [[1, 2], [3, 4]]), expected)


def test_symbolic_sizes_are_given_by_name() -> None:
    n = sizes.symbol("n")
    node = arrays.Reshape(operands=(array((n, 2)),), shape=(sizes.multiply(2, n),))
    np.testing.assert_array_equal(run(node, X.reshape(6, 2), n=6), X.reshape(12))
    assert run(arrays.SizeOf(operands=(), size=sizes.square_root(n)), n=10) == 3
    assert run(arrays.SizeOf(operands=(), size=sizes.square_root(n)), n=0) == 1


def test_an_index_out_of_range_reads_zero_and_is_reported_where_it_should_be() -> None:
    index = np.array([2, -1, 0, 3])
    for is_reported in (True, False):
        x, i = matrix(), array((4,), INT)
        node = arrays.Gather(operands=(x, i), is_reported=is_reported)
        (found,), reports = evaluate(Graph((x, i), node.results), [X, index])
        np.testing.assert_array_equal(found, [X[2], np.zeros(4), X[0], np.zeros(4)])
        assert len(reports) == is_reported


def test_scatter_add_sums_over_writers_and_ignores_what_is_outside() -> None:
    node = arrays.ScatterAdd(operands=(array((3,)), array((4,)), array((4,), INT)))
    found = run(node, np.ones(3), np.array([1.0, 2, 4, 8]), np.array([2, 0, 2, 3]))
    np.testing.assert_array_equal(found, [3, 1, 6])


def test_the_last_writer_of_an_element_is_the_one_of_the_largest_position() -> None:
    node = arrays.LastWriter(operands=(array((5,), INT),), count=4)
    np.testing.assert_array_equal(run(node, np.array([1, 3, 1, 9, -1])), [-1, 2, -1, 1])


def test_sorting_is_stable_and_puts_nan_last() -> None:
    node = arrays.ArgSort(operands=(array((5,)),))
    np.testing.assert_array_equal(run(node, [2.0, np.nan, 1, 2, 1]), [2, 4, 0, 3, 1])


@pytest.mark.parametrize(("kind", "expected"), [("min", [1, 2]), ("max", [0, 1])])
def test_the_first_extreme_of_each_row_wins_and_nan_does_not(kind: Any, expected: Any) -> None:
    node = arrays.ArgExtreme(operands=(array((2, 3)),), kind=kind)
    np.testing.assert_array_equal(run(node, [[3, 1, 1], [np.nan, 2, 1]]), expected)


@pytest.mark.parametrize(
    ("op", "neutral"), [(ops.ADD, 0), (ops.MUL, 1), (ops.MIN, np.inf), (ops.MAX, -np.inf)]
)
def test_an_empty_row_is_the_neutral_element_of_the_op(op: ops.Op, neutral: float) -> None:
    node = arrays.Reduce(operands=(array((2, 0)),), op=op)
    np.testing.assert_array_equal(run(node, np.zeros((2, 0))), [neutral, neutral])


def test_reductions_start_with_the_init_and_scans_keep_every_step() -> None:
    total = arrays.Reduce(operands=(matrix(), array((3,))), op=ops.MUL)
    np.testing.assert_array_equal(run(total, X + 1, [1, 2, 3]), np.prod(X + 1, 1) * [1, 2, 3])
    steps = arrays.Scan(operands=(matrix(),), op=ops.ADD)
    np.testing.assert_array_equal(run(steps, X), np.cumsum(X, 1))
    every = arrays.Reduce(operands=(array((2, 2), BOOL),), op=ops.BIT_AND)
    np.testing.assert_array_equal(run(every, [[True, True], [True, False]]), [True, False])


def test_a_reversed_loop_runs_from_the_last_row_and_stacks_rows_in_order() -> None:
    k, carry, x = array((), INT), array(()), array(())
    total = b.applied(ops.ADD, carry, x)
    body = Graph((k, carry, x), (total, total, k))
    node = arrays.Loop(operands=(array(()), array((4,))), body=body, count=4, carry_count=1,
                       constant_count=0, is_reversed=True)  # fmt: skip
    last, totals, numbers = run(node, 0.0, [1.0, 2, 4, 8])
    assert last == 15
    np.testing.assert_array_equal(totals, [15, 14, 12, 8])
    np.testing.assert_array_equal(numbers, [0, 1, 2, 3])
