"""Graphs that are kept because they may come again."""

from __future__ import annotations

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.equality import EqualGraphs
from shaderad.ir.types import FLOAT


def chain(count: int, factor: float) -> Graph:
    """A graph of `count` nodes."""
    x = Value(ArrayType(FLOAT, (4,)))
    y = x
    for _ in range(count):
        y = b.elementwise(c.apply(ops.MUL, c.variable("y", FLOAT), c.number(FLOAT, factor)),
                          {"y": y}, (4,))  # fmt: skip
    return Graph((x,), (y,))


def test_equal_graphs_are_one() -> None:
    kept = EqualGraphs(2)
    first = kept.shared(chain(3, 2.0))
    assert kept.shared(chain(3, 2.0)) is first
    assert kept.shared(chain(3, 4.0)) is not first
    kept.shared(chain(3, 5.0))
    assert kept.shared(chain(3, 2.0)) is not first


def test_nodes_are_limited_but_for_the_latest_graphs() -> None:
    kept = EqualGraphs(100, node_limit=10)
    graphs = [kept.shared(chain(3, float(k))) for k in range(EqualGraphs.FEWEST + 1)]
    assert kept.shared(chain(3, float(EqualGraphs.FEWEST))) is graphs[-1]
    assert kept.shared(chain(3, 1.0)) is graphs[1]
    assert kept.shared(chain(3, 0.0)) is not graphs[0]
    small = EqualGraphs(100, node_limit=100)
    first = small.shared(chain(3, 0.0))
    for k in range(1, 20):
        small.shared(chain(3, float(k)))
    assert small.shared(chain(3, 0.0)) is first
