"""Optimisers do what their papers say, on every runtime, by themselves and inside graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3, half

RATES = (0.1, 0.05, 0.2, 0.1, 0.01)
Floats = np.ndarray[Any, Any]


def gradient(p: Floats) -> Floats:
    return 2.0 * (p - 3.0)


def by_sgd(p: Floats, momentum: float) -> Floats:
    velocity = np.zeros_like(p)
    for lr in RATES:
        velocity = momentum * velocity + gradient(p)
        p = p - lr * velocity
    return p


def by_adam(p: Floats, beta1: float = 0.9, beta2: float = 0.999) -> Floats:
    """Algorithm 1 of the paper."""
    mean = square = np.zeros_like(p)
    for t, lr in enumerate(RATES, start=1):
        g = gradient(p)
        mean = beta1 * mean + (1 - beta1) * g
        square = beta2 * square + (1 - beta2) * g * g
        p = p - lr * (mean / (1 - beta1**t)) / (np.sqrt(square / (1 - beta2**t)) + 1e-8)
    return p


def run(optimiser: Any, p: Any, loss: Any) -> Any:
    state = optimiser.init(p)
    for lr in RATES:
        p, state = optimiser.step(p, sad.grad(loss)(p), state, lr)
    return p


def square_loss(p: Any) -> Any:
    return sad.sum((p - 3.0) * (p - 3.0))


pytestmark = pytest.mark.gpu
START = np.array([-1.0, 0.0, 2.0, 3.0, 70.0], np.float32)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_descends(device: sad.Device, momentum: float) -> None:
    with device:
        found = run(sad.optim.SGD(1.0, momentum=momentum), START, square_loss).numpy()
    np.testing.assert_allclose(found, by_sgd(START.astype(np.float64), momentum), rtol=1e-5)


def test_adam_is_that_of_the_paper(device: sad.Device) -> None:
    with device:
        found = run(sad.optim.Adam(1.0), START, square_loss).numpy()
        other = run(sad.optim.Adam(1.0, beta1=0.5, beta2=0.9), START, square_loss).numpy()
    exact = START.astype(np.float64)
    np.testing.assert_allclose(found, by_adam(exact), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other, by_adam(exact, 0.5, 0.9), rtol=1e-5, atol=1e-5)


def test_the_own_rate_is_used_where_none_is_given(device: sad.Device) -> None:
    with device:
        p, state = sad.optim.SGD(0.25).step(START, np.ones(5, np.float32), {})
    np.testing.assert_allclose(p.numpy(), START - 0.25)
    assert state == {}


@sad.struct
class Splat:
    place: float3
    size: float
    layer: int


def test_containers_vectors_and_structs_keep_their_form(device: sad.Device) -> None:
    splats = np.zeros(4, [("place", "f4", 3), ("size", "f4"), ("layer", "i4")])
    splats["layer"] = [3, 1, 4, 1]
    params = {"splats": sad.array(splats, dtype=Splat, device=device),
              "rest": [sad.array(np.zeros((2, 3), np.float32), dtype=float3, device=device), 1.0],
              "count": sad.array(np.arange(3, dtype=np.int32), device=device)}  # fmt: skip

    def loss(p: Any) -> Any:
        place, size = p["splats"]["place"] - 3.0, p["splats"]["size"] - 3.0
        point, number = p["rest"][0] - 3.0, p["rest"][1] - 3.0
        return (sad.sum(sad.dot(place, place)) + sad.sum(size * size)
                + sad.sum(sad.dot(point, point)) + number * number)  # fmt: skip

    with device:
        found = run(sad.optim.Adam(1.0), params, loss)
    wanted, one = by_adam(np.zeros(1))[0], by_adam(np.ones(1))[0]
    made = found["splats"].numpy()
    np.testing.assert_allclose(made["place"], np.full((4, 3), wanted), rtol=1e-5)
    np.testing.assert_allclose(made["size"], np.full(4, wanted), rtol=1e-5)
    np.testing.assert_array_equal(made["layer"], [3, 1, 4, 1])
    np.testing.assert_allclose(found["rest"][0].numpy(), np.full((2, 3), wanted), rtol=1e-5)
    np.testing.assert_allclose(float(found["rest"][1]), one, rtol=1e-5)
    np.testing.assert_array_equal(found["count"].numpy(), [0, 1, 2])


def test_a_step_is_part_of_a_graph(device: sad.Device) -> None:
    adam = sad.optim.Adam(0.1)

    @sad.graph
    def step(p: Any, state: Any, lr: float) -> Any:
        value, g = sad.value_and_grad(square_loss)(p)
        p, state = adam.step(p, g, state, lr)
        return value, p, state

    with device:
        p, state, values = START, adam.init(START), []
        for lr in RATES:
            value, p, state = step(p, state, lr)
            values.append(float(value))
        assert values == sorted(values, reverse=True)
        np.testing.assert_allclose(p.numpy(), by_adam(START.astype(np.float64)), rtol=1e-5,
                                   atol=1e-5)  # fmt: skip


def test_halves_stay_halves(device: sad.Device) -> None:
    p = sad.array(START.astype(np.float16), device=device)
    adam = sad.optim.Adam(0.5)
    with device:
        found, _ = adam.step(p, sad.array(gradient(START), dtype=half), adam.init(p))
    assert found.dtype is half
    np.testing.assert_allclose(found.numpy(), START - 0.5 * np.sign(gradient(START)), atol=2e-2)


@pytest.mark.parametrize(
    ("make", "given"),
    [(sad.optim.SGD, {"lr": -1.0}), (sad.optim.SGD, {"lr": 1.0, "momentum": 1.0}),
     (sad.optim.Adam, {"lr": float("nan")}), (sad.optim.Adam, {"lr": 1.0, "beta2": 2.0}),
     (sad.optim.SGD, {"lr": None})],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(make: Any, given: dict[str, float]) -> None:
    name, value = list(given.items())[-1]
    with pytest.raises(sad.ShapeError, match=f"SR0393.*`{name}`.*`{value}`"):
        make(**given)


def test_gradients_of_another_form_are_refused(device: sad.Device) -> None:
    with device, pytest.raises(sad.DerivativeError, match="SR0452"):
        sad.optim.SGD(1.0).step([START, START], [START], {})


@pytest.mark.parametrize("shape", [(1,), (5, 1), (4,)])
def test_nothing_is_repeated_to_meet_a_parameter(device: sad.Device, shape: Any) -> None:
    other, sgd = np.ones(shape, np.float32), sad.optim.SGD(1.0, momentum=0.5)
    adam, ones = sad.optim.Adam(1.0), np.ones(5, np.float32)
    with device:
        for step in (
            lambda: sgd.step(START, other, sgd.init(START)),
            lambda: sgd.step(START, ones, {"velocity": other}),
            lambda: sad.optim.SGD(1.0).step(START, other, {}),
            lambda: adam.step(START, other, adam.init(START)),
            lambda: adam.step(START, ones, {**adam.init(START), "square": other}),
            lambda: adam.step(other, ones, adam.init(other)),
        ):
            with pytest.raises(sad.ShapeError, match="SR0334"):
                step()


def test_a_state_of_another_optimiser_is_refused(device: sad.Device) -> None:
    sgd, adam = sad.optim.SGD(1.0, momentum=0.5), sad.optim.Adam(1.0)
    with device:
        for optimiser, state in (
            (sgd, {}), (sgd, None), (sgd, {"velocity": None}), (sgd, adam.init(START)),
            (adam, sgd.init(START)), (adam, {**adam.init(START), "mean": {}}),
        ):  # fmt: skip
            with pytest.raises(sad.DerivativeError, match=r"SR0452.*`state`"):
                optimiser.step(START, START, state)


DOUBLES = np.array([-1.0, 0.0, 2.0, 3.0, 70.0])


@pytest.mark.parametrize("is_graph", [False, True])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_rates_of_doubles_are_doubles(device: sad.Device, name: str, is_graph: bool) -> None:
    """Rates rounded to 32 bits would show in the eighth digit."""
    if "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    optimiser: Any = sad.optim.SGD(1.0, momentum=0.9) if name == "SGD" else sad.optim.Adam(1.0)
    expected = by_sgd(DOUBLES, 0.9) if name == "SGD" else by_adam(DOUBLES)
    with device:
        p: Any = sad.array(DOUBLES, dtype=sad.double)
        if is_graph:
            found = sad.graph(lambda p: run(optimiser, p, square_loss))(p)
        else:
            found = run(optimiser, p, square_loss)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_floats_and_doubles_are_trained_together(device: sad.Device) -> None:
    if "double" not in device.capabilities.features:
        pytest.skip(f"{device} has no double")
    with device:
        p: Any = {"float": sad.array(START), "double": sad.array(DOUBLES, dtype=sad.double)}
        found = run(
            sad.optim.Adam(1.0),
            p,
            lambda p: square_loss(p["float"]) + sad.cast(square_loss(p["double"]), float),
        )
        # The gradients came through a float.
        np.testing.assert_allclose(found["double"].numpy(), by_adam(DOUBLES), rtol=1e-6)
        np.testing.assert_allclose(found["float"].numpy(), by_adam(DOUBLES), rtol=1e-5)
