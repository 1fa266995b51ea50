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


@gpu
def test_a_while_loop_prints_and_checks_the_iterations_before_its_end(
    device: sad.Device, capsys: Capture
) -> None:
    @sad.kernel
    def above(i: sad.Index, x: sad.In[float], lowest: float, y: sad.Out[float]):
        assert x[i] > lowest, "x is above"
        print(x[i])
        y[i] = x[i] + float(i)

    def loop(x: Any, body: Any, limit: int = 9) -> Any:
        return sad.sum(sad.while_loop(lambda c: c[0] > 1.0, body, x, limit=limit))

    def told_and_checked(c: Any) -> Any:
        # The iteration after the end would report.
        tells(c, dim=c.shape)
        return above(c, 1.0, dim=c.shape) - 1.0

    def nested(c: Any) -> Any:
        inner = sad.fori_loop(2, lambda _, z: above(z, 1.0, dim=z.shape), c)
        return inner + 0.0 * sad.grad(lambda z: sad.sum(above(z, 1.0, dim=z.shape)))(c) - 1.0

    def values(call: Any) -> list[float]:
        return [float(line.split()[-1]) for line in lines_of(device, capsys, call)]

    x = sad.array(np.float32([3.5, 4.5]))
    step = [3.5, 4.5, 3.5, 4.5, 2.5, 4.5, 2.5, 4.5, 1.5, 4.5, 1.5, 4.5]
    for run in (loop, sad.graph(lambda x, body=told_and_checked: loop(x, body))):
        args = (x, told_and_checked) if run is loop else (x,)
        assert values(lambda run=run, args=args: run(*args)) == step
        assert values(lambda run=run, args=args: sad.value_and_grad(run)(*args)) == step
    gradient = sad.grad(lambda x: loop(x, told_and_checked))(x)
    np.testing.assert_allclose(gradient, [1.0, 1.0])
    capsys.readouterr()
    assert len(values(lambda: loop(x, nested))) == 3 * 2 * 2 + 3 * 2
    batch = sad.stack([x, x + 1.0])
    mapped = values(lambda: sad.vmap(lambda x: loop(x, told_and_checked))(batch))
    assert len(mapped) == 4 * (3 + 4)
    assert values(lambda: loop(x - 9.0, told_and_checked)) == []
    with pytest.raises(sad.LimitError):
        loop(x, told_and_checked, limit=2).numpy()
    capsys.readouterr()


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


def squared(x: Any) -> Any:
    """`tells` and then a sum of squares."""
    tells(x, dim=x.shape)
    return sad.sum(x * x)


def told_in_loop(x: Any) -> Any:
    def step(k: Any, c: Any) -> Any:
        tells(c, dim=c.shape)
        return c + 1.0

    return sad.sum(sad.fori_loop(3, step, x))


def told_in_nested_loops(x: Any) -> Any:
    def row(c: Any, y: Any) -> Any:
        inner = sad.fori_loop(2, lambda _, z: z + squared(y), 0.0)
        return c + inner, inner

    return sad.loop(row, 0.0, sad.stack([x, x + 1.0]))[0]


def told_in_batch(x: Any) -> Any:
    return sad.sum(sad.vmap(squared)(sad.stack([x, x + 1.0, x + 2.0])))


def told_in_checkpoint(x: Any) -> Any:
    return sad.checkpoint(squared)(x) + squared(x + 1.0)


def told_in_gradient(x: Any) -> Any:
    return sad.sum(sad.grad(squared)(x)) + sad.sum(sad.value_and_grad(squared)(x + 1.0)[1])


def told_in_gradient_in_loop(x: Any) -> Any:
    return sad.sum(sad.fori_loop(2, lambda _, c: c - 0.5 * sad.grad(squared)(c) + 1.0, x))


def told_in_map(x: Any) -> Any:
    return sad.sum(sad.map(lambda a: squared(sad.stack([a, a + 1.0])), x))


@sad.custom_vjp
def own(x: Any) -> Any:
    return squared(x)


own.defvjp(lambda x: (squared(x), x), lambda x, bar: (2.0 * x * bar,))


def told_by_custom_rule(x: Any) -> Any:
    return own(x) + 1.0


