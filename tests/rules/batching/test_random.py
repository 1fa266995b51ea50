"""Batches of random graphs, and of their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from shaderad.ir import sizes
from tests.batch_check import check_batches
from tests.random_graphs.generation import STEPS
from tests.random_graphs.maker import Maker
from tests.random_graphs.nests import NESTS

COUNT = 25
SMALL_STEPS = tuple(step for step in STEPS if step not in NESTS)
"""Steps for layouts of large arrays would take the interpreter long."""


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_batch_of_a_random_graph_is_its_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = {"n": int(rng.integers(0, 6)), "m": int(rng.integers(0, 4))}
    graph = Maker(rng, SMALL_STEPS, known).graph()
    shapes = [[sizes.evaluate(n, known) for n in v.shape] for v in graph.inputs]
    check_batches(graph, [rng.uniform(-1, 1, shape) for shape in shapes], known)
