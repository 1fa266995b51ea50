"""The threads of a nest visit each place once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod

import pytest

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT
from shaderad.plan.nest.loops.shares import in_tiles, in_turns
from shaderad.plan.nest.nest import AxisKind, Nest, nest_of, split
from shaderad.plan.nest.places import Visit, places
from shaderad.plan.positions import Positions

THREADS = 16
OPERATIONS: Mapping[ops.Op, Callable[[int, int], int]] = {
    ops.ADD: lambda a, b: a + b,
    ops.SUB: lambda a, b: a - b,
    ops.MUL: lambda a, b: a * b,
    ops.FLOOR_DIV: lambda a, b: a // b,
    ops.LT: lambda a, b: a < b,
    ops.BIT_AND: lambda a, b: a & b,
}


def value(e: Expr, numbers: Mapping[str, int]) -> int:
    match e:
        case nodes.Var(name=name):
            return numbers[name]
        case nodes.Const(value=number):
            return int(number)
        case nodes.Cast(value=inner):
            return value(inner, numbers)
        case nodes.Apply(op=op, args=(a, b)):
            return OPERATIONS[op](value(a, numbers), value(b, numbers))
        case _:
            raise AssertionError(e)


def visits(nest: Nest, shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The places that all threads visit, in tiles or turns."""
    positions, thread, turn = Positions(), c.variable("i", INT), c.variable("k", INT)
    turns, counts = (
        [n for n in nest.extents(kind) if isinstance(n, int)]
        for kind in (AxisKind.LOOP, AxisKind.THREAD)
    )
    own = [
        positions.of(positions.expr(at))
        for at in positions.unravelled(positions.of(thread), (*counts,))
    ]
    visit = Visit(positions, nest, shape, thread, THREADS, own, turn if turns else None)
    code = [*visit.places()]
    for i, k in product(range(prod(counts)), range(*turns) if turns else [0]):
        for at, test in code:
            if test is None or value(test, {"i": i, "k": k}):
                yield tuple(value(positions.expr(p), {"i": i, "k": k}) for p in at)


@pytest.mark.parametrize("count", [1, 5, THREADS, THREADS + 1, 3 * THREADS, 50])
def test_turns_cover_all_elements_once(count: int) -> None:
    nest = in_turns(count, THREADS)
    assert sorted(visits(nest, (count,))) == [(k,) for k in range(count)]


@pytest.mark.parametrize(
    ("extents", "counts", "shape"),
    [
        ((4, 4), (4, 4), (16, 16)),
        ((4, 4), (4, 4), (15, 13)),
        ((3, 5), (2, 3), (6, 11)),
        ((7,), (5,), (30,)),
        ((1, 16), (16, 1), (9, 16)),
        ((2, 3, 2), (2, 2, 2), (4, 5, 3)),
    ],
)
def test_tiles_cover_all_elements_once(
    extents: tuple[int, ...], counts: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    nest = in_tiles(extents, counts)
    assert sorted(visits(nest, shape)) == [*product(*map(range, shape))]


def test_a_split_keeps_the_order_of_places() -> None:
    nest = split(nest_of((3, 8)), 1, 4, AxisKind.VECTOR, divides_extent=True)
    assert [*nest.extents(AxisKind.THREAD)] == [3, 2]
    assert (nest.count(AxisKind.VECTOR), nest.count(AxisKind.LOOP)) == (4, 1)
    positions = Positions()
    own = [positions.of(c.variable(name, INT)) for name in "ij"]
    numbers = {"i": 2, "j": 1}
    found = [tuple(value(positions.expr(p), numbers) for p in at) for at in places(nest, own)]
    assert found == [(2, 4), (2, 5), (2, 6), (2, 7)]


def test_a_split_that_leaves_a_rest_has_places_beyond_the_axis() -> None:
    nest = split(nest_of((10,), AxisKind.LOOP), 0, 4, AxisKind.THREAD)
    assert [part.extent for part in nest.axes[0]] == [3, 4]
    assert nest.shape == (10,)
