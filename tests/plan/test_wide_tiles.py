"""Sums over tiles by wide loads, shared in teams or not, where sizes allow it, as in float64."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import building as b
from shaderad.ir import nodes, ops, walk
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import DOUBLE, FLOAT, HALF, Type, Vector
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan
from shaderad.plan.steps import GROUPED, WIDE, RunTiles
from tests.array_check import array
from tests.launch_shapes import shape_of
from tests.plan.test_tiles import K, M, N, check_product_and_gradients, drawn, near, product

# -- which sizes --------------------------------------------------------------------------------


def kernel_at(graph: Graph, known: dict[str, int]) -> str:
    """The name of the kernel that computes the first sum over tiles."""
    steps = PlanChoices(known, shape=shape_of(lanes=8)).chosen(plan(graph)).steps
    tiles = next(step for step in steps if isinstance(step, RunTiles))
    assert tiles.wide is None
    return tiles.tiles.kernel.name


def graph_of(x: Value, y: Value, result: Value) -> Graph:
    return Graph((x, y), (result,))


def of_product(element: Type = FLOAT) -> Graph:
    x, y = array((N, K), element), array((K, M), element)
    return graph_of(x, y, product(x, y))


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ({"n": 5, "k": 128, "m": 16}, "wide_tiles"),
        ({"n": 8, "k": 126, "m": 16}, "wide_tiles"),
        ({"n": 8, "k": 8, "m": 18}, "tiles"),
        ({"n": 8, "k": 64, "m": 16}, "short_tiles"),
        ({"n": 8, "k": 0, "m": 0}, "short_tiles"),
        ({"n": 3, "k": 8, "m": 18}, "narrow_tiles"),
        ({"n": 8, "k": 8, "m": 3}, "narrow_tiles"),
        ({"n": 8, "k": 8}, "tiles"),
        ({}, "tiles"),
    ],
    ids=str,
)
def test_rows_of_the_right_matrix_have_to_be_multiples_of_four(
    sizes: dict[str, int], name: str
) -> None:
    assert kernel_at(of_product(), sizes) == name


@pytest.mark.parametrize("element", [HALF, DOUBLE])
def test_only_floats_are_loaded_by_four(element: Type) -> None:
    assert kernel_at(of_product(element), {"n": 8, "k": 8, "m": 16}) == "tiles"


def test_known_extents_decide_without_any_size() -> None:
    x, y = array((8, 12)), array((12, 16))
    assert kernel_at(graph_of(x, y, product(x, y)), {}) == "short_tiles"
    x, y = array((8, 12)), array((12, 15))
    assert kernel_at(graph_of(x, y, product(x, y)), {}) == "tiles"


@pytest.mark.parametrize(
    ("rows", "columns", "lanes", "team"),
    [(64, 64, 8, 8), (64, 64, 32, 8), (64, 64, 7, 4), (64, 64, 4, 4), (64, 64, 3, GROUPED),
     (64, 64, 1, GROUPED), (26, 28, 8, 8), (25, 32, 8, 4), (8, 64, 8, 4), (64, 16, 8, 4),
     (64, 40, 8, 4), (64, 4, 8, WIDE), (64, 20, 8, WIDE)],
)  # fmt: skip
def test_teams_share_loads_where_few_of_their_threads_are_idle(
    rows: int, columns: int, lanes: int, team: int
) -> None:
    (step,) = plan(of_product()).steps
    assert isinstance(step, RunTiles)
    assert step.wide is not None
    sizes = {"n": rows, "k": 8, "m": columns}
    assert PlanChoices(sizes, 1 << 14, shape_of(lanes=lanes)).tiles_kind(step.wide) == team


@pytest.mark.parametrize(
    ("workgroup", "group_bytes", "kind"),
    [(64, 2048, GROUPED), (64, 2047, WIDE), (128, 4096, GROUPED), (100, 16384, WIDE)],
)
def test_teams_share_in_memory_of_a_workgroup_where_they_and_their_loads_fit(
    workgroup: int, group_bytes: int, kind: int
) -> None:
    (step,) = plan(of_product()).steps
    assert isinstance(step, RunTiles)
    assert step.wide is not None
    sizes, shape = {"n": 64, "k": 8, "m": 64}, replace(shape_of(), workgroup=workgroup)
    assert PlanChoices(sizes, group_bytes, shape).tiles_kind(step.wide) == kind
    shape = replace(shape, shares_in_groups=False)
    assert PlanChoices(sizes, group_bytes, shape).tiles_kind(step.wide) == WIDE


def test_teams_of_eight_need_a_known_number_of_rows() -> None:
    x, y = array((N, 8)), array((8, 64))
    (step,) = plan(graph_of(x, y, product(x, y))).steps
    assert isinstance(step, RunTiles)
    assert step.wide is not None
    assert PlanChoices({}, shape=shape_of(lanes=8)).tiles_kind(step.wide) == 4
    assert PlanChoices({"n": 64}, shape=shape_of(lanes=8)).tiles_kind(step.wide) == 8


@pytest.mark.parametrize(
    ("elements", "columns", "team"), [(8, 64, 4), (8, 20, WIDE), (6, 64, 4), (8, 4, WIDE)]
)
def test_teams_share_the_row_of_a_vector_times_a_matrix(
    elements: int, columns: int, team: int
) -> None:
    x, y = array((1, elements)), array((elements, columns))
    (step,) = plan(graph_of(x, y, product(x, y))).steps
    assert isinstance(step, RunTiles)
    assert step.wide is not None
    assert PlanChoices({}, shape=shape_of(lanes=8)).tiles_kind(step.wide) == team
    in_turn = shape_of(lanes=8, is_parallel=False)
    (step,) = PlanChoices({}, shape=in_turn).chosen(plan(graph_of(x, y, product(x, y)))).steps
    assert isinstance(step, RunTiles)
    parts = walk.all_expressions(step.tiles.kernel.body)
    assert any(isinstance(e, nodes.OfTeam) for e in parts) == (team != WIDE and elements == 8)


def test_sums_of_columns_share_nothing() -> None:
    (step,) = plan(Graph((x := array((K, 64)),), (b.sum_over(x, (0,)),))).steps
    assert isinstance(step, RunTiles)
    assert step.wide is not None
    assert PlanChoices({"k": 8}, shape=shape_of(lanes=8)).tiles_kind(step.wide) == WIDE


# -- their values -------------------------------------------------------------------------------

# `test_tiles.py` has the sizes at which no kind of these runs.

SHAPES = [
    (16, 8, 16), (8, 4, 64), (4, 4, 4), (7, 8, 16), (13, 300, 32), (12, 16, 20), (36, 1024, 32),
    (4, 20000, 16), (1, 512, 64), (1, 4096, 4), (100, 64, 48), (0, 4, 16), (4, 0, 16), (4, 4, 0),
    (32, 4, 64), (29, 12, 28), (44, 300, 60), (64, 5000, 32), (64, 3, 64), (13, 301, 32),
    (36, 1021, 32), (1, 5001, 512), (33, 1, 32), (20, 23, 7),
]  # fmt: skip
"""Rows, elements and columns; at odd rows one gradient has no wide loads, at odd elements a thread
takes one of them at a time."""


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_their_gradients(
    shape: tuple[int, int, int], kind: int, device: sad.Device
) -> None:
    check_product_and_gradients(*shape)


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("is_left", [False, True], ids=["", "left"])
@pytest.mark.parametrize("is_right", [False, True], ids=["", "right"])
def test_products_of_transposed_matrices_and_batches(
    is_left: bool, is_right: bool, batch: tuple[int, ...], kind: int, device: sad.Device
) -> None:
    x, y = drawn((*batch, 28, 20), (*batch, 20, 32))
    left = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if is_left else x
    right = np.ascontiguousarray(np.swapaxes(y, -1, -2)) if is_right else y
    rank = len(batch)
    axes = (*range(rank), rank + 1, rank)

    def run(left: Any, right: Any) -> Any:
        first = sad.transpose(left, axes) if is_left else left
        return first @ (sad.transpose(right, axes) if is_right else right)

    near(sad.graph(run)(left, right), x, y)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_each_kind_runs_in_turn_at_the_same_sizes(kind: int, device: sad.Device) -> None:
    x, y = drawn((16, 8), (8, 32))
    asked: list[int] = []
    chosen = PlanChoices.tiles_kind

    def noted(*arguments: Any) -> int:
        asked.append(chosen(*arguments))
        return asked[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PlanChoices, "tiles_kind", noted)
        near(sad.array(x) @ y, x, y)
    assert set(asked) == {kind if device.capabilities.subgroup_size >= kind else WIDE}


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_an_axis_of_a_batch_may_be_the_last(kind: int, device: sad.Device) -> None:
    x, y = drawn((16, 20, 8), (20, 32, 8))
    found = sad.einsum("ikb,kjb->ijb", x, y).numpy()
    exact = np.einsum("ikb,kjb->ijb", x.astype(np.float64), y)
    np.testing.assert_allclose(found, exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_reads_behind_reshapes_and_slices(kind: int, device: sad.Device) -> None:
    x, y = drawn((6, 4, 20), (40, 20))

    flat = x.reshape(24, 20)

    def run(x: Any, y: Any) -> Any:
        return sad.reshape(x, (24, 20))[rows, inner] @ y[others, 4:20]

    for first in (0, 4, 3):
        rows, inner, others = slice(first, first + 16), slice(first, 16), slice(4, 20 - first)
        near(sad.graph(lambda x, y: run(x, y))(x, y), flat[rows, inner], y[others, 4:20])
    split = sad.graph(lambda x, y: sad.reshape(sad.transpose(x), (20, 24)) @ y[:24, :16])
    near(split(x, y), np.transpose(x).reshape(20, 24), y[:24, :16])


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_a_kernel_that_moves_reads_overlapping_windows(kind: int, device: sad.Device) -> None:
    x, w = drawn((8, 4, 19), (16, 4, 4))
    exact = np.zeros((8, 16, 16))
    for k in range(4):
        exact += np.einsum("bcn,oc->bon", x[:, :, k : k + 16].astype(np.float64), w[:, :, k])
    np.testing.assert_allclose(sad.conv(x, w).numpy(), exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_padding_is_not_read(kind: int, device: sad.Device) -> None:
    x, y = drawn((8, 16), (16, 16))
    zeros = np.zeros((4, 16), np.float32)
    padded = np.concatenate([zeros, x, zeros])

    def run(x: Any, y: Any) -> Any:
        return sad.concatenate([sad.zeros((4, 16)), x, sad.zeros((4, 16))]) @ y

    near(sad.graph(run)(x, y), padded, y)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_what_follows_a_product_is_part_of_its_kernel(kind: int, device: sad.Device) -> None:
    x, y, bias, mask = drawn((36, 600), (600, 32), (32,), (36, 32))

    def layer(x: Any, y: Any, bias: Any, mask: Any) -> Any:
        return sad.tanh(x @ y + bias) * mask

    exact = np.tanh(x.astype(np.float64) @ y + bias) * mask
    np.testing.assert_allclose(sad.graph(layer)(x, y, bias, mask).numpy(), exact, atol=5e-5)
    (square,) = drawn((16, 16))
    residual = sad.graph(lambda x: sad.max(x @ x + x, 0.0))(square)
    exact = np.maximum(square.astype(np.float64) @ square + square, 0)
    np.testing.assert_allclose(residual.numpy(), exact, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("columns", [16, 32, 30, 29])
@pytest.mark.parametrize("rows", [16, 21])
def test_results_with_rows_and_columns_that_are_no_multiples(
    rows: int, columns: int, kind: int, device: sad.Device
) -> None:
    x, y, bias, side, residual = drawn(
        (rows, 12), (columns, 12), (columns,), (rows, 1), (rows, columns)
    )

    def layer(x: Any, y: Any, bias: Any, side: Any, residual: Any) -> Any:
        total = x @ sad.transpose(y) + bias
        return sad.where(residual > 0.0, total, side) - residual

    total = x.astype(np.float64) @ y.T + bias
    exact = np.where(residual > 0, total, side) - residual
    found = sad.graph(layer)(x, y, bias, side, residual)
    np.testing.assert_allclose(found.numpy(), exact, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("start", [0, 4, 5])
def test_results_that_read_only_parts_of_an_array(
    start: int, kind: int, device: sad.Device
) -> None:
    x, y, bias, shift = drawn((32, 12), (12, 32), (20,), (32, 40))
    moved = slice(start, start + 32)

    def plain(x: Any, y: Any, shift: Any) -> Any:
        return x @ y + shift[:, moved]

    def padded(x: Any, y: Any, bias: Any, shift: Any) -> Any:
        return x @ y + sad.concatenate([sad.zeros((12,)), bias]) + shift[:, moved]

    exact = x.astype(np.float64) @ y + shift[:, moved]
    np.testing.assert_allclose(sad.graph(plain)(x, y, shift).numpy(), exact, atol=1e-5)
    exact += np.concatenate([np.zeros(12), bias])
    np.testing.assert_allclose(sad.graph(padded)(x, y, bias, shift).numpy(), exact, atol=1e-5)


def test_results_are_stored_by_four_where_their_rows_and_what_they_read_come_by_four() -> None:
    def stores(known: dict[str, int]) -> int:
        x, y, bias = array((N, 8)), array((M, 8)), array((M,))
        total = product(x, b.transpose(y, (1, 0)))
        finished = b.applied(ops.ADD, total, b.broadcast(bias, total.shape, (1,)))
        graph = Graph((x, y, bias), (finished,))
        (step,) = PlanChoices(known, shape=shape_of(lanes=8)).chosen(plan(graph)).steps
        assert isinstance(step, RunTiles)
        element = step.tiles.kernel.buffer("y0").type.element
        return 4 if element == Vector(FLOAT, 4) else 1

    assert stores({"n": 16, "m": 32}) == 4
    assert stores({"n": 15, "m": 32}) == 4
    assert stores({"n": 16, "m": 30}) == 1
    assert stores({"n": 16}) == 1


@pytest.mark.parametrize(("count", "squared"), [(8, "left"), (16, "right"), (64 * 4, "both")])
def test_a_function_of_one_read_is_computed_where_that_is_loaded(count: int, squared: str) -> None:
    x, y = array((64, 64)), array((64, 64))
    left = b.applied(ops.SQRT, x) if squared == "left" else x
    right = b.applied(ops.SQRT, y) if squared == "right" else y
    if squared == "both":
        spread = [b.broadcast(v, (64, 64, 64), axes) for v, axes in ((x, (0, 2)), (y, (1, 2)))]
        total = b.reduce(ops.ADD, b.applied(ops.SQRT, b.applied(ops.MUL, *spread)))
    else:
        total = product(left, right)
    (step,) = PlanChoices({}, shape=shape_of(lanes=8)).chosen(plan(graph_of(x, y, total))).steps
    assert isinstance(step, RunTiles)
    parts = {id(e): e for e in walk.all_expressions(step.tiles.kernel.body)}.values()
    assert sum(isinstance(e, nodes.Apply) and e.op is ops.SQRT for e in parts) == count


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_functions_of_the_matrices_of_a_product(kind: int, device: sad.Device) -> None:
    x, y = drawn((40, 12), (12, 32))

    def run(x: Any, y: Any) -> Any:
        return sad.relu(x) @ sad.exp(y), (0.5 * sad.relu(x) + x) @ y

    positive = np.maximum(x.astype(np.float64), 0)
    first, second = sad.graph(run)(x, y)
    np.testing.assert_allclose(first.numpy(), positive @ np.exp(y), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second.numpy(), (0.5 * positive + x) @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_distances_and_sums_of_columns(kind: int, device: sad.Device) -> None:
    p, q = drawn((40, 12), (32, 12))
    found = sad.graph(lambda p, q: sad.sum((p[:, None] - q[None, :]) ** 2.0, axis=2))(p, q)
    difference = p[:, None].astype(np.float64) - q[None, :]
    np.testing.assert_allclose(found.numpy(), (difference**2).sum(2), rtol=1e-5, atol=1e-6)
    for shape in (1000, 4), (20000, 16), (0, 8), (300, 100):
        (x,) = drawn(shape)
        near(sad.sum(sad.array(x), axis=0), np.ones(shape[0], np.float32), x)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_products_in_loops(kind: int, device: sad.Device) -> None:
    x, w = drawn((8, 32), (32, 32))
    w = 0.3 * w

    def run(x: Any, w: Any) -> Any:
        return sad.fori_loop(3, lambda _, h: sad.tanh(h @ w), x)

    def until(x: Any, w: Any) -> Any:
        def body(carry: Any) -> Any:
            return carry[0] + 1, sad.tanh(carry[1] @ w)

        return sad.while_loop(lambda carry: carry[0] < 3, body, (0, x), limit=9)[1]

    exact = x.astype(np.float64)
    for _ in range(3):
        exact = np.tanh(exact @ w)
    np.testing.assert_allclose(sad.graph(run)(x, w).numpy(), exact, atol=1e-5)
    np.testing.assert_allclose(sad.graph(until)(x, w).numpy(), exact, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_the_gradient_of_a_network(kind: int, device: sad.Device) -> None:
    shapes = (32, 16), (32, 4), (16, 32), (32,), (32, 16), (16,), (16, 4), (4,)

    def loss(points: Any, wanted: Any, *layers: Any) -> Any:
        hidden = sad.tanh(points @ layers[0] + layers[1])
        hidden = sad.tanh(hidden @ layers[2] + layers[3])
        miss = hidden @ layers[4] + layers[5] - wanted
        return sad.mean(miss * miss)

    sad.gradcheck(loss, *drawn(*shapes))


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_arrays_that_start_inside_of_a_buffer(kind: int, device: sad.Device) -> None:
    x, y = drawn((4, 8, 16), (16, 16))
    whole = sad.array(x)
    for k in range(4):
        near(sad.graph(lambda a, b: a @ b)(whole[k], y), x[k], y)


# -- builds -------------------------------------------------------------------------------------

SOURCE = """
from __future__ import annotations
import shaderad as sad

