"""Reductions whose threads share rows give what NumPy gives, whatever the layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, nodes, ops, walk
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.dags import variables
from shaderad.ir.types import FLOAT, Access, Vector
from shaderad.plan.choices import PlanChoices
from shaderad.plan.nest.row_work import RowSharing, RowWork, sharing_along
from shaderad.plan.nest.teams import Team
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunRows
from tests.devices import entered
from tests.launch_shapes import change_rows, shape_of

SHAPES = [(1, 1), (1, 8), (3, 7), (5, 12), (70, 16), (4, 256), (300, 5), (2, 2050), (3, 8192)]
LONG = [(2, 9001), (1, 70_004), (3, 20_000)]
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"wave": 1},
    {"wave": 4, "workgroup": 64},
    {"workgroup": 12},
]


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


def drawn(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.random.default_rng(shape).integers(-8, 9, shape).astype(dtype)


def rows_of(function: Any, *args: Any, shape: LaunchShape, **limits: int) -> list[RunRows]:
    """The steps whose threads share rows."""
    variant = sad.graph(function).bound(tuple(map(sad.array, args)), {}).variant
    known = {f"n{k}": extent for k, extent in enumerate(args[0].shape)}
    steps = PlanChoices(known, shape=shape, **limits).chosen(plan(variant.graph)).steps
    return [step for step in steps if isinstance(step, RunRows)]


# -- layouts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "width", "lanes", "expected"),
    [
        (1, 1, 32, RowSharing(Team(1, 1, 256), 1)),
        (256, 4, 32, RowSharing(Team(32, 32, 256), 4)),
        (256, 1, 32, RowSharing(Team(128, 32, 256), 1)),
        (4096, 4, 32, RowSharing(Team(256, 32, 256), 4)),
        (4096, 4, 1, RowSharing(Team(256, 1, 256), 4)),
    ],
)
def test_lanes_follow_from_the_length(
    length: int, width: int, lanes: int, expected: RowSharing
) -> None:
    assert sharing_along(length, width, shape_of(lanes=lanes), sum_of_rows(length)) == expected


def sum_of_rows(length: int) -> RowWork:
    x = Value(ArrayType(FLOAT, (3, length)))
    total = arrays.Reduce(operands=(x,), op=ops.ADD)
    return RowWork("input", (total,), total.results, ((), ()), frozenset(), frozenset([x]))


@pytest.mark.gpu
@pytest.mark.parametrize(("count", "is_by_four"), [(2, True), (20, False)])
def test_long_code_of_elements_is_written_once(
    count: int, is_by_four: bool, parallel: sad.Device
) -> None:
    def total(x: Any) -> Any:
        for _ in range(count):
            x = sad.sin(x)
        return sad.sum(x, axis=1)

    (step,) = rows_of(total, drawn((4, 64)), shape=shape_of(lanes=32), group_bytes=1024)
    (name, _), *_ = step.works[0].reads
    element = step.works[0].kernel.buffer(name).type.element
    assert isinstance(element, Vector) == is_by_four


@pytest.mark.gpu
def test_totals_of_waves_need_group_memory(parallel: sad.Device) -> None:
    def total(x: Any) -> Any:
        return sad.sum(x, axis=1)

    x, shape = drawn((2, 4096)), shape_of(lanes=32)
    for group_bytes, are_apart in ((31, True), (32, False)):
        (step,) = rows_of(total, x, shape=shape, group_bytes=group_bytes)
        assert isinstance(step.sharing, RowSharing)
        assert step.sharing.are_apart == are_apart


@pytest.mark.gpu
def test_groups_past_the_end_of_a_launch_stay_inside_of_group_memory() -> None:
    """A launch whose groups form several rows may have groups without threads.

    Their threads take the index of the last thread, from which no place in group memory follows.
    wgpu limits such places, so only slangpy shows a wrong one.
    """
    x = drawn((64, 256))

    def shares(x: Any) -> Any:
        return x - sad.sum(x, axis=1, keepdims=True)

    with entered("slangpy", {"kind": "discrete", "workgroup_count_limit": 3}):
        (step,) = rows_of(shares, x, shape=shape_of(lanes=8), group_bytes=1024)
        kernel = step.works[0].kernel
        places = [
            index
            for e in walk.all_expressions(kernel.body)
            if isinstance(e, nodes.Load) and kernel.buffer(e.buffer).access is Access.GROUP
            for index in e.indices
        ]
        assert places
        assert all(variables(place).isdisjoint(kernel.index_names) for place in places)
        result = sad.graph(shares)(x).numpy()
    np.testing.assert_array_equal(result, x - x.sum(1, keepdims=True))


@pytest.mark.gpu
def test_explain_says_how_threads_share_rows(parallel: sad.Device) -> None:
    graph = sad.graph(lambda x: sad.sum(x, axis=1))
    assert "over [4, 64], 8 threads per row" in graph.explain(drawn((4, 64)))
    assert "20,000], 5 parts per row, 256 threads per part" in graph.explain(drawn((2, 20_000)))


# -- values ---------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", [*SHAPES, *LONG], ids=str)
def test_all_operators(
    shape: tuple[int, int],
    layout: dict[str, Any],
    parallel: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if shape in LONG and layout:
        pytest.skip("parts have the layouts of rows")
    change_rows(monkeypatch, **layout)
    x = drawn(shape)

    def reduced(x: Any) -> Any:
        total, most = sad.sum(x, axis=1), sad.max(x, axis=1)
        return total, most * 2.0, sad.min(x, axis=1), sad.any(x > 7.5, axis=1), x - 1.0

    wanted = x.sum(1), 2 * x.max(1), x.min(1), (x > 7.5).any(1), x - 1
    for result, exact in zip(sad.graph(reduced)(x), wanted, strict=True):
        np.testing.assert_array_equal(result.numpy(), exact)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [5, 64, 2052, 12_000])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float16, np.float64])
def test_types(dtype: Any, length: int, parallel: sad.Device) -> None:
    x = drawn((3, length), np.int32) % 3
    result = sad.graph(lambda x: (sad.sum(x, axis=1), sad.max(x, axis=1)))(x.astype(dtype))
    np.testing.assert_array_equal(result[0].numpy(), x.sum(1).astype(dtype))
    np.testing.assert_array_equal(result[1].numpy(), x.max(1))


@pytest.mark.gpu
@pytest.mark.parametrize("length", [5, 2052, 12_000])
def test_vectors_and_an_init(length: int, parallel: sad.Device) -> None:
    x = drawn((length, 3))
    total = sad.graph(lambda v: sad.sum(v))(sad.array(x, dtype=float3))
    np.testing.assert_array_equal(total.numpy(), x.sum(0))
    started = sad.graph(lambda x: sad.sum(x, axis=0))(drawn((2, 3, length)))
    np.testing.assert_array_equal(started.numpy(), drawn((2, 3, length)).sum(0))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3, 64), (2, 9000)])
def test_gradients_are_those_of_float64(shape: tuple[int, int], parallel: sad.Device) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, shape).astype(np.float32)

    def loss(x: Any) -> Any:
        squares = sad.mean(x * x, axis=1)
        return sad.sum(sad.logsumexp(x, axis=1)) + sad.sum(squares * squares) + sad.max(x)

    wide = x.astype(np.float64)
    exact = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    exact += 4 * (wide * wide).mean(1, keepdims=True) * wide / shape[1]
    exact[np.unravel_index(x.argmax(), shape)] += 1
    gradient = sad.graph(sad.grad(loss))(x)
    np.testing.assert_allclose(gradient.numpy(), exact, rtol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [9001, 9003, 8193])
def test_parts_of_a_row_of_odd_length_in_a_longer_array(length: int, parallel: sad.Device) -> None:
    x = drawn((2**14,))
    total = sad.graph(lambda x: sad.sum(x[:length]))(x)
    assert float(total) == x[:length].sum()
