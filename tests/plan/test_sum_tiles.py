"""Sums over tiles: which tiles at which sizes, and their results as in float64."""

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
from shaderad.ir.types import DOUBLE, FLOAT, HALF, Access, Type, Vector
from shaderad.plan.choices import PlanChoices
from shaderad.plan.nest.sums.tiles import SumTile
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunTiles
from tests.array_check import array
from tests.launch_shapes import shape_of
from tests.plan.test_tiles import K, M, N, check_product_and_gradients, drawn, near, product

# -- which sizes --------------------------------------------------------------------------------


def step_at(graph: Graph, known: dict[str, int], **fields: Any) -> RunTiles:
    """The first sum over tiles at some sizes, on a device with these numbers."""
    shape = replace(shape_of(lanes=8), shares_in_groups=False, **fields)
    choices = PlanChoices(known, 1 << 15, shape)
    steps = choices.chosen(plan(graph, shape=shape)).steps
    return next(step for step in steps if isinstance(step, RunTiles))


def tile_at(graph: Graph, known: dict[str, int], **fields: Any) -> SumTile | None:
    """Its tile; `None` if its kernel is that for all sizes."""
    step = step_at(graph, known, **fields)
    return None if step.chosen is None else step.chosen.tile


def graph_of(x: Value, y: Value, result: Value) -> Graph:
    return Graph((x, y), (result,))


def of_product(element: Type = FLOAT) -> Graph:
    x, y = array((N, K), element), array((K, M), element)
    return graph_of(x, y, product(x, y))


@pytest.mark.parametrize(
    ("sizes", "held", "steps", "team"),
    [
        ({"n": 1024, "k": 64, "m": 1024}, (16, 4), 4, 8),
        ({"n": 1024, "k": 63, "m": 1024}, (16, 4), 1, 8),
        ({"n": 64, "k": 64, "m": 64}, (16, 4), 4, 8),
        ({"n": 5, "k": 128, "m": 16}, (5, 4), 4, 1),
        ({"n": 3, "k": 8, "m": 18}, (3, 4), 8, 1),
        ({"n": 1, "k": 512, "m": 512}, (1, 4), 4, 1),
    ],
    ids=str,
)
def test_tiles_are_as_large_as_the_results_and_registers_allow(
    sizes: dict[str, int], held: tuple[int, int], steps: int, team: int
) -> None:
    tile = tile_at(of_product(), sizes)
    assert tile is not None
    assert (tile.held, tile.steps, tile.team) == (held, (steps,), team)


def test_sizes_that_are_open_have_a_kernel_for_all_sizes() -> None:
    assert tile_at(of_product(), {}) is None
    assert tile_at(of_product(), {"n": 8, "k": 8}) is None
    assert tile_at(of_product(), {"n": 8, "k": 8, "m": 8}) is not None


@pytest.mark.parametrize(("element", "by_four"), [(FLOAT, 4), (HALF, 4), (DOUBLE, 1)])
def test_numbers_of_up_to_32_bits_are_loaded_by_four(element: Type, by_four: int) -> None:
    step = step_at(of_product(element), {"n": 64, "k": 64, "m": 64})
    kernel = step.works[0].kernel
    assert {b.type.element for b in kernel.buffers if b.access is Access.IN} == {
        Vector(element, 4) if by_four == 4 else element
    }


@pytest.mark.parametrize(
    ("rows", "columns", "teams", "team"),
    [(1024, 1024, (8, 4), 8), (1024, 1024, (4,), 4), (1024, 1024, (), 1), (1024, 4, (8, 4), 4),
     (1024, 3, (8, 4), 1), (5, 1024, (8, 4), 1)],
)  # fmt: skip
def test_teams_share_loads_where_few_of_their_threads_are_idle(
    rows: int, columns: int, teams: tuple[int, ...], team: int
) -> None:
    tile = tile_at(of_product(), {"n": rows, "k": 8, "m": columns}, lane_teams=teams)
    assert tile is not None
    assert tile.team == team


