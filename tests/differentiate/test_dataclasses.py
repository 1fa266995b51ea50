"""Dataclasses that hold arrays are containers, as dicts are; others are settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.usefixtures("device")


@dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


@dataclass
class Network:
    layers: list[Layer]
    scale: float = 2.0
    name: str = "net"
    tags: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Settings:
    power: int = 2
    shift: float = 0.5


def network() -> Network:
    return Network([Layer(sad.array([1.0, 2.0]), sad.array([0.5, -0.5])),
                    Layer(sad.array([3.0, -1.0]), sad.array(0.25))])  # fmt: skip


def output(net: Network, x: Any) -> Any:
    for layer in net.layers:
        x = layer.weight * x + layer.bias
    return net.scale * x


def loss(net: Network, x: Any) -> Any:
    return sad.sum(output(net, x) ** 2)


X = np.array([0.5, -1.5], np.float32)


def expected() -> dict[str, np.ndarray]:
    (a, b), (c, d) = (np.array([1.0, 2.0]), np.array([0.5, -0.5])), (np.array([3.0, -1.0]), 0.25)
    inner = a * X + b
    bar = 2.0 * 2.0 * (2.0 * (c * inner + d))
    return {"c": bar * inner, "d": bar.sum(), "a": bar * c * X, "b": bar * c,
            "scale": (2.0 * 2.0 * (c * inner + d) ** 2).sum()}  # fmt: skip


def check_gradient(gradient: Network, *, has_scale: bool = True) -> None:
    want = expected()
    assert isinstance(gradient, Network)
    first, second = gradient.layers
    assert isinstance(first, Layer)
    got = {"a": first.weight, "b": first.bias, "c": second.weight, "d": second.bias}
    if has_scale:
        got["scale"] = gradient.scale
    for name, array in got.items():
        np.testing.assert_allclose(array.numpy(), want[name], rtol=1e-5, err_msg=name)


def test_gradients_have_the_form_of_the_argument() -> None:
    check_gradient(sad.grad(loss)(network(), X))
    check_gradient(sad.vjp(loss, network(), X)[1](1.0)[0])
    check_gradient(sad.graph(sad.grad(loss))(network(), X))


def test_tangents_are_taken_in_the_form_of_the_argument() -> None:
    _, dot = sad.jvp(loss, (network(), X), (network(), None))
    want = expected()
    layers = [want["a"] @ [1.0, 2.0], want["b"] @ [0.5, -0.5], want["c"] @ [3.0, -1.0]]
    np.testing.assert_allclose(dot.numpy(), sum(layers) + 0.25 * want["d"] + 2.0 * want["scale"],
                               rtol=1e-5)  # fmt: skip
    fields = {"layers": None, "scale": 1.0, "name": None, "tags": None}
    _, dot = sad.jvp(loss, (network(), X), (fields, None))
    np.testing.assert_allclose(dot.numpy(), want["scale"], rtol=1e-5)


def test_derivatives_are_those_of_differences() -> None:
    sad.gradcheck(loss, network(), X)


def test_graphs_take_and_return_them() -> None:
    @sad.graph
    def moved(layer: Layer, x: Any) -> Layer:
        return Layer(layer.weight + x, 2.0 * layer.bias)

    first = moved(Layer(sad.array([1.0, 2.0]), sad.array([3.0, 4.0])), X)
    again = moved(first, X)
    assert isinstance(again, Layer)
    np.testing.assert_allclose(again.weight.numpy(), [2.0, -1.0])
    np.testing.assert_allclose(again.bias.numpy(), [12.0, 16.0])


def test_loops_carry_them() -> None:
    def step(k: Any, layer: Layer) -> Layer:
        return Layer(layer.weight * layer.bias, layer.bias)

    def run(layer: Layer) -> Any:
        return sad.sum(sad.fori_loop(3, step, layer).weight)

    layer = Layer(sad.array([1.0, 2.0]), sad.array([3.0, 0.5]))
    gradient = sad.grad(run)(layer)
    np.testing.assert_allclose(gradient.weight.numpy(), [27.0, 0.125])
    np.testing.assert_allclose(gradient.bias.numpy(), [27.0, 1.5])


def test_vmap_takes_axes_in_their_form() -> None:
    layer = Layer(sad.array([[1.0, 2.0], [3.0, 4.0]]), sad.array([0.5, 1.5]))
    axes = Layer(0, None)

    def moved(own: Layer, x: Any) -> Any:
        return own.weight * x + own.bias

    y = sad.vmap(moved, in_axes=(axes, None))(layer, X)
    np.testing.assert_allclose(y.numpy(), [[1.0, -1.5], [2.0, -4.5]])


def test_optimisers_take_them() -> None:
    params = Layer(sad.array([1.0, 2.0]), sad.array([3.0, 4.0]))
    optimiser = sad.optim.SGD(0.5)
    state = optimiser.init(params)
    gradient = Layer(sad.array([2.0, 2.0]), sad.array([4.0, 4.0]))
    moved, _ = optimiser.step(params, gradient, state)
    assert isinstance(moved, Layer)
    np.testing.assert_allclose(moved.weight.numpy(), [0.0, 1.0])
    np.testing.assert_allclose(moved.bias.numpy(), [1.0, 2.0])


def test_a_dataclass_without_arrays_is_a_setting() -> None:
    @sad.graph
    def shifted(x: Any, settings: Settings) -> Any:
        for _ in range(settings.power):
            x = x + settings.shift
        return x

    np.testing.assert_allclose(shifted(X, Settings()).numpy(), X + 1.0)
    np.testing.assert_allclose(shifted(X, Settings()).numpy(), X + 1.0)
    np.testing.assert_allclose(shifted(X, Settings(power=4)).numpy(), X + 2.0)


class Holder:
    def __init__(self, weight: Any) -> None:
        self.weight = weight


def held(x: Any) -> Holder:
    return Holder(2.0 * x)


@pytest.mark.parametrize("tangent", [Settings(), 1.0])
def test_a_tangent_of_a_setting_is_refused(tangent: Any) -> None:
    def f(settings: Settings, x: Any) -> Any:
        return sad.sum(x * settings.shift)

    with pytest.raises(sad.DerivativeError, match=r"SR0482.*of type `Settings`"):
        sad.jvp(f, (Settings(), X), (tangent, X))


def test_a_tangent_of_an_int_is_refused() -> None:
    def f(n: int, x: Any) -> Any:
        return sad.sum(n * x)

    with pytest.raises(sad.DerivativeError, match=r"SR0482.*of type `int`"):
        sad.jvp(f, (2, X), (1.0, X))


def test_a_cotangent_of_an_object_is_refused() -> None:
    _, pullback = sad.vjp(held, X)
    with pytest.raises(sad.DerivativeError, match=r"SR0482.*of type `Holder`"):
        pullback(Holder(X))


def test_an_object_with_arrays_is_no_result_of_a_graph() -> None:
    with pytest.raises(sad.LanguageError, match=r"SR0430.*`Holder` whose `weight`"):
        sad.graph(held)(X)
