"""A step that runs again makes no buffers, bindings or textures, and uploads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.device.devices import Device
from tests.launch_shapes import change_rows

pytestmark = pytest.mark.gpu

COLD_STEPS = 5
"""Steps after which buffers and bindings repeat."""
WARM_STEPS = 20
CREATIONS = {
    "new_native": "buffers",
    "record_write": "uploads",
    "new_texture": "textures",
    "record_texture_write": "uploads of textures",
    "_new_root": "root objects",
    "_bind_group": "bind groups",
}
"""What the methods of runtimes make."""

Step = Callable[[], Any]


def creations(step: Step, device: Device, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What warm steps make, without waits between them."""
    counts: Counter[str] = Counter()

    def counted(method: Callable[..., Any], noun: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            counts[noun] += 1
            return method(*args)

        return call

    for _ in range(COLD_STEPS):
        step()
    with monkeypatch.context() as patched:
        for name, noun in CREATIONS.items():
            if hasattr(device.runtime, name):
                method = getattr(device.runtime, name)
                patched.setattr(device.runtime, name, counted(method, noun))
        for _ in range(WARM_STEPS):
            step()
        device.synchronize()
    return counts


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i] * x[i]


def loss(line: Any, x: Any) -> Any:
    return sad.mean((line["slope"] * x + line["offset"] - x * x) ** 2)


def data(count: int = 1000) -> sad.Array:
    return sad.array(np.linspace(0.1, 1.0, count, dtype=np.float32))


def parameters() -> dict[str, sad.Array]:
    return {name: sad.array(np.float32(value)) for name, value in (("slope", 1), ("offset", 2))}


def pullback() -> Step:
    x = data()
    y = scaled(x, 2.0)

    def step() -> Any:
        _, pulled = sad.vjp(scaled, x, 2.0)
        return pulled(y)

    return step


def value_and_grad() -> Step:
    graph, line, x = sad.graph(sad.value_and_grad(loss)), parameters(), data()
    return lambda: graph(line, x)


def adam() -> Step:
    """Parameters and state alternate between buffers."""
    optimiser, x = sad.optim.Adam(0.01), data()
    line = parameters()
    state = [line, optimiser.init(line)]

    @sad.graph
    def descended(line: Any, state: Any, x: Any) -> Any:
        _, gradients = sad.value_and_grad(loss)(line, x)
        return optimiser.step(line, gradients, state)

    def step() -> None:
        state[:] = descended(*state, x)

    return step


def many_sizes() -> Step:
    """Arrays that exceed `SPARE_BYTES` together, while few are in use at one time."""
    sizes = [(5 << 20) + 64 * k for k in range(4)]
    return lambda: [sad.full(size, 1.0).shape for size in sizes]


@pytest.mark.parametrize("make", [pullback, value_and_grad, adam, many_sizes])
def test_a_warm_step_makes_nothing(
    make: Callable[[], Step], device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert creations(make(), device, monkeypatch) == {}


def test_rounds_of_a_loop_keep_their_words(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows(monkeypatch, loop_step_cost=-1)  # one dispatch for each round
    rows, x = sad.array(np.ones((12, 64), np.float32)), data(64)
    graph = sad.graph(lambda x, rows: sad.fori_loop(12, lambda k, p: sad.roll(p, 1) + rows[k], x))
    assert creations(lambda: graph(x, rows), device, monkeypatch) == {}


def test_slices_that_start_elsewhere_at_each_step_make_nothing(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, x, start = sad.graph(sad.value_and_grad(loss)), data(), [0]
    line = {"slope": data()[3:4].reshape(()), "offset": data()[5:6].reshape(())}

    def step() -> Any:
        start[0] = (start[0] + 7) % 900
        return graph(line, x[start[0] : start[0] + 64])

    assert creations(step, device, monkeypatch) == {}
    values = [(step(), start[0]) for _ in range(3)]
    for (value, gradient), first in values:
        part = x.numpy()[first : first + 64].astype(np.float64)
        slope, offset = (float(one) for one in line.values())
        miss = slope * part + offset - part * part
        np.testing.assert_allclose(value.numpy(), np.mean(miss**2), rtol=1e-5)
        np.testing.assert_allclose(gradient["slope"].numpy(), np.mean(2 * miss * part), rtol=1e-5)


def test_a_changed_number_costs_no_binding(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, number = data(), [0.0]

    def step() -> sad.Array:
        number[0] += 1.0
        return scaled(x, number[0])

    assert creations(step, device, monkeypatch) == {}
    np.testing.assert_allclose(step().numpy(), number[0] * x.numpy() ** 2, rtol=1e-6)