@pytest.mark.parametrize(
    ("sizes", "workgroup", "block"),
    [
        ((64, 8, 64), 64, (32, 32)),
        ((1024, 8, 1024), 64, (64, 64)),
        ((4096, 64, 4096), 256, (128, 128)),
        ((512, 64, 512), 256, (64, 64)),
        ((64, 9, 64), 64, None),
        ((20, 8, 64), 64, None),
        ((64, 8, 64), 96, None),
    ],
    ids=str,
)
def test_workgroups_share_loads_of_blocks(
    sizes: tuple[int, int, int], workgroup: int, block: tuple[int, int] | None
) -> None:
    known = dict(zip("nkm", sizes, strict=True))
    shape = replace(shape_of(), workgroup=workgroup)
    for group_bytes in (1 << 15, 256):
        choices = PlanChoices(known, group_bytes, shape)
        (step,) = choices.chosen(plan(of_product(), shape=shape)).steps
        assert isinstance(step, RunTiles)
        assert step.chosen is not None
        tile = step.chosen.tile
        is_grouped = block is not None and group_bytes > 256
        assert tile.is_grouped == is_grouped
        if is_grouped:
            assert (tile.block(0), tile.block(1)) == block


def test_sums_of_columns_share_nothing() -> None:
    graph = Graph((x := array((K, 64)),), (b.sum_over(x, (0,)),))
    tile = tile_at(graph, {"k": 8}, rows=replace(shape_of().rows, is_together=False))
    assert tile is not None
    assert (tile.held, tile.team) == ((4,), 1)


# -- their values -------------------------------------------------------------------------------

SHAPES = [
    (16, 8, 16), (8, 4, 64), (4, 4, 4), (7, 8, 16), (13, 300, 32), (12, 16, 20), (36, 1024, 32),
    (4, 20000, 16), (1, 512, 64), (1, 4096, 4), (100, 64, 48), (0, 4, 16), (4, 0, 16), (4, 4, 0),
    (32, 4, 64), (29, 12, 28), (44, 300, 60), (64, 5000, 32), (64, 3, 64), (13, 301, 32),
    (36, 1021, 32), (1, 5001, 512), (33, 1, 32), (20, 23, 7),
]  # fmt: skip
"""Rows, elements and columns; some are multiples of 4."""


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_their_gradients(
    shape: tuple[int, int, int], kind: str, device: sad.Device
) -> None:
    check_product_and_gradients(*shape)


