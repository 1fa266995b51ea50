"""Derivatives of convolutions: both modes, to second order, and the sum that replaces one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.interpret.arrays import evaluate
from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Convolution, Graph
from shaderad.rules.arrays import vjp
from shaderad.rules.arrays.convolutions import as_sum
from tests.array_check import array, check

X, W = array((2, 2, 3, 5, 4)), array((2, 2, 3, 3, 2))
NODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "padded": {"extents": (5, 5), "padding": (1, 1)},
    "strided": {"extents": (2, 2), "strides": (2, 3)},
    "dilated": {"extents": (3, 3), "dilations": (2, 1), "padding": (2, 0)},
    "reversed": {"dilations": (-1, -1), "padding": (-2, -1)},
    "spaced": {"extents": (9, 6), "spacings": (2, 3), "padding": (2, 0)},
    "backward": {"strides": (-1, -2), "padding": (-4, -3)},
    "all": {
        "extents": (4, 3), "strides": (-3, 2), "dilations": (2, -1), "spacings": (2, 1),
        "padding": (-7, 1),
    },
    "to nothing": {"extents": (0, 3)},
}  # fmt: skip


def node_of(name: str) -> Convolution:
    plain = {
        "extents": (3, 3), "strides": (1, 1), "dilations": (1, 1), "spacings": (1, 1),
        "padding": (0, 0),
    }  # fmt: skip
    return Convolution(operands=(X, W), **(plain | NODES[name]))


def draw() -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.normal(size=tuple(int(str(n)) for n in v.shape)) for v in (X, W)]


@pytest.mark.parametrize("name", NODES)
def test_both_modes_agree_with_differences_up_to_second_order(name: str) -> None:
    check(Graph((X, W), node_of(name).results), draw())


@pytest.mark.parametrize("name", NODES)
def test_the_sum_of_products_is_the_convolution(name: str) -> None:
    node, data = node_of(name), draw()
    (wanted,), _ = evaluate(Graph((X, W), node.results), data)
    (found,), _ = evaluate(Graph((X, W), (as_sum(node),)), data)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_cotangents_are_convolutions_to_any_order() -> None:
    graph = Graph((X, W), node_of("all").results)
    for _ in range(3):
        graph = vjp(graph, [True] * len(graph.inputs))
        kinds = {type(node) for node in graph.nodes}
        assert kinds <= {Convolution, arrays.Transpose, arrays.Elementwise}


def test_padding_may_be_a_size() -> None:
    n, x, w = sizes.symbol("n"), array((1, 1, 1, 6)), array((1, 1, 1, 2))
    node = Convolution(operands=(x, w), extents=(7,), strides=(1,), dilations=(1,), spacings=(1,),
                       padding=(n,))  # fmt: skip
    data = [np.arange(6.0).reshape(1, 1, 1, 6), np.array([10.0, 1.0]).reshape(1, 1, 1, 2)]
    for graph in (Graph((x, w), node.results), Graph((x, w), (as_sum(node),))):
        (found,), _ = evaluate(graph, data, {"n": 1})
        np.testing.assert_array_equal(found.reshape(-1), [0, 1, 12, 23, 34, 45, 50])
    check(Graph((x, w), node.results), data, {"n": 1})
