"""Numbers of the host: they reach kernels as words, and memory only where a program reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, float4
from shaderad.diagnostics import ShapeError

X = np.float32([1.0, 2.0, 3.0, 4.0])


@contextmanager
def uploads_of(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of what is written to the device meanwhile."""
    sizes: list[int] = []
    write = device.runtime.record_write

    def noted(buffer: Any, offset: int, content: memoryview) -> None:
        sizes.append(content.nbytes)
        write(buffer, offset, content)

    with monkeypatch.context() as patch:
        patch.setattr(device.runtime, "record_write", noted)
        yield sizes


@sad.struct
class Lens:
    centre: float3
    gain: float


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], gain: float, shift: int, y: sad.Out[float]):
    y[i] = gain * x[(i + shift) % len(x)]


@sad.kernel
def shifted(i: sad.Index, x: sad.In[float], shift: int, y: sad.Out[float]):
    y[i] = x[i + shift]


def test_a_changing_number_of_a_graph_is_not_uploaded(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, x = sad.graph(lambda x, lr: x - lr * x), sad.array(X)
    graph(x, 0.5)
    with uploads_of(device, monkeypatch) as sizes:
        for lr in (0.1, 0.2, 0.4, -3.0):
            np.testing.assert_allclose(graph(x, lr), X - np.float32(lr) * X, rtol=1e-6)
    assert not sizes


def test_a_changing_number_of_a_kernel_is_not_uploaded(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, bar = sad.array(X), sad.array(np.ones(4, np.float32))
    sad.vjp(scaled, x, 2.0, 1, dim=4)[1](bar)
    with uploads_of(device, monkeypatch) as sizes:
        for gain, shift in ((0.5, 1), (3.0, 2), (-1.0, 0)):
            y, pullback = sad.vjp(scaled, x, gain, shift, dim=4)
            np.testing.assert_allclose(y, gain * np.roll(X, -shift), rtol=1e-6)
            by_x, by_gain, _ = pullback(bar)
            np.testing.assert_allclose(by_x, np.full(4, gain), rtol=1e-6)
            np.testing.assert_allclose(by_gain, X.sum(), rtol=1e-6)
    assert not sizes


def test_a_gradient_starts_from_a_one_that_is_kept(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradient, x = sad.value_and_grad(lambda x: sad.sum(x * x)), sad.array(X)
    gradient(x)
    with uploads_of(device, monkeypatch) as sizes:
        for _ in range(3):
            np.testing.assert_allclose(gradient(x)[1], 2.0 * X)
    assert not sizes


def test_adding_to_the_gradient_of_the_identity_changes_no_other(device: sad.Device) -> None:
    def identity(x: Any) -> Any:
        return x

    x = sad.array(2.0)
    first, second = sad.grad(identity)(x), sad.grad(identity)(x)
    sad.vjp(identity, x)[1](sad.array(5.0), accumulate=(first,))
    assert (first.item(), second.item(), sad.grad(identity)(x).item()) == (6.0, 1.0, 1.0)


def test_numbers_of_other_types_are_read_right(device: sad.Device) -> None:
    graph = sad.graph(lambda x, a: x * a)
    for a in (2.0, 3, 2.5, np.float32(0.25), np.int32(3), sad.array(1.5), -4):
        np.testing.assert_allclose(graph(X, a), X * np.asarray(a, np.float32), rtol=1e-6)


def test_numbers_that_programs_read_from_memory(device: sad.Device) -> None:
    for a in (1.5, -2.0):
        np.testing.assert_allclose(sad.graph(lambda a: a)(a), a)
        np.testing.assert_allclose(
            sad.graph(lambda a: sad.cumsum(sad.stack([a, a])))(a), [a, 2 * a]
        )
        looped = sad.graph(lambda a, x: sad.fori_loop(0, 3, lambda _, c: c * 2.0, a) + x)
        np.testing.assert_allclose(looped(a, X), 8 * a + X, rtol=1e-6)
        constant = sad.graph(lambda a, x: sad.fori_loop(0, 3, lambda _, c: c * a, x))
        np.testing.assert_allclose(constant(a, X), X * np.float32(a) ** 3, rtol=1e-6)
        gradient = sad.grad(sad.graph(lambda a, x: sad.sum(x * a * a)))
        np.testing.assert_allclose(gradient(a, X), 2 * a * X.sum(), rtol=1e-6)


def test_structs_of_the_host_are_read_at_each_call(device: sad.Device) -> None:
    @sad.graph
    def seen(x: sad.Array[float], lens: sad.Array[Lens, ()]) -> Any:
        return x * lens.gain + lens.centre.y

    lens, x = Lens(float3(0, 1, 2), 0.5), sad.array(X)
    for gain, height in ((0.5, 1.0), (2.0, -1.0), (2.0, 3.0)):
        lens.gain, lens.centre = gain, float3(0, height, 0)
        np.testing.assert_allclose(seen(x, lens), gain * X + height, rtol=1e-6)
    np.testing.assert_allclose(seen(x, sad.array([lens], dtype=Lens)[0]), 2.0 * X + 3.0)


@sad.kernel
def mixed(
    i: sad.Index,
    x: sad.In[float3],
    h: sad.half,
    v: float4,
    is_scaled: bool,
    y: sad.Out[float3],
):
    r = x[i] + float3(1.28, 1.0, float(h)) * v.w
    if is_scaled:
        r = r * 2.0
    y[i] = r


def test_constants_of_kernels_in_graphs_are_rounded_as_numbers_are(device: sad.Device) -> None:
    x, v = np.zeros((1, 3), np.float32), sad.array([1.5, 2.0, 3.0, 4.0], dtype=float4)
    expected = 2.0 * 4.0 * np.float32([1.28, 1.0, np.float16(1.28)])
    np.testing.assert_allclose(mixed(x, 1.28, v, True).numpy()[0], expected, rtol=1e-7)
    graph = sad.graph(lambda v: mixed(x, 1.28, v, True))
    np.testing.assert_allclose(graph(v).numpy()[0], expected, rtol=1e-7)
    by_v = sad.jacobian(lambda v: mixed(x, 1.28, v, True))(v).numpy()
    np.testing.assert_allclose(4.0 * by_v[0, :, 3], expected, rtol=1e-7)


def test_a_number_out_of_range_is_named(device: sad.Device) -> None:
    @sad.graph
    def graph(x: Any, count: int) -> Any:
        return x * count

    np.testing.assert_allclose(graph(X, 2), 2 * X)
    with pytest.raises(ShapeError, match="SR0354"):
        graph(X, 1 << 40)
    np.testing.assert_allclose(graph(X, 3), 3 * X)


def test_numbers_decide_which_indices_are_checked(device: sad.Device) -> None:
    for shift in (0, 1, 2, 0):
        found = shifted(X, shift, dim=4 - shift)
        np.testing.assert_array_equal(found, X[shift:])
    shifted(X, 2, dim=4)
    with pytest.raises(sad.BoundsError):
        device.synchronize()
    np.testing.assert_array_equal(shifted(X, 1, dim=3), X[1:])
    graph = sad.graph(lambda x: shifted(x, 2, dim=2) + shifted(x, 1, dim=2))
    np.testing.assert_array_equal(graph(X), X[2:] + X[1:3])
    outside = sad.graph(lambda x: shifted(x, 2, dim=3) * 1.0)
    outside(X)
    with pytest.raises(sad.BoundsError):
        device.synchronize()
