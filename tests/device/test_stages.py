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


# -- programs that compile side by side ----------------------------------------------------------


@sad.graph
def three_programs(x):
    """Its three dispatches are of three programs: a map, a sum over rows, and a maximum."""
    rows = sad.reshape(sad.exp(x), (2, 2))
    return sad.sum(rows, axis=1) + sad.max(x)


def test_the_programs_of_a_plan_compile_side_by_side(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, meeting = device.runtime, threading.Barrier(2, timeout=60.0)
    compiled, count = runtime.compiled, [0]

    def meeting_first(program: Any) -> Any:
        count[0] += 1
        if count[0] <= 2:
            meeting.wait()  # breaks if no other program is compiled meanwhile
        return compiled(program)

    monkeypatch.setattr(runtime, "compiled", meeting_first)
    x = sad.array([0.0, 1.0, 2.0, 3.0], device=device)
    wanted = np.exp([0.0, 1.0, 2.0, 3.0]).reshape(2, 2).sum(1) + 3.0
    np.testing.assert_allclose(three_programs(x).numpy(), wanted, rtol=1e-6)
    assert count[0] >= 2


def test_the_error_of_the_first_program_is_raised_and_the_next_call_compiles_again(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, compiled = device.runtime, device.runtime.compiled
    names: list[str] = []
    later = threading.Event()

    def failing(program: Any) -> Any:
        names.append(program.name)
        number = len(names)
        if number == 1:
            later.wait(60.0)  # the error of a later program is there before that of the first
        later.set()
        raise sad.CompileError("SR0503", f"fault of number {number}")

    again = sad.graph(lambda x: sad.sum(sad.reshape(sad.exp(x), (2, 2)), axis=1) + sad.min(x))
    x = sad.array([0.0, 1.0, 2.0, 3.0], device=device)
    monkeypatch.setattr(runtime, "compiled", failing)
    with pytest.raises(sad.CompileError, match="fault of number 1") as caught:
        again(x)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    monkeypatch.setattr(runtime, "compiled", compiled)
    wanted = np.exp([0.0, 1.0, 2.0, 3.0]).reshape(2, 2).sum(1)
    np.testing.assert_allclose(again(x).numpy(), wanted, rtol=1e-6)


def test_several_programs_that_have_not_run_yet_run_ahead_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device.capabilities.runtime != "wgpu":
        pytest.skip("slangpy's own compiler makes its pipelines")
    from shaderad.runtime import wgpu_runtime

    ahead: list[str] = []
    monkeypatch.setattr(wgpu_runtime, "run_ahead", lambda _, entry, *__: ahead.append(entry))
    # No other test has these programs, whose pipelines the device keeps.
    several = sad.graph(
        lambda x: sad.sum(sad.reshape(sad.cosh(x), (2, 2)), axis=1) * sad.min(x + 2.0)
    )
    x = sad.array([0.0, 1.0, 2.0, 3.0], device=device)
    wanted = np.cosh([0.0, 1.0, 2.0, 3.0]).reshape(2, 2).sum(1) * 2.0
    for _ in range(2):
        np.testing.assert_allclose(several(x).numpy(), wanted, rtol=1e-6)
    assert len(ahead) > 1
    assert len(ahead) == len(set(ahead))
