"""Which device computes, and what says that arrays live on two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.device import devices

pytestmark = pytest.mark.gpu


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i]


@sad.graph
def inner_product(x, y):
    return sad.sum(x * y)


@pytest.fixture
def opened(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Opens devices of one runtime in a program that has none yet."""
    entered: ContextVar[tuple[()]] = ContextVar("entered", default=())
    monkeypatch.setattr(devices, "_entered", entered)
    monkeypatch.setattr(devices, "_default", devices._Default(devices.threading.Lock()))
    monkeypatch.setenv("SHADERAD_DEVICE", "wgpu")
    made: list[sad.Device] = []

    def another() -> sad.Device:
        made.append(sad.open_device(device.capabilities.runtime))
        return made[-1]

    yield another
    for one in made:
        one.close()


def default() -> sad.Device:
    return sad.array([1.0]).device


def test_the_first_device_opened_is_the_default_until_another_is_entered_or_used(
    opened: Callable[[], sad.Device],
) -> None:
    first, second = opened(), opened()
    assert default() is first
    assert scaled([1.0], 2.0, dim=1).device is first
    with second:
        assert default() is second
    assert default() is first
    second.use()
    assert default() is second
    with first:
        assert default() is first
    assert default() is second


def test_a_default_that_nobody_opened_gives_way_and_its_arrays_stay(
    opened: Callable[[], sad.Device],
) -> None:
    x = sad.array([1.0, 2.0])
    first = opened()
    assert default() is first
    assert x.device is not first
    np.testing.assert_array_equal(scaled(x, 2.0, dim=2).numpy(), [2.0, 4.0])
    x.device.close()


def test_a_closed_default_is_replaced_by_the_next_that_is_opened(
    opened: Callable[[], sad.Device],
) -> None:
    first, second = opened(), opened()
    first.close()
    implicit = default()
    assert implicit not in (first, second)
    third = opened()
    assert default() is third
    implicit.close()


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda x, y: x + y,
    "kernel": lambda x, y: scaled(x, y[0], dim=2),
    "graph": inner_product,
    "gradient": lambda x, y: sad.grad(inner_product)(x, y),
    "where": lambda x, y: sad.where(x > 1.0, y, x),
    "index": lambda x, y: x[sad.array([0, 1], device=y.device)],
    "stack": lambda x, y: sad.stack([x, y]),
    "scan": lambda x, y: sad.scan(sad.add, x, y[0]),
    "cotangent": lambda x, y: sad.vjp(scaled, x, 1.0, dim=2)[1](y),
    "tangent": lambda x, y: sad.jvp(inner_product, (x, x), (y, None)),
    "device": lambda x, y: scaled(x, 1.0, dim=2, device=y.device),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_two_devices_in_one_call_are_refused_and_both_are_named(
    device: sad.Device, name: str
) -> None:
    other = sad.open_device("slangpy" if device.capabilities.runtime == "wgpu" else "wgpu")
    alike = sad.open_device(device.capabilities.runtime)
    for second in (other, alike):
        with pytest.raises(sad.DeviceError) as caught:
            CALLS[name](sad.array([1.0, 2.0], device=device), sad.array([3.0, 4.0], device=second))
        assert caught.value.code == "SR0650"
        assert all(repr(one) in caught.value.label for one in (device, second))
        assert ("another Device" in caught.value.label) == (second is alike)
        second.close()


def test_one_synchronisation_raises_all_that_was_reported_before_it_once(
    device: sad.Device,
) -> None:
    x = sad.array([1.0], device=device)

    def grown(limit: int) -> sad.Array:
        return sad.while_loop(lambda v: sad.sum(v) < 1e6, lambda v: v + 1.0, x, limit=limit)

    @sad.kernel
    def picked(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i + 7]

    three, again, five = grown(3), grown(3), grown(5)
    picked(x, dim=1)
    with pytest.raises(sad.LimitError) as caught:
        device.synchronize()
    assert caught.value.code == "SR0661"
    assert "a loop of `sad.while_loop` ran past its limit of 3" in caught.value.message
    assert "reported 2 times" in caught.value.note
    assert "limit of 5" in caught.value.note
    assert "SR0660 index 7 is out of range" in caught.value.note
    device.synchronize()
    assert [one.item() for one in (three, again, five)] == [4.0, 4.0, 6.0]
    np.testing.assert_array_equal((x + 1.0).numpy(), [2.0])
