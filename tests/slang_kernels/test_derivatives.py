"""Derivatives of kernels in Slang, in calls, graphs, loops and batches, against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.slang_kernels.kernels import (
    MIX,
    differences,
    mix_kernel,
    mix_of,
    pulled_mix,
    shade,
)
from tests.slang_kernels.test_calls import shade_arguments

pytestmark = pytest.mark.gpu
mix = mix_kernel()
K = 0.7


def example(count: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 33, 101])
def test_pullback_and_pushforward(device: sad.Device, count: int) -> None:
    x, bar = example(count), example(count, 1)
    _, pullback = sad.vjp(mix, x, K, dim=count)
    x_bar, k_bar = pulled_mix(x, K, bar)
    gradients = pullback(bar)
    np.testing.assert_allclose(gradients[0].numpy(), x_bar, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradients[1].item(), k_bar, rtol=1e-4, atol=1e-5)
    _, moved = sad.jvp(mix, (x, K), (bar, 2.0), dim=count)
    wanted = 2 * K * x * bar + 2 * x * x + np.append(bar[1:], np.zeros(min(count, 1)))
    np.testing.assert_allclose(moved.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_tangent_of_one_input(device: sad.Device) -> None:
    x = example()
    _, moved = sad.jvp(mix, (x, K), (None, 1.0), dim=9)
    np.testing.assert_allclose(moved.numpy(), x * x, rtol=1e-5, atol=1e-6)
    _, moved = sad.jvp(mix, (x, K), (x, None), dim=9)
    np.testing.assert_allclose(moved.numpy(), 2 * K * x * x + np.append(x[1:], 0), rtol=1e-5)


def test_gradients_that_are_summed(device: sad.Device) -> None:
    x, bar = example(), example(seed=1)
    sums = (sad.array(np.full(9, 2.0, np.float32)), sad.array(np.float32(3.0)))
    sad.vjp(mix, x, K, dim=9)[1](bar, accumulate=sums)
    x_bar, k_bar = pulled_mix(x, K, bar)
    np.testing.assert_allclose(sums[0].numpy(), 2 + x_bar, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums[1].item(), 3 + k_bar, rtol=1e-5)


def test_gradcheck_judges_the_users_derivatives(device: sad.Device) -> None:
    x = example()
    sad.gradcheck(mix, x, K, dim=9)
    wrong = MIX.replace("2 * k * x[i] * bar", "3 * k * x[i] * bar")
    with pytest.raises(sad.GradientError, match="the gradient of `x` is wrong"):
        sad.gradcheck(mix_kernel(wrong, forward=None), x, K, dim=9)


def test_structs_and_axes(device: sad.Device) -> None:
    arguments, call = shade_arguments()
    sad.gradcheck(shade, *arguments, **call)


def _bump(x: Any) -> Any:
    return x / (1.0 + x * x)  # exact on SwiftShader, unlike its sine


def _loop(x: Any, k: Any) -> Any:
    def body(_: Any, y: Any) -> Any:
        return 0.5 * mix(y, k, dim=x.shape[0])

    y = sad.fori_loop(3, body, _bump(x))
    return sad.sum(y * y)


def _checkpoint(x: Any, k: Any) -> Any:
    def inner(x: Any) -> Any:
        return _bump(mix(x, k, dim=x.shape[0]))

    y = sad.checkpoint(inner)(x)
    return sad.sum(y * y)


def _loop_of(x: np.ndarray, k: float) -> float:
    y = _bump(x)
    for _ in range(3):
        y = 0.5 * mix_of(y, k)
    return float((y * y).sum())


def _checkpoint_of(x: np.ndarray, k: float) -> float:
    return float((_bump(mix_of(x, k)) ** 2).sum())


@pytest.mark.parametrize(("f", "oracle"), [(_loop, _loop_of), (_checkpoint, _checkpoint_of)])
@pytest.mark.parametrize("is_graph", [False, True])
def test_array_functions(
    device: sad.Device,
    f: Callable[..., Any],
    oracle: Callable[..., float],
    is_graph: bool,
) -> None:
    x = example()
    value, gradients = sad.value_and_grad(sad.graph(f) if is_graph else f, argnums=(0, 1))(x, K)
    wanted = differences(oracle, x, K)
    np.testing.assert_allclose(value.item(), oracle(x.astype(float), K), rtol=1e-5)
    np.testing.assert_allclose(gradients[0].numpy(), wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients[1].item(), wanted[1], rtol=1e-4)


def _of_array(x: Any) -> Any:
    return mix(x, K, dim=9)


def _loss(x: Any) -> Any:
    return _loop(x, K)


def test_batches(device: sad.Device) -> None:
    x = np.stack([example(seed=seed) for seed in range(3)])
    y = sad.vmap(_of_array)(x).numpy()
    np.testing.assert_allclose(y, [mix_of(row, K) for row in x], rtol=1e-5, atol=1e-6)
    gradients = sad.vmap(sad.grad(_loss))(x).numpy()
    wanted = [differences(_loop_of, row, K)[0] for row in x]
    np.testing.assert_allclose(gradients, wanted, rtol=1e-4, atol=1e-5)
    jacobian = sad.jacobian(_of_array)(x[0]).numpy()
    exact = np.diag(2 * K * x[0]) + np.eye(9, k=1)
    np.testing.assert_allclose(jacobian, exact, rtol=1e-5, atol=1e-6)


def test_gradient_of_chosen_arguments(device: sad.Device) -> None:
    # A backward function needs only the gradients that are asked for.
    without_x = MIX.replace("Add<float> x_bar, ", "").replace("x_bar.add(", "max(")
    kernel = mix_kernel(without_x)

    def loss(x: Any, k: Any) -> Any:
        return sad.sum(kernel(x, k, dim=9))

    x = example()
    np.testing.assert_allclose(sad.grad(loss, argnums=1)(x, K).item(), (x * x).sum(), rtol=1e-5)
    with pytest.raises(sad.DerivativeError, match="`mix_bwd` does not take `x_bar`") as caught:
        sad.grad(loss)(x, K)
    assert caught.value.code == "SR0421"


def test_transforms_without_a_function(device: sad.Device) -> None:
    x = example()
    with pytest.raises(sad.DerivativeError, match="no function `backward`") as caught:
        sad.vjp(mix_kernel(backward=None), x, K, dim=9)[1](x)
    assert caught.value.code == "SR0420"
    with pytest.raises(sad.DerivativeError, match="no function `forward`") as caught:
        sad.jvp(mix_kernel(forward=None), (x, K), (x, 1.0), dim=9)
    assert caught.value.code == "SR0420"


SCALE = """
void scale(uint i : SV_DispatchThreadID, In<T> x, T k, Add<float> total, Out<T> y)
{
    if (i >= x.length())
        return;
    y[i] = k * x[i];
    total.add(i % 2, 1);
}

