"""`cumsum`, `cumprod`, `diff`, traced and on devices: NumPy's, and with their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.tracing import check_derivatives, run, trace

X = np.random.default_rng(0).normal(size=(2, 3, 5))


def expected(x: Any, axis: int, reverse: bool) -> Any:
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_is_numpys(axis: int, reverse: bool) -> None:
    found = run(lambda x: sad.cumsum(x, axis=axis, reverse=reverse), X)
    np.testing.assert_allclose(found, expected(X, axis, reverse), rtol=1e-13)
    check_derivatives(lambda x: sad.cumsum(x * x, axis=axis, reverse=reverse), X, order=2)


def test_cumsum_counts_bools_adds_ints_and_keeps_empty_axes() -> None:
    ints = np.array([3, -1, 4])
    np.testing.assert_array_equal(run(sad.cumsum, ints), [3, 2, 6])
    counts = run(lambda x: sad.cumsum(x > 0.0, -1), X[0])
    assert counts.dtype.kind == "i"
    np.testing.assert_array_equal(counts, np.cumsum(X[0] > 0.0, -1))
    assert run(lambda x: sad.cumsum(x, axis=0), X[:0]).shape == (0, 3, 5)


WITH_ZEROS = np.where(np.abs(X) < 0.3, 0.0, X)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumprod_is_numpys_and_right_at_zeros(axis: int, reverse: bool) -> None:
    for x in (X, WITH_ZEROS):
        found = run(lambda x: sad.cumprod(x, axis=axis, reverse=reverse), x)
        flipped = np.flip(x, axis) if reverse else x
        wanted = np.cumprod(flipped, axis)
        np.testing.assert_allclose(found, np.flip(wanted, axis) if reverse else wanted, rtol=1e-13)
        check_derivatives(lambda x: sad.cumprod(x, axis=axis, reverse=reverse), x, order=2)


def test_cumprod_of_bools_ints_and_empty_axes() -> None:
    np.testing.assert_array_equal(run(sad.cumprod, np.array([3, -1, 4])), [3, -3, -12])
    bools = run(lambda x: sad.cumprod(x > -1.0, -1), X[0])
    assert bools.dtype.kind == "i"
    np.testing.assert_array_equal(bools, np.cumprod(X[0] > -1.0, -1))
    assert run(lambda x: sad.cumprod(x, 2), X[..., :0]).shape == (2, 3, 0)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
def test_diff_is_numpys(axis: int, n: int) -> None:
    found = run(lambda x: sad.diff(x, n, axis), X)
    np.testing.assert_allclose(found, np.diff(X, n, axis), rtol=1e-12)
    assert found.shape == np.diff(X, n, axis).shape
    check_derivatives(lambda x: sad.diff(x * x, n=n, axis=axis), X, order=2)


def test_diff_of_bools_ints_and_what_came_from_cumsum() -> None:
    np.testing.assert_array_equal(run(lambda x: sad.diff(x > 0.0), X), np.diff(X > 0.0))
    np.testing.assert_array_equal(run(sad.diff, np.array([1, 4, 2])), [3, -2])
    np.testing.assert_allclose(
        run(lambda x: sad.diff(sad.cumsum(x, -1)), X), X[..., 1:], rtol=1e-12
    )
    assert run(sad.diff, X[..., :0]).shape == (2, 3, 0)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: sad.cumprod(x, axis=3), "SR0323"),
        (lambda x: sad.diff(x, axis=3), "SR0323"),
        (lambda x: sad.diff(x, -1), "SR0371"),
        (lambda x: sad.diff(x, 0.5), "SR0370"),
        (lambda x: sad.diff(x, x.shape[0]), "SR0320"),
    ],
)
def test_what_does_not_fit_is_refused(function: Any, code: str) -> None:
    with pytest.raises(sad.Error) as raised:
        trace(function, X)
    assert raised.value.code == code


OF_SEVERAL_AXES: dict[str, Any] = {
    "cumsum": lambda x, *axis: sad.cumsum(x, *axis),
    "cumprod": lambda x, *axis: sad.cumprod(x, *axis),
    "roll": lambda x, *axis: sad.roll(x, 1, *axis),
    "sort": lambda x, *axis: sad.sort(x, *axis),
    "argsort": lambda x, *axis: sad.argsort(x, *axis),
    "scan": lambda x, *axis: sad.scan(sad.add, x, **dict(zip(["axis"], axis, strict=False))),
}


@pytest.mark.parametrize("name", OF_SEVERAL_AXES)
def test_an_array_with_several_axes_needs_one(name: str) -> None:
    function = OF_SEVERAL_AXES[name]
    with pytest.raises(sad.ShapeError, match="SR0833") as raised:
        trace(function, X)
    assert f"`sad.{name}`" in str(raised.value)
    by_name = {"scan": np.cumsum, "roll": lambda x, axis: np.roll(x, 1, axis)}
    numpys = by_name.get(name) or getattr(np, name)
    np.testing.assert_allclose(run(lambda x: function(x, 1), X), numpys(X, axis=1))
    np.testing.assert_allclose(run(function, X[0, 0]), numpys(X[0, 0], axis=0))
    rows = run(sad.vmap(sad.vmap(function)), X)  # each row is an array with one axis
    np.testing.assert_allclose(rows, numpys(X, axis=-1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: sad.scan(lambda c, row: (c + row, c), 0.0, x),
        lambda x: sad.scan(lambda c, row: (c, row), 0.0, xs=x),
        lambda x: sad.scan(lambda c, row: (c, row), x, length=3),
        lambda x: sad.associative_scan(lambda c, row: (c, row), 0.0, x),
    ],
)
def test_the_scan_of_jax_is_recognised(call: Any) -> None:
    with pytest.raises(sad.LanguageError, match=r"SR0834(?s:.*)`sad\.loop\(f, init, xs\)`"):
        trace(call, X[0, 0])


@pytest.mark.parametrize(("given", "code"), [(np.float64(1.0), "SR0323"), (X, "SR0323")])
def test_an_axis_that_is_not_there_is_refused(given: Any, code: str) -> None:
    with pytest.raises(sad.ShapeError) as raised:
        trace(lambda x: sad.cumsum(x, axis=3), given)
    assert raised.value.code == code


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 3, 1001])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_on_devices_at_once_and_in_a_graph(
    count: int, reverse: bool, device: sad.Device
) -> None:
    x = np.random.default_rng(count).normal(size=(2, count))
    x_dot, y_bar = np.random.default_rng(0).normal(size=(2, 2, count))

    def compute(x: sad.Array) -> sad.Array:
        return sad.cumsum(x, 1, reverse=reverse)

    for function in (compute, sad.graph(compute)):
        y, y_dot = sad.jvp(function, (sad.array(x),), (sad.array(x_dot),))
        np.testing.assert_allclose(y.numpy(), expected(x, -1, reverse), atol=1e-4)
        np.testing.assert_allclose(y_dot.numpy(), expected(x_dot, -1, reverse), atol=1e-4)
        (x_bar,) = sad.vjp(function, sad.array(x))[1](y_bar)
        np.testing.assert_allclose(x_bar.numpy(), expected(y_bar, -1, not reverse), atol=1e-4)


@pytest.mark.gpu
def test_cumsum_on_devices_of_ints_bools_vectors_and_nothing(device: sad.Device) -> None:
    np.testing.assert_array_equal(sad.cumsum([2**31 - 1, 1]).numpy(), [2**31 - 1, -(2**31)])
    np.testing.assert_array_equal(sad.cumsum([True, False, True], reverse=True).numpy(), [2, 1, 1])
    vectors = sad.array(X[0, :, :2], dtype=sad.float2)
    np.testing.assert_allclose(sad.cumsum(vectors).numpy(), np.cumsum(X[0, :, :2], 0), atol=1e-5)
    assert sad.cumsum(sad.zeros((2, 0)), -1).shape == (2, 0)
    assert sad.grad(lambda x: sad.sum(sad.cumsum(x)))(sad.zeros(0)).shape == (0,)
    sad.gradcheck(lambda x: sad.sum(sad.cumsum(x) ** 2), X[0, 0])
