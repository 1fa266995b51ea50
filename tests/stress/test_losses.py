"""A device that is lost in the middle, told by what its library raises at the next command."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import shaderad as sad

SUBMISSION = {
    "wgpu": ("_queue", "submit", "Parent device is lost"),
    "slangpy": ("native", "submit_command_buffer", "vkQueueSubmit: VK_ERROR_DEVICE_LOST"),
}
"""Where each runtime hands its commands over, and what it hears once the device is lost."""


class Losing:
    """A native object, one of whose methods finds the device gone."""

    def __init__(self, native: Any, method: str, message: str) -> None:
        self._native, self._method, self._message = native, method, message

    def __getattr__(self, name: str) -> Any:
        return self._lose if name == self._method else getattr(self._native, name)

    def _lose(self, *_: Any) -> None:
        raise RuntimeError(self._message)


def lose(device: sad.Device) -> None:
    """Makes the next submission of `device` find it gone."""
    runtime: Any = device.runtime
    field, method, message = SUBMISSION[device.capabilities.runtime]
    setattr(runtime, field, Losing(getattr(runtime, field), method, message))


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i]


def test_everything_that_lives_on_a_lost_device_says_so_and_a_new_device_works(
    device: sad.Device,
) -> None:
    lost = sad.open_device(device.capabilities.runtime)
    ones = np.ones(8, np.float32)
    x = sad.array(ones, device=lost)
    deferred = scaled(x, 2.0, dim=8)
    done = scaled(x, 3.0, dim=8)
    np.testing.assert_array_equal(done.numpy(), 3.0 * ones)
    _, pullback = sad.vjp(scaled, x, 2.0, dim=8)
    recorded = x + 1.0
    recorded.buffer
    lose(lost)
    calls: list[Callable[[], Any]] = [
        recorded.numpy,
        deferred.numpy,
        done.numpy,
        x[2:].numpy,
        lost.synchronize,
        lambda: x.native,
        lambda: (x + 1.0).numpy(),
        lambda: pullback(ones),
        lambda: scaled(x, 1.0, dim=8).numpy(),
        lambda: sad.array(ones, device=lost),
        lambda: sad.array(x, device=device),
    ]
    for call in calls:
        with pytest.raises(sad.DeviceError) as raised:
            call()
        assert raised.value.code == "SR0604"
    assert "lost" in repr(lost)
    fresh = sad.open_device(device.capabilities.runtime)
    with pytest.raises(sad.DeviceError) as raised:
        scaled(x, 2.0, dim=8, device=fresh)
    assert raised.value.code == "SR0650"
    lost.close()
    y, pullback = sad.vjp(scaled, sad.array(ones, device=fresh), 2.0, dim=8)
    np.testing.assert_array_equal(y.numpy(), 2.0 * ones)
    assert pullback(ones)[1].item() == 8.0
    fresh.close()


def test_a_lost_default_device_is_replaced_at_the_next_call(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_DEVICE", device.capabilities.runtime)
    entered: ContextVar[tuple[()]] = ContextVar("entered", default=())
    monkeypatch.setattr("shaderad.device.devices._entered", entered)
    monkeypatch.setattr("shaderad.device.devices._default.device", None)
    monkeypatch.setattr("shaderad.device.devices._default.is_opened", False)
    x = sad.array([1.0, 2.0])
    lose(x.device)
    with pytest.raises(sad.DeviceError):
        scaled(x, 2.0, dim=2).numpy()
    y = scaled([1.0, 2.0], 2.0, dim=2)
    assert y.device is not x.device
    np.testing.assert_array_equal(y.numpy(), [2.0, 4.0])
    x.device.close()
    y.device.close()
