"""Scans whose threads share rows give what NumPy gives, whatever the layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, float3
from shaderad.compiler.launch_shapes import Cut, LaunchShape
from shaderad.ir import nodes, walk
from shaderad.ir.types import Access, Vector
from shaderad.plan.choices import PlanChoices
from shaderad.plan.kernels import PlanKernel
from shaderad.plan.nest.scan_sharing import Level, ScanSharing
from shaderad.plan.nest.teams import Team
from shaderad.plan.planning import plan
from tests.devices import entered
from tests.launch_shapes import change_rows, shape_of

SHAPES = [(1,), (5,), (1000,), (4096,), (70_001,), (3, 5), (300, 7), (7, 1000), (2, 40_000)]
EMPTY = [(0,), (0, 5), (5, 0)]


def cut(longest: int, limit: int) -> Cut:
    return Cut(longest_whole=longest, chunk_length=64, chunk_limit=limit, is_together=True)


LAYOUTS: dict[str, dict[str, Any]] = {
    "no waves": {"wave": 1},
    "waves of 4": {"wave": 4, "workgroup": 64},
    "12 threads": {"workgroup": 12},
    "one thread": {"workgroup": 1},
    "many parts": {"workgroup": 8, "rows": cut(1, 4096)},
    "parts of many tiles": {"workgroup": 16, "rows": cut(1, 6)},
}


@pytest.fixture(params=["wgpu", "slangpy"], scope="module")
def parallel(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param, {"kind": "discrete"}) as opened:
        yield opened


@sad.function
def latest(a: int, b: int) -> int:
    """The latest number that is not 0: it does not commute."""
    return b if b != 0 else a


@sad.function
def then(a: float2, b: float2) -> float2:
    """First a, then b, of maps x -> a.x * x + a.y."""
    return float2(a.x * b.x, a.y * b.x + b.y)


@sad.function
def product(a: float2x2, b: float2x2) -> float2x2:
    return a @ b


@sad.function
def power(a: float, b: float) -> float:
    """Sums, by long code."""
    total = a
    for _ in range(2):
        total += 0.5 * b
    return total


def drawn(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.random.default_rng(shape).integers(-8, 9, shape).astype(dtype)


def steps_of(function: Any, *args: Any, shape: LaunchShape, group_bytes: int = 16_384) -> list[Any]:
    """The steps of a graph at the sizes of `args`, the first of which has the most axes."""
    variant = sad.graph(function).bound(tuple(map(sad.array, args)), {}).variant
    known = {f"n{k}": extent for k, extent in enumerate(args[0].shape)}
    choices = PlanChoices(known, shape=shape, group_bytes=group_bytes)
    return list(choices.chosen(plan(variant.graph)).steps)


def accesses(work: PlanKernel) -> tuple[int, int, int, int, int]:
    """Loads and stores of buffers: of four elements, of one, of four, of one; and barriers."""
    kernel = work.kernel
    types = {b.name: b.type for b in kernel.buffers if b.access is not Access.GROUP}
    by_id = {id(e): e for e in walk.all_expressions(kernel.body) if isinstance(e, nodes.Load)}
    loads = [types[e.buffer].element for e in by_id.values() if e.buffer in types]
    parts = list(walk.statements(kernel.body))
    stores = [s.buffer for s in parts if isinstance(s, nodes.Store)]
    stored = [types[name].element for name in stores if name in types]
    wide = [sum(isinstance(t, Vector) for t in each) for each in (loads, stored)]
    barriers = sum(isinstance(s, nodes.Barrier) for s in parts)
    return wide[0], len(loads) - wide[0], wide[1], len(stored) - wide[1], barriers


# -- layouts ------------------------------------------------------------------------------------


def test_waves_of_a_row_are_scanned_by_eight() -> None:
    whole = Team(lanes=256, wave=8, workgroup=256)
    sharing = ScanSharing(whole, width=4, depth=4, is_repeated=False)
    assert [*sharing.levels()] == [Level(8, 8, 0), Level(64, 4, 32)]
    assert (sharing.tile, sharing.slots) == (4096, 36)
    wave = Team(lanes=8, wave=8, workgroup=256)
    assert not ScanSharing(wave, width=4, depth=1, is_repeated=False).slots


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (64, [(2, 0, 2, 0, 0)]),  # one wave: nobody waits
        (63, [(0, 4, 0, 4, 1)]),
        (4096, [(4, 0, 4, 0, 2)]),
        (8192, [(4, 0, 4, 0, 3)]),  # two tiles, so that totals of the first are read in time
        # The totals of parts; their scan; the scan of each part.
        (40_000, [(4, 0, 0, 1, 2), (0, 3, 0, 3, 0), (4, 1, 4, 0, 2)]),
    ],
)
def test_elements_are_read_and_stored_once_per_kernel(
    length: int, expected: list[tuple[int, ...]], parallel: sad.Device
) -> None:
    shape = shape_of(lanes=8)
    (step,) = steps_of(lambda x: sad.cumsum(x, axis=1), drawn((3, length)), shape=shape)
    assert [accesses(work) for work in step.works] == expected


@pytest.mark.gpu
def test_what_is_read_before_and_behind_a_scan_is_loaded_once(parallel: sad.Device) -> None:
    def own(x: Any) -> Any:
        return sad.cumsum(x) * x

    def mirrored(x: Any) -> Any:
        return sad.cumsum(x, reverse=True) * x

    def exclusive(x: Any) -> Any:
        return sad.scan(sad.add, x, exclusive=True) * x

    for function in (own, mirrored, exclusive):
        (step,) = steps_of(function, drawn((64,)), shape=shape_of(lanes=8))
        assert accesses(step.works[0]) == (2, 0, 2, 0, 0), function.__name__


@pytest.mark.gpu
def test_long_code_is_written_for_one_element(parallel: sad.Device) -> None:
    def long_elements(x: Any) -> Any:
        for _ in range(20):
            x = sad.sin(x)
        return sad.cumsum(x)

    shape, x = shape_of(lanes=8), drawn((4096,))
    for function in (long_elements, lambda x: sad.scan(power, x)):
        (step,) = steps_of(function, x, shape=shape)
        assert accesses(step.works[0])[:4] == (0, 1, 0, 1)


@pytest.mark.gpu
def test_threads_without_group_memory_scan_rows_by_themselves(parallel: sad.Device) -> None:
    shape, x = shape_of(lanes=8), drawn((4096,))

    def lanes(function: Any, **limits: int) -> int:
        (step,) = steps_of(function, x, shape=shape, **limits)
        assert isinstance(step.sharing, ScanSharing)
        return step.sharing.team.lanes

    assert lanes(sad.cumsum, group_bytes=144) == 256
    assert lanes(sad.cumsum, group_bytes=143) == 1


@pytest.mark.gpu
def test_explain_says_how_threads_share_rows(parallel: sad.Device) -> None:
    graph = sad.graph(lambda x: sad.cumsum(x, axis=1))
    assert "over [4, 64], 8 threads per row" in graph.explain(drawn((4, 64)))
    assert "40,000], 10 parts per row, 256 threads per part" in graph.explain(drawn((2, 40_000)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_parts_of_ints_look_back_where_the_device_has_atomics_of_64_bits(
    dtype: Any, parallel: sad.Device
) -> None:
    if "int64-atomics" not in parallel.capabilities.features:
        pytest.skip("no atomics of 64 bits")

    def passes(function: Any, x: Any, **changes: bool) -> int:
        (step,) = steps_of(
            function, x, shape=replace(parallel.capabilities.launch_shape, **changes)
        )
        return len(step.works)

    x = np.arange(40_000).astype(dtype)
    assert passes(sad.cumsum, x) == 1
    assert passes(sad.cumsum, x, looks_back=False) == 3
    assert passes(lambda x: sad.scan(sad.max, x), x) == 3
    assert passes(sad.cumsum, x.astype(np.float32)) == 3
    in_one = "10 parts per row in one pass, 256 threads per part"
    assert in_one in sad.graph(sad.cumsum).explain(x)


# -- values ---------------------------------------------------------------------------------


def scans(x: Any, k: Any, start: Any) -> Any:
    last = len(x.shape) - 1
    return (
        sad.cumsum(x, axis=last),
        sad.scan(sad.max, x - 9.0, axis=last, reverse=True) * 2.0,
        sad.scan(sad.add, x, axis=last, exclusive=True) + x,
        sad.scan(latest, k, axis=last),
        sad.scan(sad.add, x, start, axis=last),
    )


def expected_scans(x: Any, k: Any, start: Any) -> Any:
    wide = x.astype(np.float64)
    sums = wide.cumsum(-1)
    at = np.where(k != 0, np.arange(k.shape[-1]), 0)
    last = np.take_along_axis(k, np.maximum.accumulate(at, -1), -1) if k.size else k
    most = np.maximum.accumulate(x[..., ::-1] - 9, -1)[..., ::-1] * 2
    return sums, most, sums, last, sums + start[..., None]


def check(shape: tuple[int, ...]) -> None:
    x = drawn(shape)
    k = np.where(drawn((*shape, 2))[..., 1] > 4, drawn(shape), 0).astype(np.int32)
    args = x, k, drawn(shape[:-1])
    for result, exact in zip(sad.graph(scans)(*args), expected_scans(*args), strict=True):
        np.testing.assert_array_equal(result.numpy(), exact)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY], ids=str)
def test_operators_and_functions(shape: tuple[int, ...], parallel: sad.Device) -> None:
    check(shape)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(5,), (1000,), (7, 36), (2, 1001)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(
    layout: str, shape: tuple[int, ...], parallel: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_rows(monkeypatch, **LAYOUTS[layout])
    check(shape)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [5, 2052, 12_000])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float16, np.float64])
def test_types(dtype: Any, length: int, parallel: sad.Device) -> None:
    x = (np.abs(drawn((3, length), np.int32)) > 7).astype(dtype)
    results = sad.graph(lambda x: (sad.cumsum(x, axis=1), sad.scan(sad.min, x, axis=1)))(x)
    np.testing.assert_array_equal(results[0].numpy(), x.cumsum(1, dtype=dtype))
    np.testing.assert_array_equal(results[1].numpy(), np.minimum.accumulate(x, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("length", [1, 6, 2052, 12_001])
def test_vectors_matrices_and_maps(length: int, parallel: sad.Device) -> None:
    x, angles = drawn((length, 3)), drawn((length,)) / 8
    sums = sad.graph(lambda v: sad.cumsum(v))(sad.array(x, dtype=float3))
    np.testing.assert_array_equal(sums.numpy(), x.cumsum(0))
    turned = np.array([[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]])
    turns = sad.array(np.moveaxis(turned, -1, 0).astype(np.float32), dtype=float2x2)
    total = angles.astype(np.float64).cumsum()
    found = sad.graph(lambda m: sad.scan(product, m))(turns).numpy()
    np.testing.assert_allclose(found[:, 0, 0], np.cos(total), atol=3e-4)
    np.testing.assert_allclose(found[:, 1, 0], np.sin(total), atol=3e-4)

    def recurrence(a: Any, b: Any) -> Any:
        return sad.scan(then, float2(a, b)).y

    a, y, exact = np.where(angles > 0, 0.5, -0.75), 0.0, []
    for factor, addend in zip(a, angles, strict=True):
        y = factor * y + addend
        exact.append(y)
    found = sad.graph(recurrence)(a.astype(np.float32), angles).numpy()
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("length", [7, 4096, 12_000])
def test_infinities_and_nans_reach_what_follows_and_nothing_else(
    length: int, parallel: sad.Device
) -> None:
    x = drawn((length,))
    x[length // 2], x[-1] = np.inf, np.nan
    graph = sad.graph(lambda x: (sad.cumsum(x), sad.cumsum(x, reverse=True)[: length - 1]))
    forward, backward = graph(x)
    np.testing.assert_array_equal(forward.numpy(), x.cumsum())
    assert np.isnan(backward.numpy()).all()
    x[-1] = 0
    np.testing.assert_array_equal(graph(x)[1].numpy(), x[::-1].cumsum()[::-1][:-1])


@pytest.mark.gpu
@pytest.mark.parametrize("step", [-1, 2, -3])
def test_views(step: int, parallel: sad.Device) -> None:
    x = drawn((48,))
    view = sad.array(x)[::step]
    np.testing.assert_array_equal(sad.cumsum(view).numpy(), x[::step].cumsum())


@pytest.mark.gpu
def test_long_code_of_an_operator(parallel: sad.Device) -> None:
    x = drawn((12_000,))
    np.testing.assert_array_equal(sad.graph(lambda x: sad.scan(power, x))(x).numpy(), x.cumsum())


@pytest.mark.gpu
@pytest.mark.parametrize("length", [64, 1001, 9000])
def test_gradients_are_those_of_float64(length: int, parallel: sad.Device) -> None:
    x = np.random.default_rng(length).uniform(0.9, 1.1, length).astype(np.float32)
    w = np.random.default_rng(3).normal(size=length).astype(np.float32)

    def loss(x: Any, w: Any) -> Any:
        products, sums = sad.cumprod(x * x), sad.scan(sad.add, x, exclusive=True)
        return sad.sum(products * w) + sad.sum(sums * w) + sad.sum(sad.scan(then, float2(x, w)).y)

    wide, weights = x.astype(np.float64), w.astype(np.float64)
    suffix = (np.cumprod(wide * wide) * weights)[::-1].cumsum()[::-1]
    exact = 2 * suffix / wide + weights[::-1].cumsum()[::-1] - weights
    h, bar = np.zeros(length + 1), np.zeros(length + 1)
    for k in range(length):
        h[k + 1] = wide[k] * h[k] + weights[k]
    for k in reversed(range(length)):
        bar[k] = 1 + (wide[k + 1] * bar[k + 1] if k + 1 < length else 0)
    exact += bar[:-1] * h[:-1]
    gradient = sad.graph(sad.grad(loss))(x, w).numpy()
    np.testing.assert_allclose(gradient, exact, atol=1e-4 * np.abs(exact).max())
