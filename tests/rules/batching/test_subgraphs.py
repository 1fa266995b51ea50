"""Batches of checkpoints, and of the user's own pullbacks."""

from __future__ import annotations

import numpy as np

from shaderad.interpret.arrays import evaluate
from shaderad.rules.arrays import vjp
from shaderad.rules.batching import batched
from tests.batch_check import check_batches
from tests.rules.arrays.test_subgraphs import INDEX, X, Y, graph_of, straight_through

BARS = np.array([[1.0, 10, 100], [2.0, 20, 200]])


def test_checkpoints() -> None:
    check_batches(graph_of(), [X, Y, INDEX])


def test_pullbacks_of_the_users_own() -> None:
    check_batches(graph_of(straight_through()), [X, Y, INDEX], with_jvp=False)


def test_the_cotangent_of_what_is_shared_is_the_sum_over_the_batch() -> None:
    graph, _ = batched(graph_of(straight_through()), [False, True, False], 2)
    ys = np.stack([Y, 2 * Y])
    found, _ = evaluate(vjp(graph, [True, True, False]), [X, ys, INDEX, BARS, np.ones((2, 3))])
    x_bar, y_bar = found[2:]
    np.testing.assert_array_equal(x_bar, 2 * BARS.sum(0) * X)
    np.testing.assert_array_equal(y_bar, np.zeros((2, 3)))
