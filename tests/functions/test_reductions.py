"""Reductions over axes, traced: as NumPy's, and with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2x2
from tests.functions.test_activations import gradient
from tests.tracing import check_derivatives, run, trace

X = np.array([[[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]] * 2) * [[[1.0]], [[1.5]]]


@sad.function
def twice_product(a: float, b: float) -> float:
    return 2.0 * a * b


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean"])
def test_reductions_are_numpys(name: str, axis: Any, keepdims: bool) -> None:
    ours = getattr(sad, name)
    expected = getattr(np, name)(X, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(run(lambda x: ours(x, axis=axis, keepdims=keepdims), X), expected)


def test_any_and_all_take_bools() -> None:
    assert run(lambda x: sad.any(x > 3.0), X)
    np.testing.assert_array_equal(run(lambda x: sad.all(x > -2.5, axis=2), X), (X > -2.5).all(2))
    assert run(lambda x: sad.sum(x > 0.0), X) == (X > 0).sum()


def test_the_first_extreme_has_the_position() -> None:
    x = np.array([3.0, 1.0, 1.0, 3.0])
    assert run(lambda x: sad.argmin(x), x) == 1
    assert run(lambda x: sad.argmax(x, axis=0), x) == 0


def test_a_function_reduces_from_its_init() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert run(lambda x: sad.reduce(twice_product, x, 0.5), x) == 6 * 4
    assert run(lambda x: sad.reduce(twice_product, x), x) == 6 * 4
    assert run(lambda x: sad.reduce(twice_product, x[:0], 0.5), x) == 0.5
    assert run(lambda x: sad.reduce(sad.add, x, 1), x) == 7


def test_matrices_are_multiplied_in_order() -> None:
    m = np.random.default_rng(0).normal(size=(4, 2, 2))
    found = run(lambda m: sad.reduce(sad.matmul, m), m, dtype=float2x2)
    np.testing.assert_allclose(found, m[0] @ m[1] @ m[2] @ m[3])


def test_empty_reductions_give_what_changes_nothing() -> None:
    x = np.zeros((2, 0))
    np.testing.assert_array_equal(run(lambda x: sad.sum(x, axis=1), x), [0, 0])
    np.testing.assert_array_equal(run(lambda x: sad.min(x, axis=1), x), [np.inf] * 2)


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean"])
def test_derivatives(name: str) -> None:
    ours = getattr(sad, name)
    check_derivatives(lambda x: ours(x * x + x, axis=(0, 2)), X)


def test_derivatives_of_functions() -> None:
    check_derivatives(lambda x: sad.reduce(twice_product, x, axis=1), X)


ODD_ROWS = [
    [-1e4, -1e4 - 1.0],
    [1e4, 1e4],
    [-np.inf, 0.5],
    [-np.inf, -np.inf],
    [np.inf, 0.5],
    [np.inf, -np.inf],
    [np.nan, 0.5],
    [np.inf, np.nan],
]
with np.errstate(invalid="ignore"):
    OF_ODD_ROWS = np.logaddexp.reduce(ODD_ROWS, axis=1)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp_is_numpys(axis: Any, keepdims: bool) -> None:
    expected = np.logaddexp.reduce(X, axis=axis, keepdims=keepdims)
    found = run(lambda x: sad.logsumexp(x, axis=axis, keepdims=keepdims), X)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_logsumexp_of_nothing_and_of_what_is_not_finite() -> None:
    rows = np.array(ODD_ROWS)
    found = run(lambda x: sad.logsumexp(x, axis=1), rows)
    np.testing.assert_allclose(found, OF_ODD_ROWS, rtol=1e-14)
    found = run(lambda x: sad.logsumexp(x, axis=1, keepdims=True), np.zeros((2, 0)))
    np.testing.assert_array_equal(found, [[-np.inf]] * 2)


def test_derivatives_of_logsumexp() -> None:
    check_derivatives(lambda x: sad.logsumexp(x * x + x, axis=(0, 2)), X, order=2)


def softmax(x: Any) -> Any:
    return np.exp(x - np.logaddexp.reduce(x, axis=-1)[..., None])


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 3, 1001])
def test_logsumexp_on_devices_at_once_and_in_a_graph(count: int, device: sad.Device) -> None:
    x = np.random.default_rng(count).normal(scale=30.0, size=(2, count))
    x_dot = np.random.default_rng(0).normal(size=x.shape)

    def compute(x: sad.Array) -> sad.Array:
        return sad.logsumexp(x, axis=-1)

    for function in (compute, sad.graph(compute)):
        out, out_dot = sad.jvp(function, (sad.array(x),), (sad.array(x_dot),))
        np.testing.assert_allclose(out.numpy(), np.logaddexp.reduce(x, axis=-1), rtol=1e-5)
        np.testing.assert_allclose(out_dot.numpy(), (softmax(x) * x_dot).sum(-1), atol=1e-4)
        _, pullback = sad.vjp(function, sad.array(x))
        np.testing.assert_allclose(pullback([1.0, -2.0])[0].numpy(), softmax(x) * [[1], [-2]],
                                   rtol=1e-3, atol=1e-5)  # fmt: skip


@pytest.mark.gpu
def test_logsumexp_on_devices_of_odd_elements(device: sad.Device) -> None:
    rows = np.array(ODD_ROWS)
    found = sad.logsumexp(sad.array(rows), axis=1).numpy()
    np.testing.assert_allclose(found, OF_ODD_ROWS, rtol=1e-6)
    gradient = sad.grad(lambda x: sad.sum(sad.logsumexp(x, axis=1)[:6]))(sad.array(rows)).numpy()
    np.testing.assert_allclose(gradient[:3], softmax(rows[:3]), rtol=1e-3)
    np.testing.assert_array_equal(gradient[3:], 0.0)
    assert float(sad.logsumexp(sad.zeros(0))) == -np.inf
    assert sad.grad(sad.logsumexp)(sad.zeros(0)).shape == (0,)
    np.testing.assert_allclose(float(sad.logsumexp([1, 2])), np.logaddexp(1, 2), rtol=1e-6)
    np.testing.assert_allclose(float(sad.logsumexp([True, False])), np.logaddexp(1, 0), rtol=1e-6)
    vectors = sad.array([[1.0, -np.inf], [2.0, -np.inf]], dtype=sad.float2)
    np.testing.assert_allclose(sad.logsumexp(vectors).numpy(), [np.logaddexp(1, 2), -np.inf],
                               rtol=1e-6)  # fmt: skip
    sad.gradcheck(lambda x: sad.logsumexp(x * x, axis=0), X[0])


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x: sad.sum(x, axis=3), "SR0323"),
    (lambda x: sad.sum(x, axis=(0, 0)), "SR0323"),
    (lambda x: sad.reduce(max, x), "SR0325"),
    (lambda x: sad.any(x), "SR0326"),
    (lambda x: sad.reduce(sad.matmul, x), "SR0326"),
    (lambda x: sad.reduce(twice_product, x > 0.0), "SR0326"),
    (lambda x: sad.mean(x[:0]), "SR0327"),
    (lambda x: sad.argmin(x[:0]), "SR0327"),
    (lambda x: sad.logsumexp(x, axis=3), "SR0323"),
    (lambda x: sad.reduce(twice_product, x[:0]), "SR0327"),
    (lambda x: sad.reduce(sad.add, x, x > 0.0), "SR0330"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_does_not_fit_is_refused(function: Callable[..., Any], code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


@sad.function
def element_of(table: sad.In[float], k: int) -> float:
    return table[k]


@pytest.mark.gpu
def test_functions_of_arrays_are_no_operators(device: sad.Device) -> None:
    with pytest.raises(sad.LanguageError) as caught:
        sad.map(element_of, sad.array(X[0, 0], device=device), sad.array([0, 1, 2], device=device))
    assert caught.value.code == "SR0331"
    assert "`table`" in str(caught.value)


NAN = float("nan")
PAIRS = np.array([[1.0, -2.0, 0.0, NAN, 2.0], [0.0, -1.0, 0.0, 3.0, NAN]])


def test_the_larger_of_two_is_by_element_and_the_first_of_a_tie_takes_the_derivative() -> None:
    a, b = PAIRS
    for ours, numpys in ((sad.maximum, np.fmax), (sad.minimum, np.fmin)):
        np.testing.assert_array_equal(run(ours, a, b), numpys(a, b))
        np.testing.assert_array_equal(run(lambda x, f=ours: f(x, 0), a), numpys(a, 0))
        np.testing.assert_array_equal(ours(a, 0), numpys(a, 0))
        taken = gradient(lambda x, f=ours: f(x, b), a, np.ones(5))
        np.testing.assert_array_equal(taken, (numpys(a, b) == a) * 1.0)
        check_derivatives(lambda x, y, f=ours: f(x, y) * x, X, X[::-1] * 0.9, order=2)
    np.testing.assert_array_equal(run(lambda x: sad.reduce(sad.maximum, x, axis=0), X), X.max(0))
    for wrong in (lambda: sad.maximum(a), lambda: sad.maximum(a, axis=0)):
        with pytest.raises(sad.LanguageError):
            wrong()


def test_clip_keeps_within_the_bounds_that_are_given() -> None:
    a, b = PAIRS
    ours: list[tuple[Any, Any]] = [
        (lambda x: sad.clip(x, -0.5, 1.5), np.fmin(np.fmax(a, -0.5), 1.5)),
        (lambda x: sad.clip(x, min=0), np.fmax(a, 0)),
        (lambda x: sad.clip(x, None, 0.5), np.fmin(a, 0.5)),
        (lambda x: sad.clip(x, max=b), np.fmin(a, b)),
        (lambda x: sad.clip(x, b, b + 1.0), np.fmin(np.fmax(a, b), b + 1.0)),
        (lambda x: sad.clip(x), a),
    ]
    for clip, wanted in ours:
        np.testing.assert_array_equal(run(clip, a), wanted)
        np.testing.assert_array_equal(clip(a), wanted)
    taken = gradient(lambda x: sad.clip(x, -2.0, 1.5), a, np.ones(5))
    np.testing.assert_array_equal(taken, (a >= -2.0) & (a <= 1.5))
    check_derivatives(lambda x: sad.clip(x, -0.8, 0.9) * x, X, order=2)
    with pytest.raises(sad.CallError, match=r"SR0292(?s:.*)`max`"):
        trace(lambda x: sad.clip(x, 0.0, a_max=1.0), X)


@sad.function
def clamped(x: float) -> float:
    return sad.max(x, 0) + sad.maximum(x, 1) * sad.minimum(2, x)


def test_an_array_and_a_bare_int_are_no_axis_by_chance() -> None:
    lists: list[Any] = [X, X.tolist(), (1.0, 2.0)]
    for name, x in [(name, x) for name in ("max", "min") for x in lists]:
        function = getattr(sad, name)
        wrong = [lambda f=function, x=x: f(x, 0), lambda f=function: trace(lambda y: f(y, -1), X)]
        wrong.append(lambda f=function: trace(lambda y: f(y, y.shape[0]), X))
        for call in wrong:
            with pytest.raises(sad.ShapeError) as raised:
                call()
            assert raised.value.code == "SR0831"
            for remedy in ("axis=", f"`sad.{name}imum(x, ", "`sad.relu(x)`"):
                assert remedy in raised.value.help
    # Values without axes, floats, and the first operand mean no axis.
    assert run(lambda x: sad.max(sad.sum(x), 100), X) == 100
    np.testing.assert_array_equal(run(lambda x: sad.max(0, x), X), X.clip(0))
    np.testing.assert_array_equal(run(lambda x: sad.max(x, 0.0), X), X.clip(0))
    np.testing.assert_array_equal(run(lambda x: sad.map(lambda e: sad.max(e, 0), x), X), X.clip(0))
    np.testing.assert_array_equal(sad.max(sad.float3(1, -1, 2), 0), [1, 0, 2])
    expected = X.clip(0) + X.clip(1) * X.clip(None, 2)
    np.testing.assert_array_equal(clamped(X), expected)
    np.testing.assert_array_equal(run(lambda x: sad.map(clamped, x), X), expected)
    assert [clamped(x) for x in (-1.0, 3.0)] == [-1.0, 9.0]