void scale_bwd(uint i : SV_DispatchThreadID, In<T> x, T k, In<T> y_bar, Add<T> x_bar,
               Add<T> k_bar)
{
    if (i >= x.length())
        return;
    x_bar.add(i, k * y_bar[i]);
    k_bar.add(0, x[i] * y_bar[i]);
}
"""


def scale_kernel(element: str) -> Any:
    t: Any = {"float": float}.get(element) or getattr(sad, element)
    types = {"x": sad.In[t], "k": t, "y": sad.Out[t], "total": sad.Add[float]}
    source = SCALE.replace("<T>", f"<{element}>").replace("T k", f"{element} k")
    return sad.slang_kernel(source, "scale", types, group=64, backward="scale_bwd")


@pytest.mark.parametrize("element", ["float", "float3", "float2x2", "half", "half2"])
def test_types_of_elements(device: sad.Device, element: str) -> None:
    if "half" in element and "half" not in device.capabilities.features:
        pytest.skip("no half")
    axes = {"float3": (3,), "float2x2": (2, 2), "half2": (2,)}.get(element, ())
    dtype: Any = np.float16 if "half" in element else np.float32
    x: Any = np.arange(5 * np.prod(axes, dtype=int)).reshape(5, *axes).astype(dtype)
    call: dict[str, Any] = {"dim": 5, "shapes": {"total": (2,)}}
    # One result that holds floats has no cotangent, and its function takes none.
    with pytest.raises(sad.DerivativeError, match="`scale_bwd` does not take `total_bar`"):
        sad.vjp(scale_kernel(element), x, x[1], **call)[1]((x, [1.0, 1.0]))
    (y, total), pullback = sad.vjp(scale_kernel(element), x, x[1], **call)
    np.testing.assert_array_equal(y.numpy(), x * x[1])
    assert total.numpy().tolist() == [3.0, 2.0]
    x_bar, k_bar = pullback((np.ones_like(x), None))
    np.testing.assert_array_equal(x_bar.numpy(), np.broadcast_to(x[1], x.shape))
    np.testing.assert_array_equal(k_bar.numpy(), x.sum(0))


def test_gradients_of_doubles(device: sad.Device) -> None:
    if "double" not in device.capabilities.features:
        pytest.skip("no double")
    call: dict[str, Any] = {"dim": 2, "shapes": {"total": (2,)}}
    x = np.array([1.0, 1 / 3])
    (y, _), pullback = sad.vjp(scale_kernel("double"), x, 2.0, **call)
    np.testing.assert_array_equal(y.numpy(), 2 * x)
    with pytest.raises(sad.DerivativeError, match="in double") as caught:
        pullback((x, None))
    assert caught.value.code == "SR0423"


def test_second_derivatives(device: sad.Device) -> None:
    def of_gradient(x: Any) -> Any:
        return sad.sum(sad.grad(_loss)(x))

    x = example()
    with pytest.raises(sad.DerivativeError, match="has no second derivative") as caught:
        sad.hvp(_loss, (x,), (x,))
    assert caught.value.code == "SR0422"
    with pytest.raises(sad.DerivativeError, match="has no second derivative"):
        sad.grad(of_gradient)(x)
