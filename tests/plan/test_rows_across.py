"""Sums of columns: adjacent threads have adjacent columns, and read adjacent elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.compiler.launch_shapes import AT_ONCE, TABLE
from shaderad.ir import sizes
from shaderad.plan.nest.row_work import RowSharing
from shaderad.plan.nest.teams import Team
from shaderad.plan.steps import RunRows
from tests.devices import entered
from tests.launch_shapes import change_rows
from tests.plan.test_row_chains import after, steps_of

SHORT_PARTS = replace(TABLE[AT_ONCE].rows, chunk_length=100)
SHAPES = [
    (5, 256), (1, 8), (3, 7), (1000, 36), (20_001, 16), (9, 1024), (300, 9), (4, 5, 16), (2, 3, 0),
    (0, 16), (100, 2, 30), (6, 1, 12),
]  # fmt: skip


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).integers(-8, 9, shape).astype(np.float32)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "sharing", "parts"),
    [
        ((1024, 256), RowSharing(Team(4, 1, 256, 64), rows=4, is_across=True), 16),
        ((200, 1024), RowSharing(Team(4, 1, 256, 64), rows=4, is_across=True), None),
        ((200, 31), RowSharing(Team(16, 1, 256, 16), rows=1, is_across=True), None),
        ((3, 64), RowSharing(Team(1, 1, 256, 16), rows=4, is_across=True), None),
        ((256, 4), RowSharing(Team(128, 32, 256), width=1), None),
    ],
)
@pytest.mark.parametrize("op", [sad.sum, sad.max])
def test_lanes_take_what_adjacent_rows_leave(
    op: Any, shape: tuple[int, int], sharing: RowSharing, parts: int | None, parallel: sad.Device
) -> None:
    def reduced(x: Any) -> Any:
        return op(x * x, axis=0)

    (step,) = steps_of(reduced, drawn(*shape))
    assert isinstance(step, RunRows)
    assert step.sharing == sharing
    assert len(step.works) == (1 if parts is None else 2)
    known = {"n0": shape[0], "n1": shape[1]}
    counts = [sizes.evaluate(totals.shape[-1], known) for totals in step.between]
    assert counts == ([] if parts is None else [parts])


@pytest.mark.gpu
def test_explain_says_how_many_rows_lie_side_by_side(parallel: sad.Device) -> None:
    text = sad.graph(lambda x: sad.sum(x, axis=0)).explain(drawn(1024, 256))
    assert "over [256, 1,024], 16 parts per row, 4 threads per part, 256 rows at once" in text


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [{}, {"workgroup": 12}, {"rows": SHORT_PARTS}], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_operators(
    shape: tuple[int, ...],
    layout: dict[str, Any],
    parallel: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change_rows(monkeypatch, **layout)
    x = drawn(*shape)
    axis = len(shape) - 2

    def reduced(x: Any) -> Any:
        most = sad.max(x, axis=axis) if shape[axis] else x
        return sad.sum(x, axis=axis), sad.sum(sad.where(x > 0, x, 1.0), axis=axis), most * 2.0

    wanted = x.sum(axis), np.where(x > 0, x, 1).sum(axis), 2 * (x.max(axis) if shape[axis] else x)
    for result, exact in zip(sad.graph(reduced)(x), wanted, strict=True):
        np.testing.assert_array_equal(result.numpy(), exact)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float64], ids=str)
@pytest.mark.parametrize("shape", [(7, 16), (600, 17)])
def test_types(dtype: Any, shape: tuple[int, int], parallel: sad.Device) -> None:
    x = (drawn(*shape) % 3).astype(dtype)
    total, most = sad.graph(lambda x: (sad.sum(x, axis=0), sad.max(x, axis=0)))(x)
    np.testing.assert_array_equal(total.numpy(), x.sum(0).astype(dtype))
    np.testing.assert_array_equal(most.numpy(), x.max(0))


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 33, 700])
def test_functions_fold_in_order(rows: int, parallel: sad.Device) -> None:
    rng = np.random.default_rng(rows)
    factors = rng.choice([1.0, -1.0], (rows, 40))
    maps = np.stack([factors, rng.integers(-2, 3, (rows, 40))], -1).astype(np.float32)
    exact = maps[0].astype(np.float64)
    for a, b in zip(maps[1:, :, 0], maps[1:, :, 1], strict=True):
        exact = np.stack([exact[:, 0] * a, exact[:, 1] * a + b], -1)

    def both(x: Any, y: Any) -> Any:
        return sad.reduce(after, x, axis=0), sad.argmax(y, axis=0)

    composed, place = sad.graph(both)(sad.array(maps, dtype=float2), maps[..., 0])
    np.testing.assert_array_equal(composed.numpy(), exact)
    np.testing.assert_array_equal(place.numpy(), maps[..., 0].argmax(0))


@pytest.mark.gpu
def test_gradients_are_those_of_float64(parallel: sad.Device) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, (300, 20)).astype(np.float32)
    shift = np.linspace(0.1, 1, 20, dtype=np.float32)

    def loss(x: Any, shift: Any) -> Any:
        spread = sad.mean(sad.exp(x * shift), axis=0)
        return sad.sum(spread * spread)

    wide, by = x.astype(np.float64), shift.astype(np.float64)
    e = np.exp(wide * by)
    bar = 2 * e.mean(0) * e / len(x)
    gradients = sad.graph(sad.grad(loss, argnums=(0, 1)))(x, shift)
    np.testing.assert_allclose(gradients[0].numpy(), bar * by, rtol=2e-5)
    np.testing.assert_allclose(gradients[1].numpy(), (bar * wide).sum(0), rtol=2e-5)
