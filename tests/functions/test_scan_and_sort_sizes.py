"""Scans and sorts agree with NumPy at all sizes, as on a processor and as on a GPU.

Draws are made so that every order of operations gives the same result: whole numbers of little sum,
and factors that are powers of two of bounded product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.devices import entered

pytestmark = pytest.mark.gpu

LONG = [pytest.param(n, marks=pytest.mark.slow) for n in (100_003, 4_194_305)]
LENGTHS = [1, 2, 63, 64, 65, 1000, *LONG]
INTS = (np.int32, np.uint32)
TYPES = (*INTS, np.float32, np.float16, np.float64)


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def runtime(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["software", "discrete"], scope="module")
def opened(runtime: str, request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """A device as it is, and one that says it is a GPU."""
    limits = {} if request.param == "software" else {"kind": request.param}
    with entered(runtime, limits) as device:
        yield device


def array_of(x: Any, device: sad.Device) -> sad.Array[Any]:
    """`x` on the device, in its own type."""
    needed = {np.float64: "double", np.float16: "half"}.get(x.dtype.type)
    if needed and needed not in device.capabilities.features:
        pytest.skip(f"{device} has no {needed}")
    return sad.array(x, dtype=sad.double) if needed == "double" else sad.array(x)


# -- scans --------------------------------------------------------------------------------------


@sad.function
def latest(a: int, b: int) -> int:
    """The latest number that is not 0: it does not commute."""
    return b if b != 0 else a


def addends(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Numbers whose partial sums `dtype` holds; integers wrap."""
    rng = np.random.default_rng([*shape, np.dtype(dtype).num])
    if dtype in INTS:
        return rng.integers(0, 2**32, shape, np.uint32).view(dtype)
    signs = rng.integers(-1, 2, shape)
    return np.where(rng.random(shape) < 0.01, signs, 0).astype(dtype)


