"""Results and gradients of one dispatch, where a backward dispatch can compute both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.arrays.tape import When
from shaderad.decorators import KernelFunction
from shaderad.differentiate.linearised import linearised
from tests.agreement import close, drawn_for
from tests.oracle import oracle
from tests.recorded import on_each_dispatch

pytestmark = pytest.mark.gpu

X = np.random.default_rng(3).uniform(0.5, 1.5, 70).astype(np.float32)
W = np.float32([0.75, -1.25, 0.5])


@sad.struct
class Both:
    first: float
    pair: float2


@sad.function
def walked(w: sad.In[float], x: float) -> float:
    total = x
    for k in range(w.shape[0]):
        total = total * w[k] + sad.sin(total)
    return total


@sad.kernel
def summed(i: sad.Index, x: sad.In[float], w: sad.In[float], loss: sad.Add[float]):
    miss = w[0] * x[i] * x[i] + w[1] * x[i] + w[2]
    loss[0] += miss * miss


@sad.kernel
def in_loops(i: sad.Index, x: sad.In[float], w: sad.In[float], loss: sad.Add[float]):
    kept = sad.LocalArray[float, 3]()
    for k in range(3):
        kept[k] = x[i] * w[k]
    for k in range(3):
        if kept[k] > 0.0:
            loss[1] += kept[k] * kept[(k + 1) % 3]
        else:
            loss[0] += walked(w, kept[k])


@sad.kernel
def own_and_summed(i: sad.Index, x: sad.In[float], s: float, y: sad.Out[Both],
                   sign: sad.Out[int], total: sad.Add[float2]):  # fmt: skip
    y[i].first = x[i] * s
    if i % 3 == 1:
        y[i].pair = float2(x[i], s) * y[i].first
        sign[i] = i
    total[1] += float2(x[i], x[i] * s)


@sad.kernel
def rewritten(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i]
    while y[i] < 20.0:
        y[i] = y[i] * y[i] + 1.0
    y[i] += sad.cos(y[i])


@sad.kernel
def scattered(i: sad.Index, x: sad.In[float], y: sad.Add[float]):
    y[i % 4] += x[i] * x[i]


@sad.kernel
def lowest(i: sad.Index, x: sad.In[float], y: sad.Min[float]):
    y[0] = sad.min(y[0], x[i] * x[i])


@sad.kernel
def counted(i: sad.Index, x: sad.In[float], y: sad.Add[float], n: sad.Add[int]):
    y[0] += x[i] * x[i]
    n[0] += 1


@contextmanager
def noted(device: sad.Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The entry points that are dispatched."""
    names: list[str] = []
    on_each_dispatch(device.runtime, monkeypatch, lambda p: names.append(p.program.name))
    yield names
    monkeypatch.undo()


JOINED: list[tuple[KernelFunction, tuple[Any, ...], dict[str, Any]]] = [
    (summed, (X, W), {"dim": 70, "shapes": {"loss": 1}}),
    (summed, (X[:1], W), {"dim": 1, "shapes": {"loss": 1}}),
    (summed, (X[:0], W), {"dim": 0, "shapes": {"loss": 1}}),
    (in_loops, (X, W), {"dim": 70, "shapes": {"loss": 2}}),
    (own_and_summed, (X, 1.5), {"dim": 70, "shapes": {"total": 2}}),
    (own_and_summed, (X[:1], 1.5), {"dim": 1, "shapes": {"total": 2}}),
    (rewritten, (X,), {"dim": 70}),
]
APART: list[tuple[KernelFunction, tuple[Any, ...], dict[str, Any]]] = [
    (scattered, (X,), {"dim": 70, "shapes": {"y": 4}}),
    (lowest, (X,), {"dim": 70, "shapes": {"y": 1}}),
    (counted, (X,), {"dim": 70, "shapes": {"y": 1, "n": 1}}),
]


def _name(case: Sequence[Any]) -> str:
    return f"{case[0].name}-{case[2]['dim']}"


