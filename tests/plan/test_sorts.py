"""Sorts by digits: their order, their gradients, and when they take the place of merges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.ir.types import DOUBLE, FLOAT, HALF, INT, UINT
from shaderad.plan.sorts.keys import digits_of
from shaderad.plan.steps import RunKernel, RunSort
from tests.devices import entered
from tests.launch_shapes import change_rows
from tests.plan.test_row_chains import steps_of

SMALL_TILES = 16384
"""Bytes of group memory that have room for seven keys per thread, which compile in less time."""
LENGTHS = (1, 2, 63, 64, 65, 1000, 5000)
TYPES = (np.float32, np.float16, np.int32, np.uint32)
NAN_WORDS = {
    np.float16: (0x7C01, 0x7E00, 0xFC01, 0xFFFF),
    np.float32: (0x7F800001, 0x7FC00000, 0xFF800001, 0xFFFFFFFF),
    np.float64: (0x7FF0000000000001, 0x7FF8000000000000, 0xFFF0000000000001, 0xFFFFFFFFFFFFFFFF),
}


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def opened(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    limits = {"kind": "discrete", "group_bytes_limit": SMALL_TILES}
    with entered(request.param, limits) as device:
        yield device


@pytest.fixture
def parallel(opened: sad.Device, monkeypatch: pytest.MonkeyPatch) -> sad.Device:
    """A device that sorts all rows by digits."""
    change_rows(monkeypatch, shortest_by_digits=1)
    return opened


def keys_of(dtype: Any, *shape: int) -> Any:
    """Keys with ties; floats with zeros of both signs, infinities, tiny numbers, and any NaN."""
    rng = np.random.default_rng(shape)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, wide, rng.integers(0, 9, shape)).astype(dtype)
    keys = (rng.normal(size=shape) * 10.0 ** rng.integers(-4, 4, shape)).astype(dtype)
    keys = np.where(rng.random(shape) < 0.2, np.round(keys).astype(dtype), keys)
    tiny = np.finfo(dtype).smallest_subnormal
    for number in (0.0, -0.0, np.inf, -np.inf, tiny, -tiny):
        keys[rng.random(shape) < 0.05] = number
    size = np.dtype(dtype).itemsize
    words = np.array(NAN_WORDS[dtype], f"u{size}")
    return np.where(rng.random(shape) < 0.1, rng.choice(words, shape), keys.view(words.dtype)).view(
        dtype
    )


def order_of(keys: Any) -> Any:
    """The stable order, in which zeros are equal and NaN is last."""
    plain = np.where(keys == 0, np.zeros((), keys.dtype), keys)
    return np.argsort(plain, axis=-1, kind="stable")


def sort_step(function: Any, *args: Any, **limits: Any) -> RunSort:
    (step,) = (s for s in steps_of(function, *args, **limits) if isinstance(s, RunSort))
    return step


# -- values -------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_orders(dtype: Any, parallel: sad.Device) -> None:
    for length in LENGTHS:
        keys = keys_of(dtype, length)
        order = sad.argsort(sad.array(keys)).numpy()
        np.testing.assert_array_equal(order, order_of(keys), f"{length} keys")
    for shape in ((3, 1000), (2, 3, 1800)):
        keys = keys_of(dtype, *shape)
        order = sad.argsort(sad.array(keys), -1).numpy()
        np.testing.assert_array_equal(order, order_of(keys), f"{shape}")


@pytest.mark.gpu
def test_doubles_are_sorted_by_both_words(monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows(monkeypatch, shortest_by_digits=1)
    with entered("slangpy", {"kind": "discrete", "group_bytes_limit": SMALL_TILES}):
        for length in LENGTHS:
            keys = keys_of(np.float64, length)
            order = sad.argsort(sad.array(keys, dtype=sad.double)).numpy()
            np.testing.assert_array_equal(order, order_of(keys), f"{length} keys")


@pytest.mark.gpu
def test_zeros_keep_their_signs_and_places(parallel: sad.Device) -> None:
    keys = np.array([0.0, -0.0, 1.0, -0.0, 0.0, -1.0], np.float32)
    ordered = sad.sort(keys).numpy()
    np.testing.assert_array_equal(ordered, keys[order_of(keys)])
    np.testing.assert_array_equal(np.signbit(ordered), np.signbit(keys[order_of(keys)]))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("length", [100_003, 4_194_305])
def test_long_rows(length: int, parallel: sad.Device) -> None:
    for dtype in (np.float32, np.int32):
        keys = keys_of(dtype, length)
        np.testing.assert_array_equal(sad.argsort(sad.array(keys)).numpy(), order_of(keys))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("layout", [{"wave": 1}, {"wave": 4}, {"workgroup": 8}], ids=str)
def test_other_layouts(layout: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows(monkeypatch, shortest_by_digits=1, **layout)
    with entered("wgpu", {"kind": "discrete", "group_bytes_limit": SMALL_TILES}):
        keys = keys_of(np.float32, 2, 3000)
        np.testing.assert_array_equal(sad.argsort(sad.array(keys), -1).numpy(), order_of(keys))


@pytest.mark.gpu
def test_gradients_go_back_to_the_keys(parallel: sad.Device) -> None:
    keys = np.random.default_rng(1).permutation(3000).astype(np.float32)
    weights = np.random.default_rng(2).normal(size=3000).astype(np.float32)

    def loss(x: Any, w: Any) -> Any:
        return sad.sum(sad.sort(x) * w)

    gradient = sad.graph(sad.grad(loss))(keys, weights).numpy()
    np.testing.assert_array_equal(gradient[order_of(keys)], weights)


@pytest.mark.gpu
def test_sorts_in_loops(parallel: sad.Device) -> None:
    keys = np.random.default_rng(3).integers(0, 99, 2000).astype(np.int32)

    def turned(x: Any) -> Any:
        return sad.fori_loop(3, lambda k, y: sad.reverse(sad.sort(y * 3 % 101)), x)

    wanted = keys
    for _ in range(3):
        wanted = np.sort(wanted * 3 % 101)[::-1]
    np.testing.assert_array_equal(sad.graph(turned)(keys).numpy(), wanted)


# -- segments -----------------------------------------------------------------------------------


def largest(index: Any, values: Any) -> Any:
    return sad.segment_reduce(sad.max, -9, 300, index, values)


@pytest.mark.gpu
def test_segments_are_sorted_by_the_bytes_of_their_numbers(parallel: sad.Device) -> None:
    rng = np.random.default_rng(4)
    index = rng.integers(-5, 310, 5000).astype(np.int32)
    values = rng.integers(-8, 1000, 5000).astype(np.int32)
    wanted = np.full(300, -9, np.int32)
    inside = (index >= 0) & (index < 300)
    np.maximum.at(wanted, index[inside], values[inside])
    np.testing.assert_array_equal(sad.graph(largest)(index, values).numpy(), wanted)
    step = sort_step(largest, index, values)
    assert step.sharing is not None
    assert len(step.sharing.digits) == 2


# -- structure ----------------------------------------------------------------------------------


def ordered(x: Any) -> Any:
    return sad.argsort(x, -1)


def test_digits_of_types() -> None:
    counts = {t: len(digits_of(t, None)) for t in (FLOAT, INT, UINT, HALF, DOUBLE)}
    assert counts == {FLOAT: 4, INT: 4, UINT: 4, HALF: 3, DOUBLE: 8}
    assert [len(digits_of(INT, bits)) for bits in (0, 1, 8, 9, 31)] == [1, 1, 1, 2, 4]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "limits"),
    [
        ((8191,), {}),
        ((9, 4000), {}),
        ((10_000,), {"is_parallel": False}),
        ((10_000,), {"group_bytes": 2048}),
    ],
)
def test_merges_remain(shape: tuple[int, ...], limits: dict[str, Any], opened: sad.Device) -> None:
    assert sort_step(ordered, np.zeros((10_000,), np.float32)).sharing is not None
    assert sort_step(ordered, np.zeros(shape, np.float32), **limits).sharing is None


@pytest.mark.gpu
def test_workgroups_that_are_no_power_of_two_merge(
    opened: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows(monkeypatch, workgroup=12)
    assert sort_step(ordered, np.zeros((10_000,), np.float32)).sharing is None


@pytest.mark.gpu
def test_passes_are_few_dispatches_and_share_programs(parallel: sad.Device) -> None:
    step = sort_step(ordered, np.zeros(50_000, np.float32), group_bytes=32768)
    names = [s.work.kernel.name for s in step.chosen.steps if isinstance(s, RunKernel)]
    assert names == ["digit_counts", "sorted_by_digit"] * 4
    assert len(step.chosen.steps) == 12
    text = sad.graph(ordered).explain(np.zeros(5000, np.float32))
    assert "sort by digits over [5,000], 4 passes: in0 -> t0" in text
    assert "sorted_by_digit over [5,000] by tiles of 1792" in text
    assert "dispatches: 12, in one submission" in text
    # The counts of floats and of words, the scan, and the first, inner, and last pass.
    assert "programs: 6" in text


@pytest.mark.gpu
def test_every_digit_has_its_place(parallel: sad.Device) -> None:
    numbers = [digit << (8 * place) for place, digit in product(range(4), (1, 127, 128, 255))]
    keys = np.random.default_rng(5).permutation(np.array(numbers * 9, np.uint32))
    np.testing.assert_array_equal(sad.argsort(sad.array(keys)).numpy(), order_of(keys))