@sad.graph
def layer(x: sad.Array[float, "n", 32], w: sad.Array[float, 32, 16], bias: sad.Array[float, 16]):
    return sad.tanh(x @ w + bias)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    (folder / "model.py").write_text(SOURCE, encoding="utf-8")
    targets = ("spirv", "spirv-core", "hlsl", "wgsl", "metal")
    sad.build(folder / "model.py", folder / "out", targets=targets)
    return folder / "out"


@pytest.mark.gpu
def test_built_products_and_their_gradients(built: Path, device: sad.Device) -> None:
    x, w, bias, bar = drawn((20, 32), (32, 16), (16,), (20, 16))
    layer = sad.load(built).layer
    z, pullback = sad.vjp(layer, x, w, bias)
    exact = np.tanh(x.astype(np.float64) @ w + bias)
    np.testing.assert_allclose(z.numpy(), exact, atol=1e-5)
    x_bar, w_bar, bias_bar = pullback(bar)
    y_bar = bar * (1 - exact**2)
    np.testing.assert_allclose(x_bar.numpy(), y_bar @ w.T, atol=1e-5)
    np.testing.assert_allclose(w_bar.numpy(), x.T @ y_bar, atol=2e-5)
    np.testing.assert_allclose(bias_bar.numpy(), y_bar.sum(0), atol=1e-5)


def test_targets_without_subgroups_get_no_teams(built: Path) -> None:
    text = {path.suffix: path.read_text(encoding="utf-8", errors="replace")
            for path in built.rglob("*.wgsl")}  # fmt: skip
    assert "subgroup" not in text[".wgsl"]
