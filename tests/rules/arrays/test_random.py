"""Derivatives of random graphs, up to second order: what single nodes do not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.types import FLOAT, INT
from tests.array_check import array, check

COUNT = 40
Rng = np.random.Generator
BY_COMPONENT = (ops.ADD, ops.SUB, ops.MUL, ops.MAX)


def remainders(count: int) -> Value:
    """Positions modulo 3."""
    rest = c.apply(ops.MOD, c.variable("i", INT), c.whole(3))
    return b.elementwise(rest, {"i": b.iota((count,), 0)}, (count,))


def combine(rng: Rng, x: Value, pool: list[Value]) -> Value:
    others = [v for v in pool if v.shape == x.shape]
    return b.applied(BY_COMPONENT[rng.integers(4)], x, others[rng.integers(len(others))])


def gather(rng: Rng, x: Value, _: list[Value]) -> Value:
    index = b.plus(b.iota((5,), 0), int(rng.integers(-2, 2)))
    return arrays.Gather(operands=(x, index), is_reported=False).result


def scatter(_: Rng, x: Value, _pool: list[Value]) -> Value:
    base = b.zeros(ArrayType(FLOAT, (4, *x.shape[1:])))
    count: Any = x.shape[0]
    return arrays.ScatterAdd(operands=(base, x, remainders(count))).result


STEPS: list[Callable[[Rng, Value, list[Value]], Value]] = [
    combine,
    gather,
    scatter,
    lambda rng, x, _: b.applied(ops.SIN, x),
    lambda rng, x, _: b.reduce((ops.ADD, ops.MUL, ops.MIN)[rng.integers(3)], x),
    lambda rng, x, _: b.scan((ops.ADD, ops.MUL, ops.MAX)[rng.integers(3)], x),
    lambda rng, x, _: b.transpose(x, [*range(1, len(x.shape)), 0]),
    lambda rng, x, _: b.reverse(x),
    lambda rng, x, _: b.concatenate((x, x), 0),
    lambda rng, x, _: b.along_last(x, 2),
]


def random_graph(rng: Rng) -> Graph:
    inputs = (array((4,)), array((3, 4)), array((4,)), array((3,)))
    pool = list(inputs)
    for _ in range(rng.integers(3, 9)):
        x = pool[rng.integers(len(pool))]
        if 0 < len(x.shape) < 4:
            pool.append(STEPS[rng.integers(len(STEPS))](rng, x, pool))
    return Graph(inputs, tuple(pool[-2:]))


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_random_graph_has_right_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    data = [rng.normal(size=[int(str(n)) for n in v.shape]) for v in graph.inputs]
    check(graph, data, seed=seed)
