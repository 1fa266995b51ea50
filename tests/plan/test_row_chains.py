"""Several reductions of one row, and what depends on their totals, are one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunPass, RunRows, Step
from tests.devices import entered
from tests.launch_shapes import change_rows, shape_of

SHAPES = [(1, 1), (5, 256), (3, 7), (70, 36), (4, 1001), (2, 4096), (3, 8192), (2, 9000), (0, 5)]


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


def softmax(x: Any) -> Any:
    e = sad.exp(x - sad.max(x, axis=-1, keepdims=True))
    return e / sad.sum(e, axis=-1, keepdims=True)


def normalised(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - sad.mean(x, axis=-1, keepdims=True)
    variance = sad.mean(centred * centred, axis=-1, keepdims=True)
    return centred / sad.sqrt(variance + 1e-3) * gain + bias


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def steps_of(function: Any, *args: Any, group_bytes: int = 32768, **shape: Any) -> list[Step]:
    variant = sad.graph(function).bound(tuple(map(sad.array, args)), {}).variant
    known = {f"n{k}": extent for k, extent in enumerate(args[0].shape)}
    row = shape_of(**{"lanes": 32, **shape})
    choices = PlanChoices(known, group_bytes, row)
    return [*choices.chosen(plan(variant.graph, shape=row)).steps]


def weighted(function: Any) -> Any:
    return sad.grad(lambda x, w, *rest: sad.sum(function(x, *rest) * w))


# -- one kernel ---------------------------------------------------------------------------------


@pytest.mark.gpu
def test_gradients_are_one_kernel_too(parallel: sad.Device) -> None:
    x = drawn(4, 256)
    (step,) = steps_of(weighted(softmax), x, x)
    assert isinstance(step, RunRows)
    assert len(step.works[0].reads) == 2
    assert len(step.works[0].writes) == 1


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("columns", "shape", "count"),
    [(8192, {}, 1), (8200, {}, 3), (256, {"is_parallel": False}, 3)],
)
def test_rows_that_do_not_fit_are_read_again(
    columns: int, shape: dict[str, Any], count: int, parallel: sad.Device
) -> None:
    assert len(steps_of(softmax, drawn(4, columns), **shape)) == count


@pytest.mark.gpu
def test_totals_of_several_waves_need_group_memory(parallel: sad.Device) -> None:
    x = drawn(2, 4096)
    assert len(steps_of(softmax, x, group_bytes=63)) == 3
    assert len(steps_of(softmax, x, group_bytes=64)) == 1


@pytest.mark.gpu
def test_what_needs_other_rows_is_apart(parallel: sad.Device) -> None:
    def moved(x: Any) -> Any:
        share = x / sad.sum(x, axis=1, keepdims=True)
        return share + share[::-1]

    steps = steps_of(moved, drawn(4, 64))
    assert len(steps) > 1
    x = drawn(5, 64)
    share = x / x.astype(np.float64).sum(1, keepdims=True)
    np.testing.assert_allclose(sad.graph(moved)(x).numpy(), share + share[::-1], rtol=1e-3)


@pytest.mark.gpu
def test_totals_of_other_rows_are_apart(parallel: sad.Device) -> None:
    def mirrored(x: Any) -> Any:
        most = sad.max(x, axis=1)
        return sad.sum(x - most[:, None], axis=1) + most[::-1]

    x = drawn(5, 64)
    wide = x.astype(np.float64)
    exact = (wide - wide.max(1, keepdims=True)).sum(1) + wide.max(1)[::-1]
    np.testing.assert_allclose(sad.graph(mirrored)(x).numpy(), exact, rtol=1e-5)


@pytest.mark.gpu
def test_explain_names_the_links(parallel: sad.Device) -> None:
    text = sad.graph(softmax).explain(drawn(4, 64))
    assert "reduce by max, reduce by add of map_exp, map_divide over [4, 64], 8 threads" in text


# -- values -------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [{}, {"wave": 1}, {"workgroup": 12}, {"held_words": 4}], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_and_its_gradient(
    shape: tuple[int, int],
    layout: dict[str, Any],
    parallel: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change_rows(monkeypatch, **layout)
    x, w = drawn(*shape), drawn(*shape, seed=1)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True, initial=-np.inf))
    exact = e / e.sum(1, keepdims=True)
    slope = exact * (w - (exact * w).sum(1, keepdims=True))
    np.testing.assert_allclose(sad.graph(softmax)(x).numpy(), exact, rtol=1e-5, atol=1e-9)
    gradient = sad.graph(weighted(softmax))(x, w)
    np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-4, atol=2e-7)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 129), (5, 2048)], ids=str)
def test_normalisation_and_its_gradients(shape: tuple[int, ...], parallel: sad.Device) -> None:
    x, w = drawn(*shape), drawn(*shape, seed=1)
    gain, bias = drawn(shape[-1], seed=2), drawn(shape[-1], seed=3)

    def loss(x: Any, gain: Any, bias: Any) -> Any:
        return sad.sum(normalised(x, gain, bias) * w)

    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3)
    scaled = centred / deviation
    result = sad.graph(normalised)(x, gain, bias).numpy()
    np.testing.assert_allclose(result, scaled * gain + bias, rtol=1e-4, atol=1e-5)
    bar = w * gain
    inner = bar - bar.mean(-1, keepdims=True) - scaled * (bar * scaled).mean(-1, keepdims=True)
    others = tuple(range(len(shape) - 1))
    exact = inner / deviation, (w * scaled).sum(others), w.sum(others)
    gradients = sad.graph(sad.grad(loss, argnums=(0, 1, 2)))(x, gain, bias)
    for gradient, wanted in zip(gradients, exact, strict=True):
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-3, atol=2e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float64], ids=str)
@pytest.mark.parametrize("columns", [5, 64, 2050])
def test_types(dtype: Any, columns: int, parallel: sad.Device) -> None:
    x = np.random.default_rng(columns).integers(0, 4, (3, columns)).astype(dtype)

    def ranks(x: Any) -> Any:
        low = x - sad.min(x, axis=1, keepdims=True)
        return sad.max(low, axis=1), low * sad.max(low, axis=1, keepdims=True)

    low = x - x.min(1, keepdims=True)
    most, scaled = sad.graph(ranks)(x)
    np.testing.assert_array_equal(most.numpy(), low.max(1))
    np.testing.assert_array_equal(scaled.numpy(), low * low.max(1, keepdims=True))


@pytest.mark.gpu
def test_neighbours_in_a_row_and_values_that_others_need(parallel: sad.Device) -> None:
    def compared(x: Any) -> Any:
        share = x / sad.sum(x * x, axis=1, keepdims=True)
        steps = share[:, 1:] - share[:, :-1]
        return share, sad.max(steps, axis=1), sad.sum(share, axis=0)

    x = drawn(6, 40)
    share = x / (x.astype(np.float64) ** 2).sum(1, keepdims=True)
    wanted = share, (share[:, 1:] - share[:, :-1]).max(1), share.sum(0)
    for result, exact in zip(sad.graph(compared)(x), wanted, strict=True):
        np.testing.assert_allclose(result.numpy(), exact, rtol=1e-4, atol=1e-6)


# -- functions ----------------------------------------------------------------------------------


@sad.function
def after(first: float2, second: float2) -> float2:
    """The map ``x -> a x + b`` of `first`, then that of `second`."""
    return float2(first.x * second.x, first.y * second.x + second.y)


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [{}, {"wave": 1}, {"wave": 4, "workgroup": 64}], ids=str)
@pytest.mark.parametrize("length", [1, 3, 33, 64, 1000, 9001, 70_004])
def test_functions_fold_in_order(
    length: int,
    layout: dict[str, Any],
    parallel: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change_rows(monkeypatch, **layout)
    rng = np.random.default_rng(length)
    maps = np.stack(
        [rng.choice([1.0, -1.0, 0.5, 2.0], (2, length)), rng.integers(-2, 3, (2, length))], -1
    ).astype(np.float32)
    maps[..., 0] /= np.maximum(1, np.abs(maps[..., 0]))

    def composed(x: Any) -> Any:
        return sad.reduce(after, x, axis=1)

    exact = maps[:, 0].astype(np.float64)
    for k in range(1, length):
        a, b = maps[:, k, 0], maps[:, k, 1]
        exact = np.stack([exact[:, 0] * a, exact[:, 1] * a + b], -1)
    result = sad.graph(composed)(sad.array(maps, dtype=float2)).numpy()
    np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("columns", [1, 7, 256, 5000, 20_000])
def test_positions_of_extremes(columns: int, parallel: sad.Device) -> None:
    x = np.random.default_rng(columns).integers(0, 3, (4, columns)).astype(np.float32)
    x[1, : columns // 2] = np.nan
    x[2] = np.nan

    def extremes(x: Any) -> Any:
        return sad.argmax(x, axis=1), sad.argmin(x, axis=1)

    first = [np.where(np.isnan(x), side, x) for side in (-np.inf, np.inf)]
    most, least = sad.graph(extremes)(x)
    np.testing.assert_array_equal(most.numpy(), first[0].argmax(1))
    np.testing.assert_array_equal(least.numpy(), first[1].argmin(1))


@pytest.mark.gpu
def test_rows_of_functions_share_threads(parallel: sad.Device) -> None:
    steps = steps_of(lambda x: sad.argmax(x, axis=1), drawn(4, 256))
    assert not any(isinstance(step, RunPass) for step in steps)
