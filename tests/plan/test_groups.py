"""Loops that one workgroup runs give what a dispatch a step gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.compiler.artifact import Program
from shaderad.diagnostics import CompileError, error
from shaderad.execute import runner
from shaderad.plan.choices import PlanChoices
from shaderad.plan.planning import plan
from shaderad.runtime import Pipeline
from tests.launch_shapes import change_rows

Loop = Callable[..., Any]


def shifted(x: Any, s: Any) -> Any:
    """Reads the elements of other threads."""
    return sad.fori_loop(4, lambda _, p: sad.roll(p, 1) * s + sad.sin(x), x)


def two_carries(x: Any, s: Any) -> Any:
    def step(k: Any, carry: Any) -> Any:
        p, total = carry
        return sad.roll(p, 2) + s * total, sad.mean(p * p) + s

    return sad.fori_loop(5, step, (x, s))


def swapped(x: Any, s: Any) -> Any:
    """One value becomes both carries; the other is given on."""
    return sad.fori_loop(3, lambda _, c: (sad.roll(c[1], 1), sad.roll(c[1], 1) * s), (x, x * s))


def nested(x: Any, s: Any) -> Any:
    def outer(k: Any, p: Any) -> Any:
        q = sad.fori_loop(3, lambda _, q: sad.roll(q, 1) + 0.5 * p, sad.zeros(p.shape))
        return sad.sin(q) * s

    return sad.fori_loop(3, outer, x)


def rows(x: Any, s: Any) -> Any:
    """Reads a row an iteration, and keeps two."""
    xs = sad.reshape(sad.concatenate([x, 2.0 * x, x * x]), (3, -1))

    def step(p: Any, row: Any) -> Any:
        new = sad.roll(p, 1) * s + row
        return new, (sad.sum(new), p)

    return sad.loop(step, x, xs)


def gathered(x: Any, s: Any) -> Any:
    """Its reverse adds by index array."""
    n = x.shape[0]
    index = (sad.arange(n) * 3 + 1) % n

    def step(k: Any, p: Any) -> Any:
        return sad.gather(p, index) * s + x

    return sad.fori_loop(3, step, x)


def scanned(x: Any, s: Any) -> Any:
    return sad.fori_loop(3, lambda _, p: sad.cumsum(p) * s * 0.01 + sad.roll(x, 1), x)


def multiplied(x: Any, s: Any) -> Any:
    def step(_: Any, p: Any) -> Any:
        matrix = sad.sin(p[:, None] * x[None, :])
        return s * sad.mean(matrix * p[None, :], axis=1)

    return sad.fori_loop(3, step, x)


def extreme(x: Any, s: Any) -> Any:
    return sad.fori_loop(3, lambda _, p: sad.roll(p, 1) * sad.max(p) - sad.min(p) * s, x)


def product_of_all(x: Any, s: Any) -> Any:
    return sad.fori_loop(3, lambda _, p: sad.roll(p, 1) + s * sad.prod(1.0 + 0.01 * p), x)


def vectors(x: Any, s: Any) -> Any:
    def step(_: Any, v: Any) -> Any:
        return sad.map(turned, sad.roll(v, 1)) + sad.sum(v) * 0.001

    return sad.map(length, sad.fori_loop(4, step, sad.map(pair, x, x * s)))


@sad.function
def turned(v: float2) -> float2:
    return float2(sad.sin(v.y), v.x)


@sad.function
def length(v: float2) -> float:
    return sad.dot(v, v)


@sad.function
def pair(a: float, b: float) -> float2:
    return float2(a, b)


def matrix(x: Any, s: Any) -> Any:
    """Reports positions by two axes of a carry."""
    n = x.shape[0]
    index = (sad.arange(n) * 3 + 1) % n

    def step(_: Any, p: Any) -> Any:
        return sad.sin(p * s) + p[index, index][:, None]

    return sad.fori_loop(3, step, sad.zeros((n, 2 * n)) + x[:, None])


def weighted(x: Any, s: Any) -> Any:
    """Multiplies by rows and by columns of matrices that do not change."""
    n = x.shape[0]
    w = sad.sin(sad.arange(n)[:, None] * 1.3 + sad.arange(n)[None, :]) * 0.1

    def step(_: Any, p: Any) -> Any:
        return sad.tanh(sad.sum(w * p[None, :], axis=1)) + sad.sum(w * p[:, None], axis=0) * s

    return sad.fori_loop(3, step, x)


def recurrent(x: Any, s: Any) -> Any:
    """Multiplies a row and the carry by weights, which have a gradient."""
    n = x.shape[0]
    xs = sad.reshape(sad.concatenate([x, 2.0 * x, x * x]), (3, -1))
    w = sad.sin(sad.arange(2 * n)[:, None] * 1.3 + x[None, :]) * 0.3

    def step(h: Any, row: Any) -> Any:
        h = sad.tanh(sad.concatenate([row, h]) @ w + x)
        return h, h

    return sad.loop(step, x * s, xs)


LOOPS = [shifted, two_carries, swapped, nested, rows, gathered, scanned, multiplied, extreme,
         product_of_all, vectors, matrix, weighted, recurrent]  # fmt: skip


def results(loop: Loop, x: Any, s: Any) -> list[Any]:
    def loss(x: Any, s: Any) -> Any:
        leaves = sad.graph(loop)(x, s)
        leaves = leaves if isinstance(leaves, tuple) else (leaves,)
        total = sad.zeros(())
        for leaf in flat(leaves):
            total = total + sad.sum(sad.cos(leaf))
        return total

    values = flat((sad.graph(loop)(x, s),))
    found = sad.graph(sad.value_and_grad(loss, argnums=(0, 1)))(x, s)
    return [v.numpy() for v in (*values, *flat(found))]


def flat(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.gpu
@pytest.mark.sample(3)
@pytest.mark.parametrize("loop", LOOPS)
def test_one_workgroup_agrees_with_a_dispatch_a_step(
    device: sad.Device, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 300
    for n in (5, 1, limit):
        x = sad.array(np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32))
        s = sad.array(np.float32(0.7))
        in_group = results(loop, x, s)
        text = sad.graph(loop).explain(x, s)
        assert "of one workgroup" in text or n in (1, limit)
        change_rows(monkeypatch, loop_step_cost=-1)
        by_steps = results(loop, x, s)
        assert "of one workgroup" not in sad.graph(loop).explain(x, s)
        monkeypatch.undo()
        for one, other in zip(in_group, by_steps, strict=True):
            scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * scale)


@pytest.mark.gpu
def test_positions_out_of_range_are_reported(device: sad.Device) -> None:
    x, index = sad.array(np.arange(5, dtype=np.float32)), sad.array(np.array([1, 7, 0, 2, 3]))

    @sad.graph
    def f(x: Any, index: Any) -> Any:
        return sad.fori_loop(2, lambda _, p: sad.gather(p, index) + x, x)

    with pytest.raises(sad.BoundsError, match="index 7 is out of range for an array of length 5"):
        f(x, index).numpy()


def test_a_loop_that_takes_too_long_for_a_dispatch_is_one_of_dispatches() -> None:
    def swept(count: int) -> Any:
        return sad.graph(lambda x: sad.fori_loop(count, lambda _, p: sad.roll(p, 1) + x, x))

    x = sad.array(np.zeros(4096, np.float32))
    assert "of one workgroup" in swept(1000).explain(x)
    many = plan(swept(10**6).bound((x,), {}).variant.graph)
    assert PlanChoices({"n0": 4096}).decided(many).numbers[0] == 0
    assert PlanChoices({"n0": 5}).decided(many).numbers == (32, 5)


@pytest.mark.gpu
def test_kernels_of_many_sizes_are_one(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FIXED_LIMIT", 1)
    graph = sad.graph(lambda x: sad.fori_loop(2, lambda _, p: sad.roll(p, 1) * 0.5 + x, x))
    for n in (5, 6, 300):
        x = np.random.default_rng(n).uniform(-1, 1, n).astype(np.float32)
        p = x
        for _ in range(2):
            p = np.roll(p, 1) * np.float32(0.5) + x
        np.testing.assert_allclose(graph(sad.array(x)).numpy(), p, rtol=1e-6)
        assert "of one workgroup" in graph.explain(sad.array(x))


@pytest.mark.gpu
def test_a_loop_without_iterations_is_a_copy(device: sad.Device) -> None:
    graph = sad.graph(lambda x, xs: sad.loop(lambda p, row: (sad.roll(p, 1) + row, p), x, xs))
    x = sad.array(np.arange(3, dtype=np.float32))
    for count in (0, 2, 0):
        xs = sad.array(np.ones((count, 3), np.float32))
        last, kept = graph(x, xs)
        np.testing.assert_array_equal(last.numpy(), np.roll(np.arange(3), count) + count)
        assert kept.shape == (count, 3)
        assert ("copies" in graph.explain(x, xs)) == (count == 0)


@pytest.mark.gpu
def test_a_loop_that_the_driver_refuses_is_one_of_dispatches(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = device.runtime.pipeline

    def refused(program: Program) -> Pipeline:
        if program.name.startswith("loop_in_group"):
            raise error("SR0623", program=program.name, adapter="a driver", reason="too long")
        return made(program)

    monkeypatch.setattr(device.runtime, "pipeline", refused)
    graph = sad.graph(lambda x: sad.fori_loop(2, lambda _, p: sad.roll(p, 1) * 0.5 + x, x))
    for n in (5, 3):
        x = p = np.arange(n, dtype=np.float32)
        for _ in range(2):
            p = np.roll(p, 1) * np.float32(0.5) + x
        np.testing.assert_array_equal(graph(sad.array(x)).numpy(), p)
        assert "of one workgroup" not in graph.explain(sad.array(x))


@sad.kernel
def halved(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 0.0
    if x[i] > 0.0:  # a kernel without branches would join the steps around it
        y[i] = 0.5 * x[i]


@pytest.mark.gpu
def test_a_kernel_that_does_not_compile_beside_a_loop_is_compiled_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = device.runtime.pipeline
    programs: list[str] = []

    def refused(program: Program) -> Pipeline:
        programs.append(program.name)
        if program.name.startswith("halved"):
            raise error("SR0623", program=program.name, adapter="a driver", reason="too long")
        return made(program)

    monkeypatch.setattr(device.runtime, "pipeline", refused)
    graph = sad.graph(lambda x: sad.fori_loop(2, lambda _, p: sad.roll(p, 1) + x, halved(x)))
    with pytest.raises(CompileError, match="halved"):
        graph(sad.array(np.arange(5, dtype=np.float32)))
    assert len([name for name in programs if name.startswith("halved")]) == 1