FIRST, NEXT, THIRD = [0.5, 0.75], [1.5, 1.75], [2.5, 2.75]
TOLD: list[tuple[Any, list[float], bool]] = [
    (told_in_loop, [*FIRST, *NEXT, *THIRD], True),
    (told_in_nested_loops, [*FIRST, *FIRST, *NEXT, *NEXT], True),
    (told_in_batch, [*FIRST, *NEXT, *THIRD], True),
    (told_in_checkpoint, [*FIRST, *NEXT], True),
    (told_in_gradient, [*FIRST, *NEXT], True),
    (told_in_gradient_in_loop, [*FIRST, 1.0, 1.0], True),
    (told_in_map, [0.5, 1.5, 0.75, 1.75], True),
    (told_by_custom_rule, FIRST, False),
]


@gpu
@pytest.mark.parametrize(
    ("function", "values", "has_tangents"), TOLD, ids=[f.__name__ for f, *_ in TOLD]
)
def test_each_call_that_only_prints_is_printed_once_and_in_order(
    function: Any, values: list[float], has_tangents: bool, device: sad.Device, capsys: Capture
) -> None:
    graph, x = sad.graph(function), sad.array(X)
    results: list[Any] = []

    def told(call: Any) -> list[float]:
        lines = lines_of(device, capsys, lambda: results.append(call()))
        return [float(line.split()[-1]) for line in lines]

    for called in (graph, function):
        assert told(lambda called=called: called(x)) == values
        assert told(lambda called=called: sad.value_and_grad(called)(x)) == values
        assert told(lambda called=called: sad.grad(called)(x)) == values
        if has_tangents:
            assert told(lambda called=called: sad.jvp(called, (x,), (X,))) == values
            assert told(lambda called=called: sad.hvp(called, (x,), (X,))) == values
    (value, _), step = results[1], 1e-2
    np.testing.assert_allclose(value, results[0], rtol=1e-6)
    high, low = (graph(X + h).item() for h in (step, -step))
    np.testing.assert_allclose(np.sum(results[2].numpy()), (high - low) / (2 * step), rtol=1e-3)
    capsys.readouterr()


@gpu
def test_no_call_that_prints_is_merged_or_left_out(device: sad.Device, capsys: Capture) -> None:
    @sad.graph
    def graph(x: Any) -> Any:
        for _ in range(2):
            tells(x, dim=x.shape)
        y = half_square(x + 1.0, dim=x.shape)
        half_square(x + 2.0, dim=x.shape)
        tells(y, dim=x.shape)
        tells(x, dim=x.shape)
        return x + y

    lines = lines_of(device, capsys, lambda: graph(sad.array(X)))
    values = [float(line.split()[-1]) for line in lines]
    y = 0.5 * (X + 1.0) ** 2
    assert values == [*FIRST, *FIRST, *NEXT, *THIRD, *np.float64(y), *FIRST]


@gpu
@pytest.mark.parametrize("count", [0, 1, 65])
def test_empty_and_odd_loops_print_each_iteration(
    count: int, device: sad.Device, capsys: Capture
) -> None:
    @sad.graph
    def graph(x: Any) -> Any:
        return sad.loop(lambda c, _: (c + squared(x), None), 0.0, length=count)[0]

    lines = lines_of(device, capsys, lambda: graph(np.float32([0.25])))
    assert len(lines) == count


def test_a_loop_checks_each_iteration(device: sad.Device) -> None:
    def step(_: Any, x: Any) -> Any:
        checks(x, dim=x.shape)
        return x - 1.0

    x = sad.array(np.float32([3.0, 2.5]), device=device)
    sad.fori_loop(2, step, x).numpy()
    sad.fori_loop(4, step, x)
    with pytest.raises(sad.BoundsError, match="x is positive"):
        device.synchronize()
    sad.vmap(lambda y: (checks(y, dim=1), y)[1])(sad.array(np.float32([[1.0], [-1.0]])))
    with pytest.raises(sad.BoundsError, match="x is positive"):
        device.synchronize()


@pytest.mark.parametrize("kernel", [tells, checks])
def test_conditions_and_pullbacks_refuse_kernels_that_write_nothing(
    kernel: Any, device: sad.Device
) -> None:
    def stepped(x: Any) -> Any:
        kernel(x, dim=x.shape)
        return x + 1.0

    def tested(x: Any) -> Any:
        kernel(x, dim=x.shape)
        return sad.sum(x) < 10.0

    @sad.custom_vjp
    def identity(x: Any) -> Any:
        return x + 0.0

    identity.defvjp(lambda x: (x, x), lambda x, bar: (stepped(bar),))
    x = sad.array(X, device=device)
    for call in (
        lambda: sad.while_loop(tested, lambda c: c + 1.0, x, limit=9),
        lambda: identity(x),
    ):
        with pytest.raises(sad.LanguageError, match=kernel.__name__) as raised:
            call()
        assert raised.value.code == "SR0266"