@pytest.mark.gpu
@pytest.mark.sample(5)
@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("is_left", [False, True], ids=["", "left"])
@pytest.mark.parametrize("is_right", [False, True], ids=["", "right"])
def test_products_of_transposed_matrices_and_batches(
    is_left: bool, is_right: bool, batch: tuple[int, ...], kind: str, device: sad.Device
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
def test_an_axis_of_a_batch_may_be_the_last(kind: str, device: sad.Device) -> None:
    x, y = drawn((16, 20, 8), (20, 32, 8))
    found = sad.einsum("ikb,kjb->ijb", x, y).numpy()
    exact = np.einsum("ikb,kjb->ijb", x.astype(np.float64), y)
    np.testing.assert_allclose(found, exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["alone", "grouped", "eight"], indirect=True)
def test_an_axis_of_a_batch_may_have_one_element(kind: str, device: sad.Device) -> None:
    product = sad.graph(lambda x, y: sad.einsum("ikb,kjb->ijb", x, y))
    for batch, rows, columns in ((1, 64, 28), (28, 64, 1), (1, 1, 28), (3, 64, 28)):
        x, y = drawn((rows, 16, batch), (16, columns, batch))
        exact = np.einsum("ikb,kjb->ijb", x.astype(np.float64), y)
        np.testing.assert_allclose(product(x, y).numpy(), exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["alone", "grouped", "eight"], indirect=True)
def test_sums_over_several_axes(kind: str, device: sad.Device) -> None:
    product = sad.graph(lambda x, y: sad.einsum("bti,btj->ij", x, y))
    for batch, count, rows, columns in ((6, 48, 36, 64), (3, 7, 8, 8), (1, 64, 33, 31)):
        x, y = drawn((batch, count, rows), (batch, count, columns))
        exact = np.einsum("bti,btj->ij", x.astype(np.float64), y)
        np.testing.assert_allclose(product(x, y).numpy(), exact, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["alone", "eight"], indirect=True)
def test_one_graph_convolves_windows_of_several_lengths(kind: str, device: sad.Device) -> None:
    convolve = sad.graph(lambda x, w: sad.conv(x, w, padding="same"))
    for channels, outputs, length in ((20, 4, 3), (3, 4, 20), (1, 8, 7), (16, 16, 1), (2, 1, 17)):
        x, w = drawn((2, channels, 61), (outputs, channels, length))
        exact = np.zeros((2, outputs, 61))
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), ((length - 1) // 2, length // 2)))
        for k in range(length):
            exact += np.einsum("bcn,oc->bon", padded[:, :, k : k + 61], w[:, :, k])
        np.testing.assert_allclose(convolve(x, w).numpy(), exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_reads_behind_reshapes_and_slices(kind: str, device: sad.Device) -> None:
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
def test_a_kernel_that_moves_reads_overlapping_windows(kind: str, device: sad.Device) -> None:
    x, w = drawn((8, 4, 19), (16, 4, 4))
    exact = np.zeros((8, 16, 16))
    for k in range(4):
        exact += np.einsum("bcn,oc->bon", x[:, :, k : k + 16].astype(np.float64), w[:, :, k])
    np.testing.assert_allclose(sad.conv(x, w).numpy(), exact, atol=2e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_padding_is_not_read(kind: str, device: sad.Device) -> None:
    x, y = drawn((8, 16), (16, 16))
    zeros = np.zeros((4, 16), np.float32)
    padded = np.concatenate([zeros, x, zeros])

    def run(x: Any, y: Any) -> Any:
        return sad.concatenate([sad.zeros((4, 16)), x, sad.zeros((4, 16))]) @ y

    near(sad.graph(run)(x, y), padded, y)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_what_follows_a_product_is_part_of_its_kernel(kind: str, device: sad.Device) -> None:
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
    rows: int, columns: int, kind: str, device: sad.Device
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
    start: int, kind: str, device: sad.Device
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
        element = step_at(graph, known).works[-1].kernel.buffer("y0").type.element
        return 4 if element == Vector(FLOAT, 4) else 1

    assert stores({"n": 1000, "m": 1000}) == 4
    assert stores({"n": 1001, "m": 1000}) == 4
    assert stores({"n": 1000, "m": 1001}) == 1
    assert stores({"n": 1000}) == 1


@pytest.mark.parametrize(("count", "squared"), [(8, "left"), (16, "right"), (64 * 4, "both")])
def test_a_function_of_one_read_is_computed_where_that_is_loaded(count: int, squared: str) -> None:
    x, y = array((1024, 64)), array((64, 1024))
    left = b.applied(ops.SQRT, x) if squared == "left" else x
    right = b.applied(ops.SQRT, y) if squared == "right" else y
    if squared == "both":
        whole = (1024, 1024, 64)
        spread = [b.broadcast(v, whole, axes) for v, axes in ((x, (0, 2)), (y, (2, 1)))]
        total = b.reduce(ops.ADD, b.applied(ops.SQRT, b.applied(ops.MUL, *spread)))
    else:
        total = product(left, right)
    body = step_at(graph_of(x, y, total), {}).works[0].kernel.body
    parts = {id(e): e for e in walk.all_expressions(body)}.values()
    assert sum(isinstance(e, nodes.Apply) and e.op is ops.SQRT for e in parts) == count


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_functions_of_the_matrices_of_a_product(kind: str, device: sad.Device) -> None:
    x, y = drawn((40, 12), (12, 32))

    def run(x: Any, y: Any) -> Any:
        return sad.relu(x) @ sad.exp(y), (0.5 * sad.relu(x) + x) @ y

    positive = np.maximum(x.astype(np.float64), 0)
    first, second = sad.graph(run)(x, y)
    np.testing.assert_allclose(first.numpy(), positive @ np.exp(y), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second.numpy(), (0.5 * positive + x) @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_distances_and_sums_of_columns(kind: str, device: sad.Device) -> None:
    p, q = drawn((40, 12), (32, 12))
    found = sad.graph(lambda p, q: sad.sum((p[:, None] - q[None, :]) ** 2.0, axis=2))(p, q)
    difference = p[:, None].astype(np.float64) - q[None, :]
    np.testing.assert_allclose(found.numpy(), (difference**2).sum(2), rtol=1e-5, atol=1e-6)
    for shape in (1000, 4), (20000, 16), (0, 8), (300, 100):
        (x,) = drawn(shape)
        near(sad.sum(sad.array(x), axis=0), np.ones(shape[0], np.float32), x)


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_products_in_loops(kind: str, device: sad.Device) -> None:
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
def test_the_gradient_of_a_network(kind: str, device: sad.Device) -> None:
    shapes = (32, 16), (32, 4), (16, 32), (32,), (32, 16), (16,), (16, 4), (4,)

    def loss(points: Any, wanted: Any, *layers: Any) -> Any:
        hidden = sad.tanh(points @ layers[0] + layers[1])
        hidden = sad.tanh(hidden @ layers[2] + layers[3])
        miss = hidden @ layers[4] + layers[5] - wanted
        return sad.mean(miss * miss)

    sad.gradcheck(loss, *drawn(*shapes))


@pytest.mark.gpu
@pytest.mark.sample(5)
def test_arrays_that_start_inside_of_a_buffer(kind: str, device: sad.Device) -> None:
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
