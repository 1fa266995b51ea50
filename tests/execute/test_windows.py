"""Arrays larger than a binding: as small arrays on devices whose bindings are smaller still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3
from shaderad.execute.windows import _box
from shaderad.runtime import fill
from tests.windows import run_by_windows

LIMIT = 200_000
"""Bytes of a binding here; teams of a scan run 33,280 elements at a time."""
COUNT = 100_003
TOLERANCE = 2e-5
"""Of the largest value: a product of 100,000 factors is exact to 1e-5 without windows, too."""


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def small(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """A device with small bindings."""
    device = sad.open_device(request.param, limits={"binding_bytes_limit": LIMIT})
    with device:
        yield device
    device.close()


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def check(found: sad.Array, exact: np.ndarray) -> None:
    np.testing.assert_allclose(found.numpy(), exact, atol=TOLERANCE * np.abs(exact).max())


def elementwise(x: Any) -> Any:
    return sad.sqrt(x * x + 1.0)


def test_elementwise_steps_run_by_windows(small: sad.Device) -> None:
    x = numbers(COUNT)
    check(elementwise(sad.array(x)), np.sqrt(x.astype(np.float64) ** 2 + 1))
    assert "dispatches: 3," in explained(small, elementwise, x)


def explained(device: sad.Device, function: Callable[[Any], Any], x: np.ndarray) -> str:
    def graph(x: sad.Array[float]) -> sad.Array[float]:
        return function(x)

    with device:
        return str(sad.graph(graph).explain(sad.array(x)))


def test_slices_reversals_and_parts_of_other_arrays_run_by_windows(small: sad.Device) -> None:
    x, y = numbers(COUNT), numbers(COUNT)[::-1].copy()

    @sad.graph
    def graph(
        x: sad.Array[float], y: sad.Array[float], z: sad.Array[float], w: sad.Array[float]
    ) -> sad.Array[float]:
        ends = sad.concatenate([x[5:], z])
        return sad.reverse(w) + sad.where(ends > 0.0, ends, 2.0 * y)

    ends = np.concatenate([x[5:], y[:5]])
    check(graph(x, y, y[:5], x), x[::-1] + np.where(ends > 0, ends, 2 * y))


@pytest.mark.parametrize("shape", [(COUNT,), (3, 70_001), (70_001, 3), (317, 631)])
def test_sums_of_all_and_of_rows_run_by_windows(small: sad.Device, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(sad.sum(x).item(), exact.sum(), atol=1e-5 * np.abs(exact).sum())
    check(sad.sum(x, axis=-1), exact.sum(-1))
    check(sad.max(x, axis=-1), exact.max(-1))


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("shape", [(COUNT,), (317, 631)])
def test_scans_run_by_windows(small: sad.Device, shape: tuple[int, ...], is_reverse: bool) -> None:
    x = numbers(*shape)
    exact = x.astype(np.float64)
    if is_reverse:
        exact = np.cumsum(exact[..., ::-1], -1)[..., ::-1]
    else:
        exact = np.cumsum(exact, -1)
    check(sad.scan(sad.add, x, axis=-1, reverse=is_reverse), exact)


def loss_of_scan(x: Any) -> Any:
    return sad.sum(sad.scan(sad.add, x) * x)


def loss_of_product(x: Any) -> Any:
    return sad.sum(sad.scan(sad.mul, 1.0 + 1e-3 * x) * x)


def test_gradients_of_scans_run_by_windows(small: sad.Device) -> None:
    x = numbers(COUNT)
    exact = x.astype(np.float64)
    after = np.cumsum(exact[::-1])[::-1]
    check(sad.grad(loss_of_scan)(x), np.cumsum(exact) + after)
    factors = 1 + 1e-3 * exact
    product = np.cumprod(factors)
    later = np.cumsum((product * exact)[::-1])[::-1]
    check(sad.grad(loss_of_product)(x), product + 1e-3 * later / factors)


@sad.kernel
def shade(
    i: sad.Index,
    vertices: sad.In[float3],
    face: sad.In[int],
    uv: sad.In[float2],
    exposure: float,
    color: sad.Out[float3],
):
    first, here = 3 * face[i], uv[i]
    inner = vertices[first + 1] * here.x + vertices[first + 2] * here.y
    color[i] = exposure * (inner + vertices[first] * (1.0 - here.x - here.y))


@sad.kernel
def stencil(
    i: sad.Index,
    j: sad.Index,
    x: sad.In[float, 2],
    row: sad.In[float],
    column: sad.In[float],
    y: sad.Out[float, 2],
):
    y[i, j] = x[i, j] * row[i] + x[i - 1, j] * column[j] + x[i + 1, j + 2]


def modes(kernel: Any, arguments: tuple[Any, ...], **call: Any) -> list[np.ndarray]:
    """Result, gradients and tangent."""
    result, pullback = sad.vjp(kernel, *arguments, **call)
    gradients = pullback(result)
    dots = [a if g is not None else None for a, g in zip(arguments, gradients, strict=True)]
    _, result_dot = sad.jvp(kernel, arguments, dots, **call)
    return [np.asarray(x) for x in (result, *gradients, result_dot) if x is not None]


def shaded() -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    face = rng.integers(0, 50, COUNT, np.int32)
    return numbers(150, 3), face, rng.random((COUNT, 2), np.float32), 1.5


@pytest.mark.parametrize(
    ("kernel", "arguments", "call"),
    [
        (shade, shaded(), {"dim": COUNT}),
        (stencil, (numbers(317, 631), numbers(317), numbers(631)),
         {"dim": (317, 631), "bounds": "ignore"}),
    ],
)  # fmt: skip
def test_kernels_and_their_derivatives_run_by_windows(
    small: sad.Device, kernel: Any, arguments: tuple[Any, ...], call: dict[str, Any]
) -> None:
    found = modes(kernel, arguments, **call)
    with sad.open_device(small.capabilities.runtime) as whole:
        exact = modes(kernel, arguments, **call)
    whole.close()
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())


def test_long_index_arrays_gather_from_what_fits(small: sad.Device) -> None:
    table, index = numbers(1000), np.random.default_rng(3).integers(0, 1000, COUNT, np.int32)
    check(sad.gather(table, index), table[index])


def test_views_of_large_arrays_start_anywhere(small: sad.Device) -> None:
    x = sad.array(numbers(COUNT))
    for start, count in ((1, COUNT - 1), (7, 60_000), (COUNT - 3, 3)):
        view = x.viewed(x.element, (count,), 4 * start)
        check(elementwise(view), np.sqrt(x.numpy()[start : start + count].astype(float) ** 2 + 1))


def test_fills_and_reads_of_large_arrays(small: sad.Device) -> None:
    ones = sad.full((COUNT,), 1.0)
    assert np.all(ones.numpy() == 1)
    runtime = small.runtime
    buffer = runtime.allocate(4 * COUNT)
    fill(runtime, buffer, 7, 4 * 13, 4 * (COUNT - 20))
    (raw,) = runtime.read([(buffer, 0, 4 * COUNT)])
    assert np.array_equal(np.flatnonzero(np.frombuffer(raw, np.int32) == 7), range(13, COUNT - 7))


def test_arrays_that_threads_read_anywhere_are_refused(small: sad.Device) -> None:
    x = numbers(COUNT)
    with pytest.raises(sad.DeviceError) as caught:
        sad.gather(x, np.arange(5, dtype=np.int32))
    assert caught.value.code == "SR0606"
    assert f"{4 * COUNT} bytes" in str(caught.value)
    assert f"limit is {LIMIT} bytes" in str(caught.value)


@sad.kernel
def shifted(i: sad.Index, x: sad.In[float], shift: int, y: sad.Out[float]):
    y[i] = x[i + shift]


def test_indices_by_numbers_of_the_call_are_not_taken_for_sizes(small: sad.Device) -> None:
    with pytest.raises(sad.DeviceError) as caught:
        shifted(numbers(COUNT), 0, dim=COUNT).numpy()
    assert caught.value.code == "SR0606"


def test_what_is_larger_than_a_buffer_is_refused() -> None:
    device = sad.open_device("wgpu", limits={"buffer_bytes_limit": 4 << 20})
    with device, pytest.raises(sad.DeviceError) as caught:
        sad.array(np.zeros(1 << 21, np.float32)).numpy()
    assert caught.value.code == "SR0606"
    assert f"limit is {4 << 20} bytes" in str(caught.value)
    device.close()


def test_small_windows_bind_every_element_that_threads_access(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each window has three threads and binds only what these are found to access."""
    arguments = numbers(7, 5), numbers(7), numbers(5)
    call = {"dim": (7, 5), "bounds": "ignore"}
    exact = modes(stencil, arguments, **call)
    run_by_windows(monkeypatch)
    for one, other in zip(modes(stencil, arguments, **call), exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dim", [[7], [3, 4], [2, 3, 4], [1, 5], [5, 1, 2]])
def test_a_box_contains_its_threads(dim: list[int]) -> None:
    count = int(np.prod(dim))
    for first in range(count):
        for last in range(first, count):
            box = list(_box(first, last, dim))
            at = np.array(np.unravel_index(np.arange(first, last + 1), dim))
            for (low, high), indices in zip(box, at, strict=True):
                assert low <= indices.min()
                assert indices.max() <= high
