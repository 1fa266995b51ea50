"""`checks=` in graphs, loops, batches, and derivatives of any order reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

GOOD, BAD = np.float32([1.0, 4.0]), np.float32([-1.0, 4.0])
ONCE, TWICE = np.int32([1, 0]), np.int32([0, 0])

Call = Callable[[Any], Any]
NAN = {"SR0666", "SR0667", "SR0668"}


@sad.kernel
def roots(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.sqrt(x[i])


@sad.kernel
def moved(i: sad.Index, j: sad.In[int], x: sad.In[float], y: sad.Out[float]):
    y[sad.unique(j[i])] = x[i] * x[i]


def everywhere(f: Call) -> dict[str, Call]:
    """`f`, called in each way."""

    def loss(x: Any) -> Any:
        return sad.sum(f(x))

    return {
        "call": f,
        "graph": sad.graph(lambda x: f(x)),
        "loop": lambda x: sad.fori_loop(1, lambda _, c: f(c), x),
        "while loop": lambda x: sad.while_loop(lambda c: c[1] > 3.0, lambda c: f(c) - 3.0, x, 9),
        "vmap": lambda x: sad.vmap(f)(sad.stack([GOOD, x])),
        "map": lambda x: sad.map(lambda a: f(sad.stack([a, a]))[0], x),
        "checkpoint": sad.grad(lambda x: sad.sum(sad.checkpoint(f)(x))),
        "grad": sad.grad(loss),
        "grad of a graph": sad.grad(sad.graph(lambda x: loss(x))),
        "graph of a grad": sad.graph(sad.grad(loss)),
        "grad of a loop": sad.grad(lambda x: sad.sum(sad.fori_loop(1, lambda _, c: f(c), x))),
        "batch of gradients": lambda x: sad.vmap(sad.grad(loss))(sad.stack([GOOD, x])),
        "jvp": lambda x: sad.jvp(f, (x,), (GOOD,)),
        "hvp": lambda x: sad.hvp(loss, (x,), (GOOD,)),
        "graph of an hvp": sad.graph(lambda x: sad.hvp(loss, (x,), (GOOD,))),
        "grad of a grad": sad.grad(lambda x: sad.sum(sad.grad(loss)(x))),
        "jacobian": sad.jacobian(f),
    }


def assert_reports(device: sad.Device, call: Call, x: Any, codes: set[str]) -> None:
    call(x)
    if not codes:
        device.synchronize()
        return
    with pytest.raises(sad.Error) as raised:
        device.synchronize()
    assert raised.value.code in codes


@pytest.mark.parametrize("way", everywhere(abs))
def test_nan_is_reported(device: sad.Device, way: str) -> None:
    call = everywhere(lambda x: roots(x, dim=2, checks="nan"))[way]
    assert_reports(device, call, GOOD, set())
    assert_reports(device, call, BAD, NAN)


@pytest.mark.parametrize("way", everywhere(abs))
def test_an_element_that_is_written_twice_is_reported(device: sad.Device, way: str) -> None:
    for index, codes in ((ONCE, set[str]()), (TWICE, {"SR0669"})):
        call = everywhere(lambda x, j=index: moved(j, x, dim=2, checks="writes"))[way]
        assert_reports(device, call, GOOD, codes)


def test_a_loop_reports_nothing_after_its_end(device: sad.Device) -> None:
    """The device runs iterations whose carries it discards."""

    @sad.kernel
    def read(i: sad.Index, x: sad.In[float], k: int, y: sad.Out[float]):
        assert k < 2, "k is below 2"
        y[i] = sad.sqrt(x[k])

    def summed(x: Any, last: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + 1, c[1] + sad.sum(read(x, c[0], dim=1, checks="nan"))

        return sad.while_loop(lambda c: c[0] < last, step, (0, 0.0), limit=5)[1]

    x = np.float32([1.0, 4.0, -1.0])
    for f in (summed, sad.graph(summed)):
        value, gradient = sad.value_and_grad(f)(x, 2)
        assert value.item() == 3.0
        np.testing.assert_allclose(gradient, [0.5, 0.25, 0.0])
        assert f(x, 0).item() == 0.0
        device.synchronize()
        f(x, 3)
        with pytest.raises(sad.BoundsError, match="k is below 2"):
            device.synchronize()


@sad.kernel
def misfit(i: sad.Index, w: sad.In[float], x: sad.In[float], loss: sad.Add[float]):
    d = w[0] * x[i] + w[1] - 2.0 * x[i] - 1.0
    loss[0] += d * d


def test_gradients_in_a_loop_are_those_outside(device: sad.Device) -> None:
    """Their kernels know whether the loop goes on, and sum over threads as outside."""
    x = np.float32(np.random.default_rng(0).uniform(-1, 1, 65))
    shapes, first = {"loss": (1,)}, np.float32([0.0, 0.0])

    def slope(w: Any, x: Any) -> Any:
        return sad.grad(lambda w: misfit(w, x, dim=x.shape, shapes=shapes)[0])(w)

    def fitted(x: Any, scale: Any) -> Any:
        def step(w: Any) -> Any:
            return w - scale * slope(w, x)

        return sad.while_loop(lambda w: w[0] < 1.5, step, first, limit=50)

    w, rate = first, 0.01
    while w[0] < 1.5:
        w = w - rate * slope(w, x).numpy()
    for f in (fitted, sad.graph(fitted)):
        np.testing.assert_allclose(f(x, rate), w, rtol=1e-5)
        by_rate = sad.grad(lambda r, f=f: sad.sum(f(x, r)))(rate).item()
        high, low = (f(x, r).numpy().sum() for r in (rate + 1e-5, rate - 1e-5))
        np.testing.assert_allclose(by_rate, (high - low) / 2e-5, rtol=2e-2)
    device.synchronize()
