"""Sums by index array on devices: types without atomics, and histograms with an init."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import double2, half2
from shaderad.device import lines
from shaderad.diagnostics import NO_SPAN

pytestmark = pytest.mark.gpu

I = np.array([3, 0, 9, -1, 3, 3, 0], np.int32)  # noqa: E741 - an index
X = np.float32([1.5, -2.0, 0.5, 3.0, 0.25, -1.5, 0.875])
INIT = np.float32([0.75, -0.5, 2.0, 1.25])
RTOL = {float: 1e-5, sad.half: 4e-3, sad.double: 1e-13}
"""A dozen operations in each; half keeps 11 bits."""
NUMPY = {sad.add: np.add, sad.mul: np.multiply, sad.min: np.minimum, sad.max: np.maximum}


@sad.function
def twice_product(a: float, b: float) -> float:
    return 2.0 * a * b


@sad.struct
class Particle:
    place: sad.float3
    number: int
    lives: bool
    mass: sad.half


def folded(op: Any, init: Any, values: Any) -> Any:
    """The histogram by a loop, in float64."""
    result = np.float64(init).copy()
    combine = NUMPY.get(op, lambda a, b: 2 * a * b)
    for j, k in enumerate(I[: len(values)]):
        if 0 <= k < len(result):
            result[k] = combine(result[k], values[j])
    return result


def differences(function: Any, x: Any, bar: Any) -> Any:
    """The pullback by central differences."""
    x = np.float64(x)
    moves = 1e-6 * np.eye(len(x))
    return np.array([((function(x + m) - function(x - m)) * bar).sum() / 2e-6 for m in moves])


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [float, sad.half, sad.double], ids=["float", "half", "double"])
@pytest.mark.parametrize("op", [*NUMPY, twice_product], ids=["add", "mul", "min", "max", "own"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_histograms_fold_their_init_in_once(
    device: sad.Device, op: Any, dtype: Any, count: int
) -> None:
    if op is twice_product and dtype is not float:
        pytest.skip("the function takes floats")

    @sad.graph
    def graph(init: sad.Array[dtype, "bins"], x: sad.Array[dtype, "n"], i: sad.Array[int, "n"]):
        return sad.segment_reduce(op, init, 4, i, x)

    x, i = sad.array(X[:count], dtype), sad.array(I[:count])
    init = sad.array(INIT, dtype)
    tolerance = {"rtol": RTOL[dtype], "atol": RTOL[dtype]}
    expected = folded(op, INIT, X[:count])
    at_once = sad.segment_reduce(op, init, 4, i, x)
    np.testing.assert_allclose(at_once.numpy(), expected, **tolerance)
    y, pullback = sad.vjp(graph, init, x, i)
    np.testing.assert_allclose(y.numpy(), expected, **tolerance)
    bar = np.float32([1.0, -0.5, 0.25, 2.0])
    init_bar, x_bar, _ = pullback(sad.array(bar, dtype))
    by_init = differences(lambda init: folded(op, init, X[:count]), INIT, bar)
    by_values = differences(lambda x: folded(op, INIT, x), X[:count], bar)
    close = {"rtol": max(RTOL[dtype], 1e-8), "atol": max(RTOL[dtype], 1e-8)}
    np.testing.assert_allclose(init_bar.numpy(), by_init, **close)
    np.testing.assert_allclose(x_bar.numpy(), by_values, **close)


def test_histograms_with_an_init_are_built(device: sad.Device, tmp_path: Path) -> None:
    source = tmp_path / "counts.py"
    source.write_text(
        "import shaderad as sad\n\n\n@sad.graph\n"
        'def counts(init: sad.Array[float, 4], x: sad.Array[float, "n"],\n'
        '           i: sad.Array[int, "n"]):\n'
        "    return sad.segment_reduce(sad.mul, init, 4, i, x)\n"
    )
    sad.build(source, tmp_path / "built", targets=("spirv", "wgsl"), validate=False)
    counts = sad.load(tmp_path / "built").counts
    expected = folded(sad.mul, INIT, X)
    np.testing.assert_allclose(counts(INIT, X, I).numpy(), expected, rtol=1e-5)
    _, pullback = sad.vjp(counts, INIT, X, I)
    bar = np.ones(4, np.float32)
    by_init = differences(lambda init: folded(sad.mul, init, X), INIT, bar)
    np.testing.assert_allclose(pullback(bar)[0].numpy(), by_init, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [0, 2, 3, 5])
def test_an_init_of_another_size_than_the_bins_is_refused(count: int, device: sad.Device) -> None:
    init = np.full(count, 2.0, np.float32)

    @sad.graph
    def graph(init: sad.Array[float]) -> sad.Array[float]:
        return sad.segment_reduce(sad.mul, init, 4, I, X)

    for call in (lambda: sad.segment_reduce(sad.mul, init, 4, I, X), lambda: graph(init)):
        with pytest.raises(sad.ShapeError, match="SR0349"):
            call()


def twice_at(x: Any) -> Any:
    return x[np.array([3, 0, 3, 1])]


SUMS: dict[str, Any] = {
    "gather": (twice_at, lambda x: x[[3, 0, 3, 1]]),
    "sort": (lambda x: sad.sort(x) * x, lambda x: np.sort(x) * x),
    "scatter": (
        lambda x: sad.scatter(x, np.array([2, 0, 2]), x[1:4] * 2.0),
        lambda x: np.array([2 * x[2], x[1], 2 * x[3], *x[3:]]),
    ),
    "scatter_add": (
        lambda x: sad.scatter_add(x, np.array([2, 0, 2, 99, -1]), x[:5] * x[:5]),
        lambda x: x + np.array([x[1] ** 2, 0, x[0] ** 2 + x[2] ** 2, 0, 0, 0, 0]),
    ),
    "two index arrays": (
        lambda x: sad.broadcast_to(x, (2, 7))[np.array([0, 1, 1]), np.array([6, 2, 6])],
        lambda x: x[[6, 2, 6]],
    ),
}


@pytest.mark.parametrize("dtype", [sad.half, sad.double], ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_types_without_atomics_are_summed(device: sad.Device, name: str, dtype: Any) -> None:
    function, in_numpy = SUMS[name]
    x = sad.array(X, dtype)
    close = {"rtol": max(RTOL[dtype], 1e-8), "atol": max(RTOL[dtype], 1e-8)}
    for called in (function, sad.graph(function)):
        y, pullback = sad.vjp(called, x)
        np.testing.assert_allclose(y.numpy(), in_numpy(np.float64(X)), **close)
        bar = np.linspace(-1, 1, y.shape[0], dtype=np.float32)
        gradient = pullback(sad.array(bar, dtype))[0].numpy()
        np.testing.assert_allclose(gradient, differences(in_numpy, X, bar), **close)


def test_halves_are_summed_in_32_bits(device: sad.Device) -> None:
    # One by one in half, 2048 + 1 + 1 + ... stays at 2048.
    values = sad.array(np.ones(512, np.float16), sad.half)
    base = sad.array(np.float16([2048.0]), sad.half)
    total = sad.scatter_add(base, np.zeros(512, np.int32), values)
    np.testing.assert_array_equal(total.numpy(), [2560.0])


def test_zeros_are_left_out_of_sums_and_nothing_else_is(device: sad.Device) -> None:
    x = np.float32([0.0, -0.0, 1e-45, 1.0, -0.0, np.nan, np.inf, -np.inf, 0.0, np.inf, 2.0**-126])
    bins = np.int32([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5])
    found = sad.scatter_add(np.zeros(6, np.float32), bins, x).numpy()
    wanted = np.zeros(6, np.float32)
    with np.errstate(invalid="ignore"):
        np.add.at(wanted, bins, x)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [half2, double2], ids=["half2", "double2"])
def test_vectors_are_summed(device: sad.Device, dtype: Any) -> None:
    x = sad.array(X[:6].reshape(3, 2), dtype)
    _, pullback = sad.vjp(lambda x: x[np.array([2, 0, 2])], x)
    gradient = pullback(sad.array(np.float32([[1, 2], [3, 4], [5, 6]]), dtype))[0]
    np.testing.assert_array_equal(gradient.numpy(), [[3, 4], [0, 0], [6, 8]])


def test_structs_of_several_types_have_gradients(device: sad.Device) -> None:
    data = {
        "place": np.arange(9, dtype=np.float32).reshape(3, 3),
        "number": np.array([7, 8, 9]),
        "lives": np.array([True, False, True]),
        "mass": np.float16([1, 2, 3]),
    }
    particles = sad.array(data, dtype=Particle)
    index = np.array([2, 0, 2])
    weights = np.float32([1.0, 0.5, 0.25])

    def moment(particles: Any) -> Any:
        some = particles[index]
        return sad.sum(some.place.x * sad.cast(some.mass, float) * weights)

    gradient = sad.grad(moment)(particles).numpy()
    np.testing.assert_array_equal(gradient["place"][:, 0], [0.5, 0, 3.75])
    np.testing.assert_array_equal(gradient["mass"], [0, 0, 7.5])
    np.testing.assert_array_equal(gradient["number"], [0, 0, 0])


def test_what_cannot_be_added_is_refused_at_the_line(device: sad.Device) -> None:
    flags = np.array([True, False])
    with pytest.raises(sad.ShapeError) as caught:
        sad.scatter_add(flags, np.array([1]), flags[:1])
    assert caught.value.code == "SR0326"
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_errors_of_our_kernels_name_the_users_line() -> None:
    with pytest.raises(sad.LanguageError) as caught, lines.AtUserLine():
        raise sad.LanguageError("SR0282", "refused", span=NO_SPAN)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
