"""Elementwise kernels whose threads compute four adjacent elements, where sizes allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.launch_shapes import PORTABLE
from shaderad.ir import nodes, sizes, walk
from shaderad.ir.types import Vector
from shaderad.plan.choices import PlanChoices
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.limits import NestLimits
from shaderad.plan.nest.vectors import quarter_of
from shaderad.plan.planning import plan
from shaderad.plan.positions import Position
from shaderad.plan.steps import RunKernel

Function = Callable[..., Any]


def kernels_of(
    function: Function, *args: np.ndarray, known: dict[str, int], **limits: int
) -> list[RunKernel]:
    """The elementwise kernels of a graph at some sizes."""
    graph = sad.graph(function).bound(tuple(map(sad.array, args)), {}).variant.graph
    steps = PlanChoices(known, **limits).chosen(plan(graph)).steps
    return [step for step in steps if isinstance(step, RunKernel)]


def accesses(step: RunKernel) -> tuple[int, int, int, int]:
    """Loads and stores of a thread: of four elements, of one, stores of four, of one."""
    kernel = step.work.kernel
    types = {b.name: b.type.element for b in kernel.buffers}
    loads = {e for e in walk.all_expressions(kernel.body) if isinstance(e, nodes.Load)}
    stores = [s for s in walk.statements(kernel.body) if isinstance(s, nodes.Store)]
    wide = sum(isinstance(types[load.buffer], Vector) for load in loads)
    stored = sum(isinstance(types[store.buffer], Vector) for store in stores)
    return wide, len(loads) - wide, stored, len(stores) - stored


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.1, 1, shape).astype(np.float32)


FLAT, ROWS = floats(8), floats(5, 8)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("function", "args", "known", "expected"),
    [
        (lambda x: x * x + 1.0, (FLAT,), {"n0": 8}, (1, 0, 1, 0)),
        (lambda x: x * x + 1.0, (floats(7),), {"n0": 7}, (0, 1, 0, 1)),
        (lambda x: x * x + 1.0, (FLAT,), {}, (0, 1, 0, 1)),
        # What all rows read is loaded by four, what a row reads once.
        (lambda x, y: x + y, (ROWS, FLAT), {"n0": 5, "n1": 8}, (2, 0, 1, 0)),
        (lambda x, y: x + y[:, None], (ROWS, floats(5)), {"n0": 5, "n1": 8}, (1, 1, 1, 0)),
        (lambda x: x[1:] + 0.5, (floats(9),), {"n0": 9}, (0, 4, 1, 0)),
        # Three of a four, and one of the next.
        (lambda x: x[1:9] + x[:8], (floats(12),), {"n0": 12}, (1, 1, 1, 0)),
        (lambda x: sad.reverse(x) + x, (FLAT,), {"n0": 8}, (2, 0, 1, 0)),
        # Nothing can be loaded by four: adjacent threads then load adjacent elements.
        (lambda x: sad.transpose(x) * 2.0, (floats(4, 8),), {"n0": 4, "n1": 8}, (0, 1, 0, 1)),
        (lambda x: sad.roll(x, 1) * sad.roll(x, 2), (FLAT,), {"n0": 8}, (0, 2, 0, 1)),
        # Beside a choice, positions may be out of range.
        (lambda x: sad.concatenate([x, x * 2.0]), (FLAT,), {"n0": 8}, (0, 8, 1, 0)),
    ],
)  # fmt: skip
def test_loads_and_stores_of_a_thread(
    function: Function,
    args: tuple[np.ndarray, ...],
    known: dict[str, int],
    expected: tuple[int, ...],
    device: sad.Device,
) -> None:
    (step,) = kernels_of(function, *args, known=known)
    assert accesses(step) == expected


@pytest.mark.gpu
def test_an_array_is_not_bound_twice_where_bindings_are_few(device: sad.Device) -> None:
    def shifted(x: Any) -> Any:
        return x[1:9] + x[:8]

    (step,) = kernels_of(shifted, floats(12), known={"n0": 12}, buffer_limit=4)
    assert accesses(step) == (1, 1, 1, 0)
    (step,) = kernels_of(shifted, floats(12), known={"n0": 12}, buffer_limit=3)
    assert accesses(step) == (0, 5, 1, 0)


def test_rows_of_iterations_are_loaded_by_four() -> None:
    k = sizes.symbol("k")
    at = Position(sizes.multiply(k, sizes.symbol("n")), ((0, 4),))
    quarter = quarter_of(at)
    assert quarter is not None
    choices = NestLimits({"n": 8}, 0, PORTABLE, 8)
    assert choices.are_multiples(quarter.multiples)
    assert not NestLimits({"n": 6}, 0, PORTABLE, 8).are_multiples(quarter.multiples)


# -- values and gradients -----------------------------------------------------------------------


def looked_up(x: Any, y: Any) -> Any:
    """Rows by an index array."""
    n = x.shape[0]
    return sad.gather(x, (sad.arange(n) * 3 + 1) % n) * y


def moved(x: Any, y: Any) -> Any:
    return sad.roll(x, 3, axis=1) * y + sad.reverse(x, axis=1)


def padded(x: Any, y: Any) -> Any:
    return sad.concatenate([x[:, 1:], y[:, :1]], axis=1) * x


def of_many_axes(x: Any, y: Any) -> Any:
    n, m = x.shape
    return sad.reshape(x, (n, 1, 1, 1, m)) * y[:, None, None, None, :] + y[0]


def strided(x: Any, y: Any) -> Any:
    return x[:, ::2] * y[:, 1::2]


def by_rows(x: Any, y: Any) -> Any:
    """Each iteration reads a row."""
    return sad.loop(lambda p, row: (sad.sin(p) + row, p * row), y[0], x)[1]


def turned(x: Any, y: Any) -> Any:
    return sad.transpose(x) * sad.reshape(y, y.shape[::-1])


FUNCTIONS = [looked_up, moved, padded, of_many_axes, strided, by_rows, turned]
SHAPES = [(4, 8), (3, 8), (8, 6), (5, 4), (1, 12), (4, 4), (1, 1), (0, 4), (3, 5)]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_are_those_of_single_elements(
    function: Function, shape: tuple[int, int], device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shape[1] % 2 and function is strided:
        pytest.skip("an odd column has no pair")
    if not shape[0] and function in (of_many_axes, by_rows):
        pytest.skip("there is no first row")
    x, y = floats(*shape, seed=1), floats(*shape, seed=2)

    def results() -> list[np.ndarray]:
        def loss(x: Any, y: Any) -> Any:
            return sad.sum(sad.sin(function(x, y)))

        value = sad.graph(lambda x, y: function(x, y))(sad.array(x), sad.array(y))
        grads = sad.graph(sad.grad(loss, argnums=(0, 1)))(sad.array(x), sad.array(y))
        return [value.numpy(), *(g.numpy() for g in grads)]

    by_four = results()
    monkeypatch.setattr(FourElements, "loads", None)
    for a, b in zip(by_four, results(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int32, np.uint32, np.bool_, np.float64]
)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_types_and_views(dtype: type, start: int, device: sad.Device) -> None:
    """The first element of a view may lie anywhere in its buffer."""
    whole = (np.arange(18) % 5).astype(dtype)
    view = sad.array(whole)[start : start + 16]
    seen = whole[start : start + 16]
    if dtype is np.bool_:
        np.testing.assert_array_equal(sad.where(view, 1.0, 2.0).numpy(), np.where(seen, 1.0, 2.0))
        return
    np.testing.assert_array_equal((view + view).numpy(), seen + seen)
    np.testing.assert_array_equal((view > view[::-1]).numpy(), seen > seen[::-1])
