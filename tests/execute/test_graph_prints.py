"""`print` in kernels that graphs call: once an evaluation, in loops and derivatives, too."""

# ruff: noqa: T201

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.device.test_prints import lines_of

gpu = pytest.mark.gpu
Capture = pytest.CaptureFixture[str]
X = np.float32([0.5, 0.75])


@sad.kernel
def half_square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    print(x[i])
    y[i] = 0.5 * x[i] * x[i]


def loss(x: Any) -> Any:
    return sad.sum(half_square(2.0 * x, dim=x.shape))


def loop(x: Any) -> Any:
    return sad.sum(sad.fori_loop(5, lambda k, c: half_square(c, dim=c.shape), x))


def checkpointed(x: Any) -> Any:
    return sad.sum(sad.checkpoint(lambda t: half_square(t, dim=t.shape))(sad.sin(x)))


def trained(x: Any) -> Any:
    return sad.sum(sad.fori_loop(3, lambda k, c: c - 0.1 * sad.grad(loss)(c), x))


@gpu
@pytest.mark.parametrize(
    ("function", "evaluations"), [(loss, 1), (loop, 5), (checkpointed, 1), (trained, 3)]
)
def test_each_evaluation_prints_once(
    function: Any, evaluations: int, device: sad.Device, capsys: Capture
) -> None:
    graph, x, x_dot = sad.graph(function), sad.array(X), np.float32([1, 2])
    value = lines_of(device, capsys, lambda: graph(x))
    assert len(value) == 2 * evaluations
    assert [line.split()[0] for line in value] == ["half_square[0]", "half_square[1]"] * evaluations
    assert lines_of(device, capsys, lambda: sad.grad(graph)(x)) == value
    assert lines_of(device, capsys, lambda: sad.value_and_grad(graph)(x)) == value
    assert lines_of(device, capsys, lambda: sad.jvp(graph, (x,), (x_dot,))) == value


@gpu
def test_a_pullback_pulled_again_prints_nothing(device: sad.Device, capsys: Capture) -> None:
    graph, x = sad.graph(loop), sad.array(X)
    pulls: list[Any] = []
    lines = lines_of(device, capsys, lambda: pulls.append(sad.vjp(graph, x)[1]))
    assert len(lines) == 10
    assert lines_of(device, capsys, lambda: pulls[0](1.0)) == []
    assert lines_of(device, capsys, lambda: pulls[0](2.0)) == []


def test_a_while_loop_refuses_a_kernel_that_prints(device: sad.Device) -> None:
    @sad.graph
    def shrinks(x: Any) -> Any:
        return sad.while_loop(
            lambda c: sad.sum(c) > 0.1, lambda c: half_square(c, dim=c.shape), x, limit=10
        )

    with pytest.raises(sad.LanguageError, match="while_loop") as raised:
        shrinks(sad.array(X, device=device))
    assert raised.value.code == "SR0264"
    assert raised.value.span is not None
    assert raised.value.span.line == half_square.def_span.line + 1


def test_an_array_function_refuses_a_function_that_prints(device: sad.Device) -> None:
    @sad.function
    def told(a: float, b: float) -> float:
        print(a)
        return a + b

    x = sad.array(X, device=device)
    for call in (lambda: sad.map(told, x, x), lambda: sad.scan(told, x)):
        with pytest.raises(sad.LanguageError, match="told") as raised:
            call()
        assert raised.value.code == "SR0265"


@sad.kernel
def tells(i: sad.Index, x: sad.In[float]):
    print(x[i])


@sad.kernel
def checks(i: sad.Index, x: sad.In[float]):
    assert x[i] > 0.0, "x is positive"


def test_a_kernel_that_does_nothing_but_print_is_called(
    device: sad.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    @sad.graph
    def graph(x: Any) -> Any:
        tells(x, dim=x.shape)
        return x * 2.0

    for data in (X, 2 * X):
        np.testing.assert_allclose(graph(sad.array(data, device=device)), 2 * data)
        device.synchronize()
        assert len(capsys.readouterr().out.splitlines()) == len(X)
    value, gradient = sad.value_and_grad(lambda x: sad.sum(graph(x)))(sad.array(X, device=device))
    np.testing.assert_allclose((value, gradient.numpy()[0]), (2 * X.sum(), 2.0), rtol=1e-6)
    device.synchronize()
    assert len(capsys.readouterr().out.splitlines()) == len(X)


def test_a_kernel_that_does_nothing_but_check_is_called(device: sad.Device) -> None:
    @sad.graph
    def graph(x: Any) -> Any:
        checks(x, dim=x.shape)
        return x * 2.0

    graph(sad.array(np.float32([1.0, 2.0]), device=device))
    device.synchronize()
    graph(sad.array(np.float32([1.0, -2.0]), device=device))
    with pytest.raises(sad.BoundsError, match="x is positive"):
        device.synchronize()


def test_a_loop_refuses_a_kernel_that_does_nothing_but_print(device: sad.Device) -> None:
    def step(_: Any, x: Any) -> Any:
        tells(x, dim=x.shape)
        return x

    with pytest.raises(sad.LanguageError, match="tells") as raised:
        sad.graph(lambda x: sad.fori_loop(0, 2, step, x))(sad.array(X, device=device))
    assert raised.value.code == "SR0266"
