"""Kernels that read along another axis than they store go through tiles in group memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.execute import graph_plans
from shaderad.execute.plan_to_schedule import schedule
from shaderad.execute.schedule import Run, Schedule
from shaderad.ir import nodes
from shaderad.ir.types import Access
from shaderad.plan.steps import RunKernel
from tests.devices import entered
from tests.launch_shapes import change_rows
from tests.plan.test_row_chains import steps_of


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def turned(x: Any) -> Any:
    return x.T * 2.0


def symmetric(x: Any) -> Any:
    return x * x.T + x.T


def reversed_axes(x: Any) -> Any:
    return sad.transpose(x, (2, 1, 0))


def in_a_batch(x: Any) -> Any:
    return sad.transpose(x, (0, 2, 1))[:, ::-1]


def beside_a_choice(x: Any) -> Any:
    return sad.where(x.T > 0.0, x.T, 1.0)


def both(x: Any) -> Any:
    return x.T + 1.0, x.T * x.T


def in_numpy(function: Callable[[Any], Any], x: Any) -> Any:
    exact: dict[Callable[[Any], Any], Callable[[Any], Any]] = {
        turned: lambda x: 2 * x.T,
        symmetric: lambda x: x * x.T + x.T,
        reversed_axes: lambda x: x.transpose(2, 1, 0),
        in_a_batch: lambda x: x.transpose(0, 2, 1)[:, ::-1],
        beside_a_choice: lambda x: np.where(x.T > 0, x.T, 1),
        both: lambda x: (x.T + 1, x.T * x.T),
    }
    return exact[function](x)


CASES = [
    (turned, (64, 96)), (turned, (33, 100)), (turned, (1000, 37)), (turned, (31, 64)),
    (turned, (0, 64)), (turned, (32, 1)), (symmetric, (64, 64)), (symmetric, (77, 77)),
    (reversed_axes, (40, 3, 50)), (reversed_axes, (65, 2, 32)), (in_a_batch, (3, 40, 50)),
    (in_a_batch, (2, 64, 33)), (beside_a_choice, (40, 50)), (both, (64, 65)),
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [{}, {"workgroup": 64}, {"workgroup": 12}], ids=str)
@pytest.mark.parametrize(("function", "shape"), CASES)
def test_values_and_gradients(
    function: Callable[[Any], Any],
    shape: tuple[int, ...],
    layout: dict[str, Any],
    parallel: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change_rows(monkeypatch, **layout)
    x = drawn(*shape)
    results, exact = sad.graph(function)(x), in_numpy(function, x)
    several = isinstance(exact, tuple)
    pairs = zip(results, exact, strict=True) if several else [(results, exact)]
    for result, wanted in pairs:
        np.testing.assert_array_equal(result.numpy(), wanted)

    def loss(x: Any, *weights: Any) -> Any:
        values = function(x) if several else [function(x)]
        return sum(sad.sum(v * v * w) for v, w in zip(values, weights, strict=True))

    weights = [drawn(*np.shape(wanted)) for wanted in (exact if several else [exact])]
    gradient = sad.graph(sad.grad(loss))(x, *weights).numpy()
    wide, step = x.astype(np.float64), 1e-4
    direction = np.random.default_rng(1).choice([-1.0, 1.0], shape)

    def in_float64(x: Any) -> float:
        values = in_numpy(function, x) if several else [in_numpy(function, x)]
        return float(sum((v * v * w).sum() for v, w in zip(values, weights, strict=True)))

    slope = (in_float64(wide + step * direction) - in_float64(wide - step * direction)) / 2 / step
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=2e-3, atol=2e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float64, float3], ids=str)
def test_types(dtype: Any, parallel: sad.Device) -> None:
    def doubled(x: Any) -> Any:
        return x.T + x.T

    vectors = dtype is float3
    x = drawn(40, 50, 3) if vectors else np.arange(2000).reshape(40, 50).astype(dtype)
    result = sad.graph(doubled)(sad.array(x, dtype=float3) if vectors else x)
    np.testing.assert_array_equal(result.numpy(), 2 * x.swapaxes(0, 1))


@pytest.mark.gpu
def test_arrays_that_a_kernel_stores_whole_are_not_filled_first(
    parallel: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules: list[Schedule] = []

    def kept(*args: Any) -> Schedule:
        schedules.append(schedule(*args))
        return schedules[-1]

    monkeypatch.setattr(graph_plans, "schedule", kept)
    x = drawn(64, 96)
    np.testing.assert_array_equal(sad.graph(lambda x: x.T * 2.0)(x).numpy(), 2 * x.T)
    (only,) = schedules
    assert [type(instruction) for instruction in only.instructions] == [Run]


# -- structure ----------------------------------------------------------------------------------


def kernel_of(function: Any, *args: Any, **limits: Any) -> Any:
    (step,) = steps_of(function, *args, **limits)
    assert isinstance(step, RunKernel)
    return step.work.kernel


def has_tiles(kernel: nodes.Kernel) -> bool:
    return any(b.access is Access.GROUP for b in kernel.buffers)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "limits"),
    [
        ((31, 64), {}),
        ((64, 64), {"is_parallel": False}),
        ((64, 64), {"group_bytes": 32 * 33 * 4 - 1}),
    ],
)
def test_small_arrays_and_processors_need_no_tiles(
    shape: tuple[int, int], limits: dict[str, Any], parallel: sad.Device
) -> None:
    assert has_tiles(kernel_of(turned, drawn(64, 64)))
    assert not has_tiles(kernel_of(turned, drawn(*shape), **limits))


@pytest.mark.gpu
def test_what_lies_side_by_side_needs_no_tiles(parallel: sad.Device) -> None:
    def mirrored(x: Any) -> Any:
        return x[::-1] * x

    def below_zeros(x: Any) -> Any:
        # Elsewhere, the other side of a choice is out of range.
        return sad.concatenate([sad.zeros((1, 64)), x.T])

    assert not has_tiles(kernel_of(mirrored, drawn(64, 64)))
    assert not has_tiles(kernel_of(below_zeros, drawn(64, 64)))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (2, 1, 40)])
def test_an_axis_of_one_place_has_no_tiles(parallel: sad.Device, shape: tuple[int, ...]) -> None:
    """Every thread is at 0 along it, so kernels do not read the empty part before that."""
    axis = shape.index(1)

    @sad.graph
    def behind_nothing(x: Any, y: Any) -> Any:
        nothing = x[(*(slice(None),) * axis, slice(0, 0))]
        return sad.concatenate([nothing, y * 2.0], axis=axis)

    x, y = drawn(*shape), drawn(*shape)
    assert np.array_equal(behind_nothing(sad.array(x), sad.array(y)).numpy(), 2 * y)


def test_explain_names_the_tiles(parallel: sad.Device) -> None:
    assert "map_mul over [96, 64] by tiles of 32x32" in sad.graph(turned).explain(drawn(64, 96))
