"""Sums whose elements share reads run over tiles, on every runtime, as in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir import building as b
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import DOUBLE, FLOAT, HALF, INT, Type
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunTiles, Step
from shaderad.rules.arrays import vjp
from tests.array_check import array

N, M, K = (sizes.symbol(name) for name in "nmk")
SERIAL = 2e-6
"""Relative to the sum of absolute values: hundreds of float32 roundings partly cancel."""


def product(x: Value, y: Value) -> Value:
    """``sum_k x[..., m, k] * y[..., k, n]``."""
    *batch, rows, inner = x.shape
    shape = (*batch, rows, y.shape[-1], inner)
    rank = len(shape)
    left = b.broadcast(x, shape, (*range(rank - 3), rank - 3, rank - 1))
    columns = b.transpose(y, (*range(rank - 3), rank - 2, rank - 3))
    right = b.broadcast(columns, shape, (*range(rank - 3), rank - 2, rank - 1))
    return b.reduce(ops.ADD, b.applied(ops.MUL, left, right))


def steps_of(*outputs: Value) -> tuple[Step, ...]:
    inputs = [v for node in Graph((), outputs).nodes for v in node.operands if v.producer is None]
    return plan(Graph((*dict.fromkeys(inputs),), outputs)).steps


def kinds(*outputs: Value) -> list[str]:
    return [type(step).__name__ for step in steps_of(*outputs)]


# -- which sums ---------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [FLOAT, HALF, DOUBLE, INT])
def test_a_product_of_matrices_is_one_step(element: Type) -> None:
    assert kinds(product(array((N, K), element), array((K, M), element))) == ["RunTiles"]


def test_both_gradients_of_a_product_are_tiles_of_what_is_given() -> None:
    x, y = array((N, K)), array((K, M))
    back = vjp(Graph((x, y), (product(x, y),)), [True, True])
    steps = plan(Graph(back.inputs, back.outputs[1:])).steps
    tiles = [step for step in steps if isinstance(step, RunTiles)]
    assert [len(step.reads) for step in tiles] == [2, 2]
    assert {len(step.writes[0].shape) for step in tiles} == {2}


def test_what_is_repeated_for_two_readers_is_stored_at_its_own_size() -> None:
    x, y, t = array((N, K)), array((K, M)), array((N, M))
    bar = b.applied(ops.TANH, b.applied(ops.SIN, b.applied(ops.EXP, t)))
    repeated = b.broadcast(bar, (N, M, K), (0, 1))
    left = b.applied(ops.MUL, repeated, b.broadcast(y, (N, M, K), (2, 1)))
    right = b.applied(ops.MUL, repeated, b.broadcast(x, (N, M, K), (0, 2)))
    steps = plan(Graph((x, y, t), (b.sum_over(left, (1,)), b.sum_over(right, (0,))))).steps
    stored = [v.shape for step in steps for v in step.writes]
    assert set(stored) == {(N, M), (N, K), (M, K)}


def test_distances_between_points_are_tiles() -> None:
    p, q = array((N, K)), array((M, K))
    difference = b.applied(
        ops.SUB, b.broadcast(p, (N, M, K), (0, 2)), b.broadcast(q, (N, M, K), (1, 2))
    )
    assert kinds(b.reduce(ops.ADD, b.applied(ops.MUL, difference, difference))) == ["RunTiles"]


def test_sums_of_columns_are_tiles_and_sums_of_rows_are_not() -> None:
    x = array((N, M))
    assert kinds(b.sum_over(x, (0,))) == ["RunTiles"]
    assert kinds(b.sum_over(x, (1,))) == ["RunPass"]
    assert kinds(b.sum_over(x, (0, 1))) == ["RunPass"]


def test_rows_of_known_extents_are_no_windows() -> None:
    x = array((64, 32))
    assert kinds(b.sum_over(x, (1,))) == ["RunPass"]
    assert kinds(b.sum_over(b.applied(ops.MUL, x, x), (1,))) == ["RunPass"]


def test_other_operators_and_expensive_elements_are_not_tiles() -> None:
    x = b.broadcast(array((N, K)), (N, M, K), (0, 2))
    y = b.broadcast(array((M, K)), (N, M, K), (1, 2))
    assert kinds(b.reduce(ops.MAX, b.applied(ops.MUL, x, y))) == ["RunPass"]
    angle = b.applied(ops.SIN, b.applied(ops.COS, b.applied(ops.SIN, b.applied(ops.MUL, x, y))))
    assert kinds(b.reduce(ops.ADD, angle)) == ["RunPass"]


def test_work_on_a_product_alone_is_stored_in_its_place() -> None:
    z = product(array((N, K)), array((K, M)))
    assert kinds(b.applied(ops.TANH, z)) == ["RunTiles"]


def layer(x: Value, y: Value, bias: Value) -> Value:
    z = product(x, y)
    return b.applied(ops.ADD, z, b.broadcast(bias, z.shape, (1,)))


def test_a_bias_and_an_activation_are_stored_in_its_place() -> None:
    hidden = b.applied(ops.TANH, layer(array((N, K)), array((K, M)), array((M,))))
    assert kinds(hidden) == ["RunTiles"]


def test_what_reads_the_sum_twice_is_stored_in_its_place() -> None:
    z, residual = layer(array((N, K)), array((K, M)), array((M,))), array((N, M))
    positive = b.where(b.applied(ops.LE, z, b.zeros(z.type)), b.zeros(z.type), z)
    assert kinds(positive) == ["RunTiles"]
    assert kinds(b.applied(ops.ADD, positive, residual)) == ["RunTiles"]
    assert kinds(b.applied(ops.MUL, b.applied(ops.SIN, z), b.applied(ops.COS, z))) == ["RunTiles"]


def test_values_that_do_not_lead_to_one_are_computed_from_the_sum() -> None:
    z = product(array((N, K)), array((K, M)))
    assert kinds(b.applied(ops.SIN, z), b.applied(ops.COS, z)) == ["RunTiles", "RunKernel"]
    moved = b.reverse(b.applied(ops.COS, z))
    assert kinds(b.applied(ops.MUL, b.applied(ops.SIN, z), moved)) == ["RunTiles", "RunKernel"]


def test_a_result_with_two_readers_is_stored_itself() -> None:
    z = product(array((N, K)), array((K, M)))
    (shared,) = {len(s.writes) for s in steps_of(z, b.applied(ops.TANH, z))[:1]}
    assert shared == 1
    assert kinds(z, b.applied(ops.TANH, z)) == ["RunTiles", "RunKernel"]


def test_a_mask_that_is_computed_later_still_joins_its_product() -> None:
    late = b.applied(ops.ADD, product(array((N, K)), array((K, M))), array((N, M)))
    mask = layer(array((N, K)), array((K, M)), array((M,)))
    assert kinds(b.applied(ops.MUL, late, mask)) == ["RunTiles", "RunTiles"]


def test_what_every_result_reads_for_itself_is_no_tile() -> None:
    x = b.applied(ops.ADD, array((N, M, K)), b.broadcast(array((K,)), (N, M, K), (2,)))
    assert kinds(b.reduce(ops.ADD, x)) == ["RunPass"]


def without_tiles() -> Graph:
    """A sum that has tiles until the sum that it reads is stored with its bias."""
    x, y, bias, t = array((N, M)), array((M, K)), array((K,)), array((N, M))
    hidden = b.broadcast(layer(x, y, bias), (N, M, K), (0, 2))
    total = b.reduce(ops.ADD, hidden)
    return Graph((x, y, bias, t), (b.applied(ops.TANH, b.applied(ops.ADD, total, t)),))


def test_a_sum_that_loses_its_tiles_keeps_its_epilogue() -> None:
    steps = [type(step).__name__ for step in plan(without_tiles()).steps]
    assert steps == ["RunTiles", "RunPass"]


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0), (3, 2, 2)])
def test_extents_may_be_known_numbers(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    z = product(array((rows, inner)), array((inner, columns)))
    assert kinds(z) == ["RunTiles"]


def test_an_extent_of_one_is_no_axis_of_a_tile() -> None:
    assert kinds(product(array((1, K)), array((K, 1)))) == ["RunPass"]


# -- their values -------------------------------------------------------------------------------

SHAPES = [
    (512, 40, 33), (7, 5, 3), (8, 4, 4), (9, 1, 5), (1, 300, 17), (17, 300, 1), (1, 1, 1),
    (64, 7, 64), (3, 70000, 5), (2, 513, 2), (1, 4096, 9), (0, 4, 4), (4, 0, 4), (4, 4, 0),
    (33, 1024, 31),
]  # fmt: skip
"""Rows, elements and columns: remainders in every axis, long sums in parts, nothing."""


def near(found: Any, left: np.ndarray, right: np.ndarray, tolerance: float = SERIAL) -> None:
    exact = left.astype(np.float64) @ right.astype(np.float64)
    scale = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
    error = np.abs(found.numpy().astype(np.float64) - exact)
    assert found.shape == exact.shape
    assert (error <= tolerance * scale).all(), float((error / np.maximum(scale, 1e-30)).max())


def drawn(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    return [rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes]


def check_product_and_gradients(rows: int, inner: int, columns: int) -> None:
    x, y, bar = drawn((rows, inner), (inner, columns), (rows, columns))
    z, pullback = sad.vjp(lambda a, b: a @ b, x, y)
    near(z, x, y)
    x_bar, y_bar = pullback(bar)
    near(x_bar, bar, y.T)
    near(y_bar, x.T, bar)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_their_gradients_are_right_at_every_size(
    shape: tuple[int, int, int], device: sad.Device
) -> None:
    check_product_and_gradients(*shape)


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [(3,), (2, 3), (1, 1), (0,)])
def test_batches_of_products(batch: tuple[int, ...], device: sad.Device) -> None:
    x, y = drawn((*batch, 9, 20), (*batch, 20, 6))
    near(sad.array(x) @ y, x, y)
    near(sad.array(x) @ y[0], x, y[0]) if batch[0] else None
    (shared,) = drawn((20, 6))
    near(sad.array(x) @ shared, x, shared)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(sad.double, 1e-14), (sad.half, 1e-3), (int, 0.0)], ids=str
)
def test_products_of_other_numbers(dtype: Any, tolerance: float, device: sad.Device) -> None:
    if dtype is sad.double and "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    left, right = (sad.cast(9.0 * x, dtype) for x in drawn((19, 301), (301, 13)))
    found = left @ right
    assert found.dtype == dtype
    near(found, left.numpy(), right.numpy(), tolerance)


@pytest.mark.gpu
def test_a_sum_of_halves_is_as_good_as_one_of_floats(device: sad.Device) -> None:
    x, y = np.full((9, 4096), 1.0, np.float16), np.full((4096, 9), 0.1, np.float16)
    exact = 4096 * float(y[0, 0])
    found = (sad.array(x) @ y).numpy()
    np.testing.assert_allclose(found.astype(float), exact, rtol=5e-4)  # one rounding to half


@pytest.mark.gpu
def test_bias_and_activation_are_computed_from_the_sum(device: sad.Device) -> None:
    x, y, bias = drawn((37, 600), (600, 21), (21,))
    layer = sad.graph(lambda x, y, bias: sad.tanh(x @ y + bias))
    exact = np.tanh(x.astype(np.float64) @ y + bias)
    np.testing.assert_allclose(layer(x, y, bias).numpy(), exact, atol=5e-5)
    alone = sad.graph(lambda x, y: sad.tanh(x @ y))
    np.testing.assert_allclose(alone(x, y).numpy(), np.tanh(x.astype(float) @ y), atol=5e-5)


@pytest.mark.gpu
def test_the_gradient_of_a_small_network(device: sad.Device) -> None:
    shapes = (70, 2), (70, 3), (2, 9), (9,), (9, 5), (5,), (5, 3), (3,)

    def loss(points: Any, wanted: Any, *layers: Any) -> Any:
        hidden = sad.tanh(points @ layers[0] + layers[1])
        hidden = sad.max(hidden @ layers[2] + layers[3], 0.0)
        miss = hidden @ layers[4] + layers[5] - wanted
        return sad.mean(miss * miss)

    sad.gradcheck(loss, *drawn(*shapes))


@pytest.mark.gpu
def test_a_sum_that_has_lost_its_tiles_is_right(device: sad.Device) -> None:
    x, y, bias, t = drawn((7, 3), (3, 5), (5,), (7, 3))

    def run(x: Any, y: Any, bias: Any, t: Any) -> Any:
        hidden = x @ y + bias
        return sad.tanh(sad.sum(sad.broadcast_to(hidden[:, None], (7, 3, 5)), axis=2) + t)

    exact = np.tanh((x.astype(np.float64) @ y + bias).sum(1)[:, None] + t)
    np.testing.assert_allclose(sad.graph(run)(x, y, bias, t).numpy(), exact, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(("count", "dimensions"), [(1, 1), (70, 3), (300, 16)])
def test_distances_of_points_and_their_gradients(
    count: int, dimensions: int, device: sad.Device
) -> None:
    p, q, bar = drawn((count, dimensions), (11, dimensions), (count, 11))
    found, pullback = sad.vjp(lambda p, q: sad.sum((p[:, None] - q[None, :]) ** 2.0, axis=2), p, q)
    difference = p[:, None].astype(np.float64) - q[None, :]
    np.testing.assert_allclose(found.numpy(), (difference**2).sum(2), rtol=1e-5, atol=1e-6)
    p_bar, q_bar = pullback(bar)
    exact = 2 * bar[:, :, None] * difference
    np.testing.assert_allclose(p_bar.numpy(), exact.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q_bar.numpy(), -exact.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 3), (1000, 1), (70001, 6), (300, 257), (0, 5), (5, 0)]
)
def test_sums_of_columns(shape: tuple[int, int], device: sad.Device) -> None:
    (x,) = drawn(shape)
    found = sad.sum(sad.array(x), axis=0)
    near(found, np.ones(shape[0], np.float32), x)


@pytest.mark.gpu
def test_slices_and_strided_views_are_read_where_they_lie(device: sad.Device) -> None:
    x, y = drawn((20, 30), (40, 20))
    left, right = sad.array(x)[3:18:2, ::-1], sad.array(y)[5:35, 1::3]
    near(left @ right, x[3:18:2, ::-1], y[5:35, 1::3])


@pytest.mark.gpu
def test_second_derivatives_of_products(device: sad.Device) -> None:
    x, y = drawn((6, 5), (5, 7))

    def loss(x: Any, y: Any) -> Any:
        return sad.sum(sad.tanh(x @ y) @ sad.transpose(y))

    sad.gradcheck(loss, x, y)
    sad.gradcheck(sad.grad(loss, argnums=(0, 1)), x, y)


@pytest.mark.gpu
def test_products_in_loops(device: sad.Device) -> None:
    x, w = drawn((5, 9), (9, 9))
    w = 0.3 * w

    def run(x: Any, w: Any) -> Any:
        return sad.fori_loop(4, lambda _, h: sad.tanh(h @ w), x)

    exact = x.astype(np.float64)
    for _ in range(4):
        exact = np.tanh(exact @ w)
    np.testing.assert_allclose(sad.graph(run)(x, w).numpy(), exact, atol=1e-5)
    sad.gradcheck(run, x, w)
