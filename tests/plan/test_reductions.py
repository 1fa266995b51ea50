"""Reductions that share a pass, and what is stored with them, have the values they have alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered

SHAPES = [(1, 1), (3, 7), (0, 4), (300, 5), (2, 9001), (1, 70_003)]
"""Rows of a thread, of a group, in chunks; no rows."""
TOLERANCE = 1e-5
"""Of sums of positive numbers in float32, in blocks."""


@pytest.fixture(params=["software", "discrete"], scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def either(request: pytest.FixtureRequest, kind: str) -> Iterator[sad.Device]:
    """Devices whose threads take runs of elements, or every so many an element."""
    with entered(request.param, {"kind": kind}) as opened:
        yield opened


def drawn(shape: tuple[int, ...]) -> Any:
    """Numbers of which several are equal, the extremes among them."""
    return np.random.default_rng(shape).integers(1, 30, shape).astype(np.float32)


def together(x: Any) -> Any:
    return (
        sad.sum(x, axis=1),
        sad.min(x, axis=1),
        sad.max(x, axis=1),
        sad.argmin(x, axis=1),
        sad.any(x > 28.5, axis=1),
        sad.all(x > 1.5, axis=1),
    )


def by_numpy(x: Any) -> Any:
    return x.sum(1), x.min(1), x.max(1), x.argmin(1), (x > 28.5).any(1), (x > 1.5).all(1)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_operators_of_all_sorts(shape: tuple[int, int], either: sad.Device) -> None:
    x = drawn(shape)
    graph = sad.graph(together)
    if x.size != 1:
        assert ", 1 step\n" in str(graph.explain(x))
    for result, exact in zip(graph(x), by_numpy(x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(result.numpy(), exact, rtol=TOLERANCE)


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [0, 3])
def test_rows_of_nothing_give_neutral_elements(rows: int, either: sad.Device) -> None:
    x = sad.zeros((rows, 0))
    least, most, total = sad.graph(
        lambda x: (sad.min(x, axis=1), sad.max(x, axis=1), sad.sum(x, axis=1))
    )(x)
    np.testing.assert_array_equal(least.numpy(), np.full(rows, np.inf))
    np.testing.assert_array_equal(most.numpy(), np.full(rows, -np.inf))
    np.testing.assert_array_equal(total.numpy(), np.zeros(rows))


@pytest.mark.gpu
@pytest.mark.parametrize("length", [5, 1025, 9001])
def test_of_ties_the_first_wins_and_nan_never(length: int, either: sad.Device) -> None:
    x = np.full((2, length), 3.0, np.float32)
    x[0, 1::2] = -2.0
    x[0, 0] = x[1, length // 2] = np.nan
    least, at = sad.graph(lambda x: (sad.min(x, axis=1), sad.argmin(x, axis=1)))(x)
    np.testing.assert_array_equal(at.numpy(), [1, 0])
    np.testing.assert_array_equal(least.numpy(), sad.min(x, axis=1).numpy())


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_what_follows_by_row_is_stored_with_the_totals(
    shape: tuple[int, int], either: sad.Device
) -> None:
    x, y, scale = drawn(shape), drawn(shape[:1]) / 30, np.float32(0.5)

    def scaled(x: Any, y: Any, scale: Any) -> Any:
        total, most = sad.sum(x, axis=1), sad.max(x, axis=1)
        return (total * y + scale * most)[:, None], sad.tanh(y * most), total

    graph = sad.graph(scaled)
    (plain, bent, total) = graph(x, y, scale)
    wide, other = x.astype(np.float64), y.astype(np.float64)
    exact = wide.sum(1) * other + 0.5 * wide.max(1, initial=0.0)
    np.testing.assert_allclose(plain.numpy(), exact[:, None], rtol=TOLERANCE)
    np.testing.assert_allclose(bent.numpy(), np.tanh(other * wide.max(1)), rtol=TOLERANCE)
    np.testing.assert_allclose(total.numpy(), wide.sum(1), rtol=TOLERANCE)


def normalised(x: Any, w: Any) -> Any:
    """Moments, extremes and a root of the same elements, of two axes."""
    near = (x - sad.mean(x, axis=-1, keepdims=True)) / (sad.std(x, axis=-1, keepdims=True) + 0.1)
    return sad.sum(near * w) + sad.norm(x) * sad.max(x) + sad.logsumexp(x) - sad.min(x * w)


def exactly_normalised(x: Any, w: Any) -> Any:
    near = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 0.1)
    root = np.sqrt((x * x).sum())
    return (near * w).sum() + root * x.max() + np.log(np.exp(x).sum()) - (x * w).min()


@pytest.mark.gpu
@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", [(1, 2), (3, 7), (40, 33), (2, 9001)])
def test_gradients_are_those_of_differences_in_float64(
    shape: tuple[int, int], either: sad.Device
) -> None:
    rng = np.random.default_rng(shape)
    x, w = (rng.uniform(-1, 1, shape).astype(np.float32) for _ in range(2))
    _, (x_bar, w_bar) = sad.value_and_grad(sad.graph(normalised), argnums=(0, 1))(x, w)
    wide = [x.astype(np.float64), w.astype(np.float64)]
    for k, gradient in enumerate((x_bar, w_bar)):
        extremes = int(wide[0].argmax()), int((wide[0] * wide[1]).argmin())
        for place in (*extremes, *rng.integers(0, x.size, 5)):
            ends: list[float] = []
            for step in (1e-6, -1e-6):
                moved = [v.copy() for v in wide]
                moved[k].flat[place] += step
                ends.append(exactly_normalised(*moved))
            slope = (ends[0] - ends[1]) / 2e-6
            assert gradient.numpy().flat[place] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def compared(x: Any, y: Any) -> Any:
    """A loss of all elements; its cotangent has the axes of what it compares."""
    return sad.mean((sad.tanh(x) - y[None, :]) ** 2)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES)
def test_a_loss_and_its_cotangent_are_one_pass(shape: tuple[int, int], either: sad.Device) -> None:
    if not shape[0]:
        return
    x, y = drawn(shape) / 30, drawn(shape[1:]) / 30
    step = sad.graph(sad.value_and_grad(compared))
    value, x_bar = step(x, y)
    wide = np.tanh(x.astype(np.float64))
    miss = wide - y
    np.testing.assert_allclose(float(value), (miss**2).mean(), rtol=TOLERANCE)
    exact = 2 * miss * (1 - wide**2) / x.size
    np.testing.assert_allclose(x_bar.numpy(), exact, rtol=1e-3, atol=1e-6 / x.size)
    if x.size > 1:
        assert ", 1 step\n" in str(step.explain(x, y))


def descended(x: Any, loss: Callable[[Any], Any]) -> Any:
    value, x_bar = sad.value_and_grad(loss)(x)
    return x - value * x_bar / 64


CARRIED: dict[str, Callable[[Any], Any]] = {
    "sum, max": lambda x: x / sad.sum(x, axis=1, keepdims=True) + sad.max(x, axis=1, keepdims=True),
    "loss and cotangent": lambda x: descended(x, lambda x: sad.sum(sad.tanh(x) ** 2)),
    "argmin, min": lambda x: x - sad.min(x) + sad.cast(sad.argmin(x), float) / 64,
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", CARRIED)
def test_loops_in_one_workgroup_reduce_alike(name: str, device: sad.Device) -> None:
    x = drawn((5, 9)) / 30 + np.float32(0.1)
    body = CARRIED[name]
    looped = sad.graph(lambda x: sad.fori_loop(4, lambda _, x: body(x), x))
    assert "one workgroup" in str(looped.explain(x))
    again = sad.array(x)
    for _ in range(4):
        again = body(again)
    np.testing.assert_allclose(looped(x).numpy(), again.numpy(), rtol=TOLERANCE)