@pytest.mark.parametrize("case", [*JOINED, *APART], ids=_name)
def test_results_and_gradients_are_those_of_the_oracle(
    case: Any, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, args, call = case
    judge = oracle(kernel, *args, **call)
    bars, _ = drawn_for(judge, args)
    with noted(device, monkeypatch) as names:
        at = linearised(kernel, args, call, when=When.WITH_GRADIENTS)
        found = tuple(at.pull(bars, range(len(args)), None))
        close(at.out, judge.out, "result")
    close(found, judge.vjp(bars), "gradient")
    is_joined = any(case is one for one in JOINED)
    assert (f"{kernel.name}_bwd" in names) == (call["dim"] > 0)
    assert (f"{kernel.name}_primal" in names) == (not is_joined)
    device.synchronize()


def test_a_loss_and_its_gradient_are_one_dispatch(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"dim": 70, "shapes": {"loss": 1}}
    wanted = np.sum((W[0] * X * X + W[1] * X + W[2]) ** 2)
    for function in (
        lambda w: sad.value_and_grad(summed, argnums=1)(X, w, **call),
        sad.value_and_grad(lambda w: summed(X, w, **call)),
        sad.value_and_grad(lambda w: {"loss": summed(X, w, **call)}["loss"]),
    ):
        with noted(device, monkeypatch) as names:
            value, gradient = function(W)
            assert not value.is_pending
        assert names == ["summed_bwd"]
        np.testing.assert_allclose(value.item(), wanted, rtol=1e-5)
        np.testing.assert_allclose(
            gradient.numpy(), sad.grad(summed, argnums=1)(X, W, **call).numpy(), rtol=1e-5
        )


def test_what_gradients_are_made_of_runs_before(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(x: Any) -> Any:
        return summed(rewritten(x, dim=70), W, dim=70, shapes={"loss": 1})

    with noted(device, monkeypatch) as names:
        value, gradient = sad.value_and_grad(loss)(X)
    assert names == ["rewritten_primal", "summed_bwd", "rewritten_bwd"]
    out, pullback = sad.vjp(loss, X)
    np.testing.assert_allclose(value.item(), out.item(), rtol=1e-5)
    np.testing.assert_allclose(gradient.numpy(), pullback(np.ones(1))[0].numpy(), rtol=1e-4)


def test_a_result_that_others_are_made_of_is_computed_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(w: Any) -> Any:
        found = summed(X, w, dim=70, shapes={"loss": 1})
        return found * found

    with noted(device, monkeypatch) as names:
        value, gradient = sad.value_and_grad(loss)(W)
    assert [n for n in names if n.startswith("summed")] == ["summed_primal", "summed_bwd"]
    first, by_w = sad.value_and_grad(summed, argnums=1)(X, W, dim=70, shapes={"loss": 1})
    np.testing.assert_allclose(value.item(), first.item() ** 2, rtol=1e-5)
    np.testing.assert_allclose(gradient.numpy(), 2 * first.item() * by_w.numpy(), rtol=1e-5)


def test_checks_and_reports_are_made(device: sad.Device) -> None:
    with pytest.raises(sad.Error) as caught:
        sad.value_and_grad(summed)(X, W[:2], dim=70, shapes={"loss": 1})[0].numpy()
    assert caught.value.code == "SR0660"
    with pytest.raises(sad.Error) as caught:
        sad.value_and_grad(summed)(X, W * np.nan, dim=70, shapes={"loss": 1}, checks="nan")[
            0
        ].item()
    assert caught.value.code == "SR0666"


def loss_and_aux(x: Any, w: Any) -> Any:
    shifted = x * w
    return sad.sum(shifted * shifted), {"shifted": shifted, "rows": 70, "best": sad.argmax(shifted)}


def test_what_a_function_returns_beside_its_loss_comes_along(device: sad.Device) -> None:
    by_x, aux = sad.grad(loss_and_aux, has_aux=True)(sad.array(X), 2.0)
    np.testing.assert_allclose(by_x.numpy(), 8.0 * X, rtol=1e-6)
    np.testing.assert_allclose(aux["shifted"].numpy(), 2.0 * X)
    assert (aux["rows"], aux["best"].item()) == (70, np.argmax(X))

    (value, aux), (by_x, by_w) = sad.value_and_grad(loss_and_aux, (0, 1), has_aux=True)(X, 2.0)
    np.testing.assert_allclose(value.item(), 4.0 * np.sum(X * X), rtol=1e-6)
    np.testing.assert_allclose(aux["shifted"].numpy(), 2.0 * X)
    np.testing.assert_allclose(by_x.numpy(), 8.0 * X, rtol=1e-6)
    np.testing.assert_allclose(by_w.item(), 4.0 * np.sum(X * X), rtol=1e-6)


def test_aux_inside_of_graphs_kernels_and_other_transforms(device: sad.Device) -> None:
    @sad.graph
    def step(x: Any) -> Any:
        (value, aux), gradient = sad.value_and_grad(loss_and_aux, has_aux=True)(x, 2.0)
        return value, aux["shifted"], gradient

    value, shifted, gradient = step(sad.array(X))
    np.testing.assert_allclose(value.item(), 4.0 * np.sum(X * X), rtol=1e-6)
    np.testing.assert_allclose(shifted.numpy(), 2.0 * X)
    np.testing.assert_allclose(gradient.numpy(), 8.0 * X, rtol=1e-6)

    def through_aux(x: Any) -> Any:
        gradient, aux = sad.grad(loss_and_aux, has_aux=True)(x, 2.0)
        return sad.sum(gradient * aux["shifted"])  # 16 x^2

    np.testing.assert_allclose(sad.grad(through_aux)(sad.array(X)).numpy(), 32.0 * X, rtol=1e-5)
    rows = np.stack([X, -X])
    gradients, aux = sad.vmap(lambda x: sad.grad(loss_and_aux, has_aux=True)(x, 2.0))(rows)
    np.testing.assert_allclose(gradients.numpy(), 8.0 * rows, rtol=1e-6)
    np.testing.assert_allclose(aux["shifted"].numpy(), 2.0 * rows)

    call = {"dim": 70, "shapes": {"total": 1}}
    by_x, doubled = sad.grad(total_and_own, has_aux=True)(X, **call)
    np.testing.assert_allclose(by_x.numpy(), 2.0 * X, rtol=1e-6)
    np.testing.assert_allclose(doubled.numpy(), 2.0 * X)


@sad.kernel
def total_and_own(
    i: sad.Index, x: sad.In[float], total: sad.Add[float], own: sad.Out[float]
) -> None:
    total[0] += x[i] * x[i]
    own[i] = 2.0 * x[i]


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: sad.sum(x), "SR0481"),
        (lambda x: [sad.sum(x), x], "SR0481"),
        (lambda x: (sad.sum(x), x, x), "SR0481"),
        (lambda x: (x, sad.sum(x)), "SR0457"),
    ],
)
def test_what_is_no_loss_with_aux_is_refused(function: Any, code: str, device: sad.Device) -> None:
    for transform in (sad.grad, sad.value_and_grad):
        with pytest.raises(sad.DerivativeError, match=code):
            transform(function, has_aux=True)(X)
    with pytest.raises(sad.DerivativeError, match="SR0457"):
        sad.grad(loss_and_aux)(X, 2.0)
