"""Functions of one element, traced: results as NumPy's, types as the kernel language's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from tests.functions.test_activations import gradient
from tests.tracing import check_derivatives, run, trace

X = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])
Y = np.array([2.0, 0.5, -4.0])
K = np.array([3, -1, 2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: 2.0 - x * y,
        lambda x, y: x / y,
        lambda x, y: x // y,
        lambda x, y: -x + abs(y),
        lambda x, y: (x < y) | (x == 0.5),
        lambda x, y: x**3 + 2**y,
        lambda x, y: x % 3.0,
        lambda x, y: y[:, None] * x[0],
    ],
)
def test_arithmetic_broadcasts_as_numpy_does(function: Callable[..., Any]) -> None:
    np.testing.assert_allclose(run(function, X, Y), function(X, Y), rtol=1e-12)


def test_int_mixes_into_float_and_divides_truly() -> None:
    np.testing.assert_allclose(run(lambda y, k: y * k, Y, K), Y * K)
    np.testing.assert_allclose(run(lambda k: k / 2, K), K / 2)
    assert run(lambda k: k * 2, K).dtype.kind == "i"


def test_primitives_work_by_element() -> None:
    found = run(lambda x, y: sad.lerp(x, y, 0.25), X, Y)
    np.testing.assert_allclose(found, X + (Y - X) * 0.25)


def test_where_chooses_by_element() -> None:
    found = run(lambda x: sad.where(x > 0.0, x, 0.0), X)
    np.testing.assert_array_equal(found, np.where(X > 0, X, 0))


@pytest.mark.gpu
def test_where_without_values_says_what_selects(device: sad.Device) -> None:
    with pytest.raises(sad.ShapeError, match="a condition and two values") as raised:
        sad.where([True, False])  # pyright: ignore[reportCallIssue]
    assert raised.value.code == "SR0388"
    assert "`sad.compact(x, mask)`" in raised.value.help
    found = sad.where(condition=np.array([True, False]), a=1.0, b=2.0)
    np.testing.assert_array_equal(found.numpy(), [1.0, 2.0])


def test_casts_follow_the_kernel_language() -> None:
    np.testing.assert_array_equal(run(lambda x: sad.cast(x, int), X), X.astype(int))
    assert run(lambda k: sad.cast(k, float), K).dtype.kind == "f"


def test_components_of_vectors_are_selected_and_put_together() -> None:
    found = run(lambda v: sad.float2(v.z, v.x * 2.0), X, dtype=float3)
    np.testing.assert_array_equal(found, np.stack([X[:, 2], X[:, 0] * 2], 1))
    np.testing.assert_array_equal(run(lambda v: v.zy, X, dtype=float3), X[:, [2, 1]])


def test_detach_stops_derivatives() -> None:
    check_derivatives(lambda x: sad.where(x > 1e9, x, sad.detach(x * 0.0) + x * x), Y)


def test_derivatives_follow_broadcasting() -> None:
    check_derivatives(lambda x, y: x * y + sad.sin(x) / (2.0 + y * y), X, Y)


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda x, k: k & x, "SR0304"),
    (lambda x, k: x / 0, "SR0314"),
    (lambda x, k: x + x[:, :2], "SR0379"),
    (lambda x, k: sad.where(x, x, x), "SR0305"),
    (lambda x, k: sad.where(x > 0.0), "SR0388"),  # pyright: ignore[reportCallIssue]
    (lambda x, k: sad.where(x > 0.0, 1.0), "SR0388"),  # pyright: ignore[reportCallIssue]
    (lambda x, k: sad.where(condition=x > 0.0, a=1.0), "SR0388"),  # pyright: ignore[reportCallIssue]
    (lambda x, k: sad.cast(x, float3).w, "SR0290"),
    (lambda x, k: bool(x[0, 0] > 0.0), "SR0321"),
    (lambda x, k: x.numpy(), "SR0321"),
    (lambda x, k: float(x[0, 0]), "SR0321"),
    (lambda x, k: range(x.shape[0]), "SR0320"),
    (lambda x, k: 1 if x.shape[0] > 1 else 0, "SR0320"),
    (lambda x, k: len(x), "SR0320"),
    (lambda x, k: np.asarray(x), "SR0321"),
]


@pytest.mark.parametrize(("function", "code"), REFUSED)
def test_what_has_no_meaning_is_refused_at_its_line(
    function: Callable[..., Any], code: str
) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X, K)
    assert raised.value.code == code
    assert raised.value.span is not None
    assert raised.value.span.file == __file__


def test_an_array_cannot_leave_its_trace() -> None:
    kept: list[Any] = []
    trace(lambda x: kept.append(x), X)
    with pytest.raises(sad.LanguageError, match="SR0322"):
        kept[0] + 1.0


def test_vectors_of_bools_choose_by_component() -> None:
    v = np.array([[1.0, -2.0, 3.0], [-1.0, 5.0, -6.0]])
    mask = v > 0
    vectors = {
        "vectors": (lambda v: sad.where(v > 0.0, v, -v), np.abs(v)),
        "a number": (lambda v: sad.where(v > 0.0, v, 0), np.where(mask, v, 0)),
        "numbers": (lambda v: sad.where(v > 0.0, 1, 0.5) * v, np.where(mask, 1, 0.5) * v),
        "of the host": (
            lambda v: sad.where(sad.bool3(True, False, True), v, 0.0),
            v * [1, 0, 1],
        ),
        "one bool": (lambda v: sad.where(v.x > 0.0, v, 0.0), v * mask[:, :1]),
        "a bool of Python": (lambda v: sad.where(True, v, 0.0), v),
        "the other one": (lambda v: sad.where(False, v, 0.0), 0 * v),
    }
    for name, (function, expected) in vectors.items():
        np.testing.assert_array_equal(run(function, v, dtype=float3), expected, err_msg=name)
    taken = gradient(lambda v: sad.where(v > 0.0, v * v, sad.sqrt(-v)), v, np.ones_like(v), float3)
    np.testing.assert_allclose(taken, np.where(mask, 2 * v, -0.5 / np.sqrt(np.abs(v))))
    with pytest.raises(sad.LanguageError, match="SR0303"):
        trace(lambda v: sad.where(v > 0.0, sad.float2(1, 2), 0.0), v, dtype=float3)


@pytest.mark.gpu
def test_inverse_hyperbolic_functions_of_large_numbers(device: sad.Device) -> None:
    """Their squares overflow."""
    x = np.float32([0.999e8, 1.001e8, 1e10, 1e19, 1e25, 3e38, np.inf])
    for ours, numpys in ((sad.asinh, np.arcsinh), (sad.acosh, np.arccosh)):
        wanted = numpys(x.astype(np.float64))
        np.testing.assert_allclose(ours(sad.array(x)).numpy(), wanted, rtol=3e-7)
        slopes = sad.grad(lambda x, f=ours: sad.sum(f(x)))(sad.array(x))
        np.testing.assert_allclose(slopes.numpy(), 1.0 / x, rtol=1e-6, atol=1e-38)
    np.testing.assert_allclose(sad.asinh(sad.array(-x)).numpy(), -np.arcsinh(x.astype(np.float64)))
    assert np.isnan(sad.acosh(sad.array(np.float32([0.5, -1.0, -5.0, -1e30]))).numpy()).all()
