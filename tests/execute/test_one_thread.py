"""Out arrays written at several indices by the one thread of a launch: their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.decorators import KernelFunction

pytestmark = pytest.mark.gpu

X = np.float32([1.5, -2.0, 0.5])
TWO = {"y": (2,)}


@sad.kernel
def products(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[0] = x[0] * x[1] * x[1]
    y[1] = x[1] * sad.sin(x[2])


@sad.kernel
def over_axes(r: sad.Index, c: sad.Index, x: sad.In[float], y: sad.Out[float, 2]):
    for k in sad.static_range(3):
        y[k, r + 1] = x[k] * x[k]
        y[k, 2 * c] = x[k] * x[0]


@sad.kernel
def by_component(i: sad.Index, x: sad.In[float], y: sad.Out[float2]):
    y[1].x = x[0] * x[1]
    y[1].y = x[1] * x[2]
    if x[0] > 0.0:
        y[0] = float2(x[2])


@sad.kernel
def twice(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[0] = x[0]
    y[1] = x[1]
    y[i] = x[2]


@sad.kernel
def by_data(i: sad.Index, x: sad.In[float], j: sad.In[int], y: sad.Out[float]):
    y[j[0]] = x[0]
    y[j[1]] = x[1]


@sad.kernel
def in_a_loop(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    for k in range(n):
        y[k % 2] = x[k]


def test_constant_indices_of_one_thread_have_a_gradient(device: sad.Device) -> None:
    sad.gradcheck(products, X, dim=1, shapes=TWO)
    sad.gradcheck(over_axes, X, dim=(1, 1), shapes={"y": (3, 2)})
    sad.gradcheck(by_component, X, dim=1, shapes=TWO)
    sad.gradcheck(by_component, -X, dim=1, shapes=TWO)


def test_second_derivatives_of_one_thread(device: sad.Device) -> None:
    def loss(x: sad.Array) -> sad.Array:
        y = products(x, dim=1, shapes=TWO)
        return sad.sum(y * y)

    direction = np.float32([0.5, 1.0, -2.0])
    found = sad.hvp(loss, (X,), (direction,)).numpy()
    step = 1e-2
    plus, minus = (sad.grad(loss)(X + s * direction).numpy() for s in (step, -step))
    np.testing.assert_allclose(found, (plus - minus) / (2 * step), rtol=1e-2, atol=1e-2)


def test_one_thread_inside_of_a_graph(device: sad.Device) -> None:
    @sad.graph
    def loss(x: sad.Array) -> sad.Array:
        return sad.sum(products(x, dim=1, shapes=TWO) ** 2)

    (expected,) = sad.vjp(products, X, dim=1, shapes=TWO)[1](
        2.0 * products(X, dim=1, shapes=TWO).numpy()
    )
    np.testing.assert_allclose(sad.grad(loss)(X).numpy(), expected.numpy(), rtol=1e-5)

    @sad.graph
    def by_size(x: sad.Array, like: sad.Array) -> sad.Array:
        return sad.sum(products(x, dim=like.shape[0], shapes=TWO) ** 2)

    one, several = np.zeros(1, np.float32), np.zeros(4, np.float32)
    for _ in range(2):
        np.testing.assert_allclose(sad.grad(by_size)(X, one).numpy(), expected.numpy(), rtol=1e-5)
        with pytest.raises(sad.DerivativeError, match="SR0414"):
            sad.grad(by_size)(X, several).numpy()


def test_more_threads_are_refused_whatever_ran_before(device: sad.Device) -> None:
    bar = np.ones(2, np.float32)
    for _ in range(2):
        (found,) = sad.vjp(products, X, dim=1, shapes=TWO)[1](bar)
        assert found.shape == (3,)
        for dim in (2, 65):
            with pytest.raises(sad.DerivativeError, match="SR0414"):
                sad.vjp(products, X, dim=dim, shapes=TWO)[1](bar)
            with pytest.raises(sad.DerivativeError, match="SR0414"):
                sad.jvp(products, (X,), (X,), dim=dim, shapes=TWO)
        for dim in ((1, 2), (2, 1)):
            with pytest.raises(sad.DerivativeError, match="SR0414"):
                sad.jvp(over_axes, (X,), (X,), dim=dim, shapes={"y": (3, 5)})


@pytest.mark.parametrize("kernel", [twice, by_data, in_a_loop], ids=lambda k: k.name)
def test_indices_of_one_thread_that_may_repeat_are_refused(
    kernel: KernelFunction, device: sad.Device
) -> None:
    others = {"twice": (), "by_data": ([0, 0],), "in_a_loop": (3,)}[kernel.name]
    with pytest.raises(sad.DerivativeError, match="SR0414"):
        sad.vjp(kernel, X, *others, dim=1, shapes=TWO)[1](np.ones(2, np.float32))


def test_a_launch_of_no_thread_has_gradients_of_zero(device: sad.Device) -> None:
    (found,) = sad.vjp(products, X, dim=0, shapes=TWO)[1](np.ones(2, np.float32))
    np.testing.assert_array_equal(found.numpy(), np.zeros(3))
