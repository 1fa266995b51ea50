"""Backward programs that are lowered and compiled while the primal is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.lower import kernels
from shaderad.lower.bindings import Mode

pytestmark = pytest.mark.gpu


@pytest.fixture
def cubes() -> Any:
    """A kernel that no device has run yet."""

    @sad.kernel
    def cubes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] * x[i] * x[i]

    return cubes


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Mode, bool]]:
    """The mode of each lowering, and whether it was done in the background."""
    found: list[tuple[Mode, bool]] = []
    lower = kernels.lower_kernel

    def noted(kernel: Any, mode: Mode, variant: Any) -> Any:
        found.append((mode, threading.current_thread() is not threading.main_thread()))
        return lower(kernel, mode, variant)

    monkeypatch.setattr(kernels, "lower_kernel", noted)
    return found


def _by_vjp(cubes: Any, x: sad.Array[Any]) -> Any:
    out, pullback = sad.vjp(cubes, x, dim=4)
    return pullback(np.ones(out.shape, np.float32))[0]


def _by_vjp_of_a_function(cubes: Any, x: sad.Array[Any]) -> Any:
    out, pullback = sad.vjp(lambda x: cubes(x, dim=4), x)
    return pullback(np.ones(out.shape, np.float32))[0]


@pytest.mark.parametrize("gradient", [_by_vjp, _by_vjp_of_a_function])
def test_the_backward_of_a_vjp_is_lowered_once_and_beside_the_primal(
    device: sad.Device,
    cubes: Any,
    lowered: list[tuple[Mode, bool]],
    gradient: Callable[[Any, Any], Any],
) -> None:
    x = sad.array([1.0, 2.0, 3.0, 4.0], device=device)
    for _ in range(2):
        np.testing.assert_allclose(gradient(cubes, x).numpy(), [3.0, 12.0, 27.0, 48.0], rtol=1e-6)
    assert sorted(lowered, key=str) == [(Mode.BACKWARD, True), (Mode.PRIMAL, False)]


def test_a_jvp_foresees_nothing(
    device: sad.Device, cubes: Any, lowered: list[tuple[Mode, bool]]
) -> None:
    x = sad.array([1.0, 2.0, 3.0, 4.0], device=device)
    sad.jvp(cubes, (x,), (x,), dim=4)
    assert {mode for mode, _ in lowered} == {Mode.PRIMAL, Mode.FORWARD}


def test_what_fails_in_the_background_is_raised_where_it_is_asked_for(
    device: sad.Device, cubes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower = kernels.lower_kernel

    def refusing(kernel: Any, mode: Mode, variant: Any) -> Any:
        if mode is Mode.BACKWARD:
            raise sad.DerivativeError("SR0412", "no way back")
        return lower(kernel, mode, variant)

    monkeypatch.setattr(kernels, "lower_kernel", refusing)
    out, pullback = sad.vjp(cubes, sad.array([1.0, 2.0], device=device), dim=2)
    np.testing.assert_allclose(out.numpy(), [1.0, 8.0])
    with pytest.raises(sad.DerivativeError, match="no way back"):
        pullback(np.ones(2, np.float32))
    monkeypatch.undo()
    np.testing.assert_allclose(pullback(np.ones(2, np.float32))[0].numpy(), [3.0, 12.0])
