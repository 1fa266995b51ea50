"""Steps that read the elements beside their own find most of them in the thread's tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import composing as c
from shaderad.ir.types import INT
from shaderad.plan.nest.loops import in_group as groups
from shaderad.plan.nest.loops.shares import Share, in_tiles, owner
from shaderad.plan.nest.loops.tiles import StepFacts, Tiled, fits, tiled, tiling_of
from shaderad.plan.positions import Position, Positions, add, constant, times
from tests.launch_shapes import change_rows

THREADS = 16
NOWHERE = frozenset[int]()


def test_tiles_are_as_round_as_sizes_allow() -> None:
    both = frozenset({0, 1})
    assert tiling_of((16, 16), both, THREADS) == in_tiles((4, 4), (4, 4))
    assert tiling_of((1, 16, 16), frozenset({1, 2}), THREADS) == in_tiles((4, 4), (4, 4))
    assert tiling_of((16, 16), frozenset({1}), THREADS) == in_tiles((1, 16), (16, 1))
    assert tiling_of((48,), frozenset({0}), THREADS) == in_tiles((3,), (16,))
    assert tiling_of((1000, 1000), both, THREADS) is None


def test_only_kernels_that_read_beside_their_elements_have_tiles() -> None:
    plain = StepFacts((16, 16), 30, 10, NOWHERE)
    shifted = StepFacts((16, 16), 30, 10, frozenset({0}))
    small = StepFacts((4, 4), 30, 10, frozenset({0}))
    assert tiled({0: plain, 1: small}, THREADS) is None
    found = tiled({0: plain, 1: shifted, 2: small}, THREADS)
    assert found is not None
    assert found.steps == {0, 1}


def test_steps_with_long_bodies_are_not_written_for_each_element() -> None:
    shifted = StepFacts((16, 16), 30, 10, frozenset({0}))
    long = StepFacts((16, 16), 3000, 10, frozenset({0}))
    found = tiled({0: long, 1: shifted}, THREADS)
    assert found is not None
    assert found.steps == {1}
    assert tiled({0: long}, THREADS) is None


def test_arrays_of_nearly_one_shape_have_the_same_tiles() -> None:
    tiling = in_tiles((4, 4), (4, 4))
    assert fits(tiling, (16, 16))
    assert fits(tiling, (15, 1, 14))
    assert not fits(tiling, (17, 16))
    assert not fits(tiling, (4, 16))
    assert not fits(tiling, (256,))


def test_an_element_has_a_tile_and_a_number_in_that() -> None:
    positions, tiling = Positions(), in_tiles((4, 2), (4, 8))
    row, column = (positions.of(c.variable(name, INT)) for name in ("r", "c"))
    at = add(times(row, 4), constant(3)), add(times(column, 2), constant(-1))
    tile = add(times(row, 8), add(column, constant(-1)))
    assert owner(tiling, at, (16, 16)) == (tile, 7)
    assert owner(tiling, (column, row), (16, 16)) is None
    share = Share(tiling, (times(row, 4), times(column, 2)), count=256)
    above = add(times(row, 4), constant(3)), times(column, 2)
    assert share.own_index(above, (16, 16), constant(256)) == constant(8 + 6)
    assert share.own_index(at, (16, 16), Position()) is None


# -- on devices -----------------------------------------------------------------------------------

Loop = Callable[[Any, Any], Any]


def wrapped(x: Any, b: Any) -> Any:
    """Jacobi sweeps."""

    def step(_: Any, p: Any) -> Any:
        rows, columns = (
            sad.roll(p, 1, 0) + sad.roll(p, -1, 0),
            sad.roll(p, 2, 1) + sad.roll(p, -1, 1),
        )
        return 0.25 * (rows + columns - b)

    return sad.fori_loop(5, step, x)


def padded(x: Any, b: Any) -> Any:
    """Zeros lie around the array."""

    def step(_: Any, p: Any) -> Any:
        inner = p[:-2, 1:-1] + 0.5 * p[2:, 1:-1] - 0.25 * p[1:-1, :-2] + 0.125 * p[1:-1, 2:]
        m, n = p.shape
        wide = sad.concatenate([sad.zeros((m - 2, 1)), inner, sad.zeros((m - 2, 1))], axis=1)
        rows = sad.concatenate([sad.zeros((1, n)), wide, sad.zeros((1, n))])
        return 0.5 * rows + b * p

    return sad.fori_loop(4, step, x)


def staggered(x: Any, b: Any) -> Any:
    """Waves, of which one array has a row less."""

    def step(_: Any, carry: Any) -> Any:
        p, v = carry
        v = v + 0.3 * (p[1:] - p[:-1])
        across = sad.concatenate([v[:1], v[1:] - v[:-1], -v[-1:]], axis=0)
        return p + 0.3 * across + 0.01 * b, v

    p, v = sad.fori_loop(6, step, (x, x[1:] * 0.1))
    return sad.sum(p * p, axis=1)[1:] + sad.sum(v, axis=1)


def nested(x: Any, b: Any) -> Any:
    """Keeps a row an iteration, and reads the result of an inner loop beside and anywhere."""
    flat = (sad.arange(x.shape[1]) * 5 + 2) % x.shape[1]

    def step(p: Any, scale: Any) -> Any:
        q = sad.fori_loop(3, lambda _, q: 0.5 * (sad.roll(q, 1, 1) + sad.roll(q, 1, 0)) + p, b)
        new = sad.sin(sad.roll(q, -1, 0) * scale) + 0.1 * q[:, flat]
        return new, sad.roll(new, 1, 0) - new

    return sad.loop(step, x, sad.arange(3) * 0.2 + 0.5)


LOOPS = [wrapped, padded, staggered, nested]
TOLERANCE = 2e-6
"""Of sums of a few floats in another order."""
SHAPES = [(24, 20), (23, 29), (1, 300), (300, 1), (2, 257)]


def leaves(tree: Any) -> list[Any]:
    if not isinstance(tree, tuple):
        return [tree]
    parts = cast("tuple[Any, ...]", tree)
    return [leaf for part in parts for leaf in leaves(part)]


def found(loop: Loop, x: Any, b: Any) -> list[Any]:
    def loss(x: Any, b: Any) -> Any:
        total = sad.zeros(())
        for leaf in leaves((loop(x, b),)):
            total = total + sad.sum(sad.cos(leaf))
        return total

    both = leaves((sad.graph(loop)(x, b), sad.graph(sad.grad(loss, argnums=(0, 1)))(x, b)))
    return [one.numpy() for one in both]


@pytest.mark.gpu
@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loop", LOOPS)
def test_tiles_give_what_a_dispatch_a_step_gives(
    device: sad.Device, loop: Loop, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[Tiled | None] = []

    def noted(facts: Mapping[int, StepFacts], threads: int) -> Tiled | None:
        chosen.append(tiled(facts, threads))
        return chosen[-1]

    monkeypatch.setattr(groups, "tiled", noted)
    if loop is padded and min(shape) < 3:
        pytest.skip("has no inner elements")
    if loop is staggered and shape[0] < 2:
        pytest.skip("has no rows between rows")
    x, b = (
        sad.array(np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32))
        for seed in (1, 2)
    )
    in_tiles = found(loop, x, b)
    assert any(one is not None for one in chosen)
    change_rows(monkeypatch, loop_step_cost=-1)
    for one, other in zip(in_tiles, found(loop, x, b), strict=True):
        scale = max(1.0, float(np.max(np.abs(other))))
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE * scale)


@pytest.mark.gpu
def test_sweeps_agree_with_numpy(device: sad.Device) -> None:
    x, b = (np.random.default_rng(seed).uniform(-1, 1, (24, 26)) for seed in (1, 2))
    arrays = (sad.array(one.astype(np.float32)) for one in (x, b))
    result = sad.graph(wrapped)(*arrays).numpy()
    for _ in range(5):
        rows, columns = np.roll(x, 1, 0) + np.roll(x, -1, 0), np.roll(x, 2, 1) + np.roll(x, -1, 1)
        x = 0.25 * (rows + columns - b)
    np.testing.assert_allclose(result, x, rtol=0, atol=TOLERANCE)
