"""Derivatives of nodes that lay elements out anew: the five cases that apply to each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, Node
from tests.array_check import array, check


def draw(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape)


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