def factors(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Numbers whose partial products are exact; those of integers are odd, so that none is 0."""
    rng = np.random.default_rng([*shape, 1])
    if dtype in INTS:
        return (rng.integers(0, 2**31, shape, np.uint32) * 2 + 1).view(dtype)
    powers = rng.integers(-3, 4, (*shape[:-1], shape[-1] + 1))
    signs = rng.choice([-1.0, 1.0], shape)
    return (np.exp2(np.diff(powers, axis=-1)) * signs).astype(dtype)


def of_numbers(x: Any, factor: Any) -> Any:
    return (
        sad.cumsum(x, -1),
        sad.cumsum(x, -1, reverse=True),
        sad.scan(sad.add, x, axis=-1, exclusive=True),
        sad.scan(sad.add, x, axis=-1, exclusive=True, reverse=True),
        sad.cumprod(factor, -1),
        sad.cumprod(factor, -1, reverse=True),
        sad.scan(sad.max, x, axis=-1),
        sad.scan(sad.min, x, axis=-1, reverse=True),
    )


def exact_numbers(x: Any, factor: Any) -> Any:
    def turned(f: Any, x: Any) -> Any:
        return f(x[..., ::-1])[..., ::-1]

    def sums(x: Any) -> Any:
        return np.cumsum(x, -1, dtype=x.dtype)

    def products(x: Any) -> Any:
        return np.cumprod(x, -1, dtype=x.dtype)

    return (
        sums(x), turned(sums, x), sums(x) - x, turned(sums, x) - x,
        products(factor), turned(products, factor),
        np.maximum.accumulate(x, -1),
        turned(lambda x: np.minimum.accumulate(x, -1), x),
    )  # fmt: skip


def check_scans(dtype: Any, shape: tuple[int, ...], device: sad.Device) -> None:
    args = addends(dtype, shape), factors(dtype, shape)
    results = sad.graph(of_numbers)(*(array_of(x, device) for x in args))
    for k, (result, exact) in enumerate(zip(results, exact_numbers(*args), strict=True)):
        np.testing.assert_array_equal(result.numpy(), exact, f"result {k}")


@pytest.mark.sample(16)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", TYPES)
def test_scans_of_all_types(dtype: Any, length: int, opened: sad.Device) -> None:
    check_scans(dtype, (length,), opened)


@pytest.mark.sample(6)
@pytest.mark.parametrize("shape", [(65, 2), (3, 1000), (2, 3, 65), (2, 100_003)], ids=str)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_scans_of_rows(dtype: Any, shape: tuple[int, ...], opened: sad.Device) -> None:
    check_scans(dtype, shape, opened)


@pytest.mark.sample(5)
@pytest.mark.parametrize("length", LENGTHS)
def test_scans_of_bools_and_by_functions(length: int, opened: sad.Device) -> None:
    rng = np.random.default_rng(length)
    flags = rng.random(length) < 0.5
    k = np.where(rng.random(length) < 0.01, rng.integers(1, 9, length), 0).astype(np.int32)
    counts, last = sad.graph(lambda f, k: (sad.cumsum(f), sad.scan(latest, k)))(flags, k)
    np.testing.assert_array_equal(counts.numpy(), flags.cumsum())
    at = np.maximum.accumulate(np.where(k != 0, np.arange(length), 0))
    np.testing.assert_array_equal(last.numpy(), k[at])


@pytest.mark.sample(5)
@pytest.mark.parametrize("length", LENGTHS)
def test_infinities_nans_and_zeros_in_scans(length: int, opened: sad.Device) -> None:
    x = addends(np.float32, (length,))
    x[length // 2] = np.inf
    extremes = np.where(x == 0, -0.0, x).astype(np.float32)
    extremes[length // 3] = np.nan
    x[length - length // 4 - 1] = np.nan

    def scans(x: Any, y: Any) -> Any:
        return (
            sad.cumsum(x),
            sad.cumsum(x, reverse=True),
            sad.scan(sad.max, y),
            sad.scan(sad.min, y),
        )

    forward, backward, most, least = (r.numpy() for r in sad.graph(scans)(x, extremes))
    np.testing.assert_array_equal(forward, x.cumsum())
    np.testing.assert_array_equal(backward, x[::-1].cumsum()[::-1])
    # NaN never wins.
    np.testing.assert_array_equal(most, np.fmax.accumulate(extremes))
    np.testing.assert_array_equal(least, np.fmin.accumulate(extremes))


def weighted_scans(x: Any, w: Any) -> Any:
    sums, before = sad.cumsum(x), sad.scan(sad.add, x, exclusive=True, reverse=True)
    return sad.sum((sums + 2.0 * before + sad.scan(sad.max, x)) * w)


@pytest.mark.sample(5)
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_scans(length: int, opened: sad.Device) -> None:
    """Many elements tie for the greatest, and the first of them takes the cotangent."""
    rng = np.random.default_rng(length)
    x = rng.integers(-3, 4 + length // 1000, length).astype(np.float32)
    w = rng.integers(-2, 3, length).astype(np.float32)
    wide = w.astype(np.float64)
    exact = wide[::-1].cumsum()[::-1] + 2 * (wide.cumsum() - wide)
    most = np.maximum.accumulate(x)
    is_new = np.concatenate([[True], x[1:] > most[:-1]])
    np.add.at(exact, np.maximum.accumulate(np.where(is_new, np.arange(length), 0)), wide)
    gradient = sad.graph(sad.grad(weighted_scans))(x, w).numpy()
    np.testing.assert_array_equal(gradient, exact)


@pytest.mark.sample(5)
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_products(length: int, opened: sad.Device) -> None:
    factor = factors(np.float32, (length,))
    w = np.random.default_rng(length).normal(size=length).astype(np.float32)
    totals = factor.astype(np.float64).cumprod() * w
    exact = totals[::-1].cumsum()[::-1] / factor
    gradient = sad.graph(sad.grad(lambda x, w: sad.sum(sad.cumprod(x) * w)))(factor, w).numpy()
    np.testing.assert_allclose(gradient, exact, atol=2e-5 * np.abs(exact).max())


# -- sorts --------------------------------------------------------------------------------------


def keys_of(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Keys of the whole range, many of them equal; of floats also NaN, infinities, and zeros.

    No subnormal numbers, which drivers may take for 0.
    """
    rng = np.random.default_rng([*shape, 2])
    size = np.dtype(dtype).itemsize
    words = rng.integers(0, 256, (*shape, size), np.uint8).view(f"u{size}")[..., 0]
    small = rng.integers(0, 9, shape)
    keys = np.where(rng.random(shape) < 0.5, words.view(dtype), small.astype(dtype))
    if np.issubdtype(dtype, np.floating):
        keys[np.abs(keys) < np.finfo(dtype).smallest_normal] = 0
        for number in (-0.0, np.inf, -np.inf, np.nan, -np.nan):
            keys[rng.random(shape) < 0.05] = number
    return keys


def order_of(keys: Any) -> Any:
    """The stable order, in which zeros are equal and NaN is last."""
    plain = np.where(keys == 0, np.zeros((), keys.dtype), keys)
    return np.argsort(plain, axis=-1, kind="stable")


def check_sorts(keys: Any, device: sad.Device) -> None:
    order, ordered = sad.graph(lambda x: (sad.argsort(x, -1), sad.sort(x, -1)))(
        array_of(keys, device)
    )
    exact = order_of(keys)
    np.testing.assert_array_equal(order.numpy(), exact)
    wanted, result = np.take_along_axis(keys, exact, -1), ordered.numpy()
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(np.signbit(result[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.sample(16)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", TYPES)
def test_sorts_of_all_types(dtype: Any, length: int, opened: sad.Device) -> None:
    check_sorts(keys_of(dtype, (length,)), opened)


@pytest.mark.sample(5)
@pytest.mark.slow
@pytest.mark.parametrize("shape", [(65, 2), (3, 1000), (2, 3, 65), (2, 100_003)], ids=str)
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_sorts_of_rows(dtype: Any, shape: tuple[int, ...], opened: sad.Device) -> None:
    check_sorts(keys_of(dtype, shape), opened)


@pytest.mark.sample(5)
@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_sorts(length: int, opened: sad.Device) -> None:
    """Equal keys keep their order, and so do their cotangents."""
    keys = keys_of(np.float32, (length,))
    w = np.random.default_rng(length).normal(size=length).astype(np.float32)
    gradient = sad.graph(sad.grad(lambda x, w: sad.sum(sad.sort(x) * w)))(keys, w).numpy()
    np.testing.assert_array_equal(gradient[order_of(keys)], w)
