"""Which triangles pixels show, where on them, and how that changes with the vertices."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, int3, render
from tests.devices import entered
from tests.render import reference

pytestmark = pytest.mark.gpu

CLOSE = 2e-5
"""Of quotients of differences of products in 32 bits."""
STEEP = 2e-3
"""Likewise of derivatives, relative to the largest."""


def soup(rng: np.random.Generator, count: int, low_w: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles anywhere in clip space, behind the eye as well if `low_w` is negative."""
    w = rng.uniform(low_w, 3.0, 3 * count)
    places = rng.uniform((-1.6, -1.6, -0.3), (1.6, 1.6, 1.2), (3 * count, 3)) * np.abs(w)[:, None]
    corners = np.array([rng.choice(3 * count, 3, replace=False) for _ in range(count)])
    return np.float32(np.column_stack([places, w])), np.int32(corners)


def sheet(rng: np.random.Generator, n: int, *, on_centers: tuple[int, int] | None) -> np.ndarray:
    """N by n vertices of a grid that covers the picture, moved at random, at any depth and w."""
    places = np.linspace(-1.3, 1.3, n)
    x, y = np.stack(np.meshgrid(places, places)) + rng.uniform(-0.07, 0.07, (2, n, n))
    w = rng.uniform(0.3, 4.0, (n, n))
    if on_centers is not None:
        height, width = on_centers
        x = (2 * np.round((x + 1) * width / 2 - 0.5) + 1) / width - 1
        y = (2 * np.round((y + 1) * height / 2 - 0.5) + 1) / height - 1
        w = 2.0 ** np.round(np.log2(w))
    x, y = np.float32(x), np.float32(y)
    return np.float32(np.stack([x * w, y * w, 0.5 * w, w], -1).reshape(-1, 4))


def sheet_corners(n: int) -> np.ndarray:
    """The triangles of a sheet: two a square, by either diagonal."""
    y, x = (k.ravel() for k in np.mgrid[: n - 1, : n - 1])
    a, b, c, d = y * n + x, y * n + x + 1, (y + 1) * n + x + 1, (y + 1) * n + x
    even = ((x + y) % 2 == 0)[:, None, None]
    falling = np.stack([np.stack([a, b, c], 1), np.stack([a, c, d], 1)], 1)
    rising = np.stack([np.stack([a, b, d], 1), np.stack([d, b, c], 1)], 1)
    return np.int32(np.where(even, falling, rising).reshape(-1, 3))


@pytest.mark.parametrize("low_w", [0.3, -1.0])
def test_faces_agree_with_float64(device: sad.Device, low_w: float) -> None:
    rng = np.random.default_rng(7)
    certain = 0
    for size in [(37, 53), (64, 64), (1, 90), (9, 8)]:
        for count in (1, 24):
            clip, corners = soup(rng, count, low_w)
            found = render.rasterize(clip, corners, size).face.numpy()
            face, is_sure = reference.faces(clip, corners, size)
            assert np.array_equal(found[is_sure], face[is_sure])
            certain += is_sure.mean()
    assert certain > 7.8


SHEETS = [*product([(33, 29), (17, 63), (21, 101), (47, 19), (65, 31)], (False, True))]
"""Sizes of pictures, and whether vertices lie on centres of pixels: in smaller ones the triangles
would turn over.
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize(("size", "on_centers"), [*SHEETS, ((1, 101), False), ((3, 2), False)])
def test_each_pixel_of_a_sheet_is_covered_exactly_once(
    device: sad.Device, size: tuple[int, int], on_centers: bool
) -> None:
    """1,200 sheets in all."""
    rng, n, sheet_count = np.random.default_rng(size), 9, 100
    corners = sheet_corners(n)
    sheets = [sheet(rng, n, on_centers=size if on_centers else None) for _ in range(sheet_count)]
    clip = sad.array(np.stack(sheets), dtype=float4)
    # Two triangles that cover one pixel differ in a bit of their numbers, and count twice there.
    for bit in range(len(corners).bit_length()):
        count = np.zeros((sheet_count, *size), int)
        for half in (0, 1):
            left = np.where(((np.arange(len(corners)) >> bit) & 1 == half)[:, None], corners, 0)
            face = render.rasterize(clip, sad.array(np.int32(left), dtype=int3), size).face
            count += face.numpy() >= 0
        assert np.all(count == 1)


def test_nearest_triangle_shows_and_of_several_the_first(device: sad.Device) -> None:
    places = [(-1, -3), (-1, 1), (3, 1)]
    clip = np.float32([[x, y, z, 1] for x, y in places for z in (0.5, 0.2, 0.2)])
    corners = np.int32([[0, 3, 6], [2, 5, 8], [1, 4, 7]])
    found = render.rasterize(clip, corners, (3, 5))
    assert np.all(found.face.numpy()[0] == 1)
    assert np.allclose(found.depth.numpy()[0], 0.2)


def test_pixels_without_triangle_have_face_minus_one_and_depth_one(device: sad.Device) -> None:
    clip, corners = np.float32([[-1, -1, 0.5, 1], [0, -1, 0.5, 1], [-1, 0, 0.5, 1]]), [[0, 1, 2]]
    found = render.rasterize(clip, np.int32(corners), (8, 8))
    nothing = found.face.numpy() < 0
    assert nothing.sum() == 64 - 6
    assert np.all(found.depth.numpy()[nothing] == 1.0)
    for part in (found.uv, found.uv_dx, found.uv_dy):
        assert np.all(part.numpy()[nothing] == 0.0)


def test_rows_count_from_the_top_and_uv_weighs_corners_one_and_two(device: sad.Device) -> None:
    clip = np.float32([[-1, 1, 0, 1], [3, 1, 0, 1], [-1, -3, 0, 1]])
    uv = render.rasterize(clip, np.int32([[0, 1, 2]]), (2, 4)).uv.numpy()
    assert np.allclose(uv[..., 0], (np.arange(4) + 0.5) / 8)
    assert np.allclose(uv[..., 1], ((np.arange(2) + 0.5) / 4)[:, None])


@pytest.mark.parametrize("views", [0, 2])
@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
def test_a_vertex_that_is_not_there_is_reported_by_its_index(
    views: int, index: int, device: sad.Device
) -> None:
    clip = np.float32([[-1, -1, 0.5, 1], [1, -1, 0.5, 1], [-1, 1, 0.5, 1]])
    clip = sad.array(np.stack([clip] * views) if views else clip, dtype=float4)
    triangles = sad.array(np.int32([[0, 1, 2], [0, index, 1]]), dtype=int3)
    with pytest.raises(sad.BoundsError, match="SR0660") as caught:
        render.rasterize(clip, triangles, (4, 4)).face.numpy()
    assert str(index) in caught.value.message
    assert "3" in f"{caught.value.message} {caught.value.label}"


def test_broken_triangles_neither_show_nor_spread(device: sad.Device) -> None:
    clip = [[-1, -1, 0.5, 1], [1, -1, 0.5, 1], [-1, 1, 0.5, 1], [np.nan, 0, 0, 1],
            [np.inf, 0, 0, 1], [0, 0, 0.2, 0], [3e38, 3e38, 3e38, 3e38]]  # fmt: skip
    clip = sad.array(np.float32(clip), dtype=float4)
    broken = [[-1, 0, 1], [0, 3, 1], [0, 1, 4], [0, 0, 1], [1, 1, 1], [0, 1, 99], [6, 6, 5]]
    values = sad.array(np.random.default_rng(9).normal(size=7))

    def picture(clip: Any, values: Any, triangles: Any) -> Any:
        found = render.rasterize(clip, triangles, (17, 16))
        return render.interpolate(values, triangles, found) * found.depth

    def pulled(triangles: Any) -> list[np.ndarray]:
        triangles = sad.array(np.int32(triangles), dtype=int3)
        with pytest.raises(sad.BoundsError) if len(triangles) > 1 else nullcontext():
            device.synchronize()
            face = render.rasterize(clip, triangles, (17, 16)).face
            device.synchronize()
        assert np.all((face.numpy() == -1) | (face.numpy() == len(triangles) - 1))
        shown, pullback = sad.vjp(lambda c, v: picture(c, v, triangles), clip, values)
        bars = pullback(np.ones((17, 16), np.float32))
        with suppress(sad.BoundsError):
            device.synchronize()
        return [x.numpy() for x in (shown, *bars)]

    alone = pulled([[0, 1, 2]])
    assert all(np.abs(part).max() > 0.1 for part in alone)
    for one, other in zip(pulled([*broken, [0, 1, 2]]), alone, strict=True):
        assert np.allclose(one, other, atol=CLOSE * np.abs(other).max())


@pytest.mark.parametrize("size", [(1, 1), (1, 2049), (2049, 1), (0, 5), (5, 0)])
def test_any_size_of_picture_works(device: sad.Device, size: tuple[int, int]) -> None:
    clip = np.float32([[-1, -3, 0.5, 1], [-1, 1, 0.5, 1], [3, 1, 0.5, 1]])
    found = render.rasterize(clip, np.int32([[0, 1, 2]]), size)
    assert found.face.shape == size
    assert np.all(found.face.numpy() == 0)


def test_mesh_without_triangles_shows_nothing(device: sad.Device) -> None:
    for vertex_count in (0, 3):
        clip = sad.array(np.zeros((vertex_count, 4)), dtype=float4)
        triangles = sad.array(np.zeros((0, 3), np.int32), dtype=int3)
        found = render.rasterize(clip, triangles, (4, 6))
        assert np.all(found.face.numpy() == -1)
        color = np.float32(np.random.default_rng(0).uniform(size=(4, 6)))
        assert np.array_equal(render.antialias(color, found, clip, triangles).numpy(), color)
        shown, steps = render.interpolate(sad.zeros(vertex_count), triangles, found, footprint=True)
        for part in (shown, *steps):
            assert np.array_equal(part.numpy(), np.zeros((4, 6)))


def fragments_of(device: sad.Device) -> list[np.ndarray]:
    """Pictures of triangles of all sizes, many of them as near as others, and of small ones."""
    rng, pictures = np.random.default_rng(11), []
    for size, spread in (((61, 83), 0.8), ((40, 130), 0.05), ((130, 40), 0.3)):
        places = rng.uniform(-1.1, 1.1, (200, 1, 2)) + rng.normal(0, spread, (200, 3, 2))
        depth = rng.choice([0.0, -0.0, 0.25, 1.0], (200, 1, 1)) * np.ones((200, 3, 1))
        clip = np.concatenate([places, depth, np.ones((200, 3, 1))], 2).reshape(-1, 4)
        corners = np.arange(600).reshape(-1, 3)
        corners = np.int32(rng.permutation(np.concatenate([corners, corners[::2, ::-1]])))
        fragments = render.rasterize(np.float32(clip), corners, size)
        assert 0.05 < (fragments.face.numpy() >= 0).mean()
        pictures += [part.numpy() for part in fragments]
    return pictures


@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_minima_of_32_bits_draw_the_same_pictures(runtime: str) -> None:
    with entered(runtime) as device:
        pictures, features = fragments_of(device), device.capabilities.features
    if "int64-atomics" not in features:
        pytest.skip(f"{runtime}: no 64-bit atomics")
    with entered(runtime, {"features": features - {"int64-atomics"}}) as device:
        for part, expected in zip(fragments_of(device), pictures, strict=True):
            assert part.tobytes() == expected.tobytes()


def test_first_of_a_small_and_a_large_triangle_at_one_depth_shows(device: sad.Device) -> None:
    clip = [[-1, -1, 0.5, 1], [3, -1, 0.5, 1], [-1, 3, 0.5, 1]]
    clip += [[0.1 * x, 0.1 * y, z, w] for x, y, z, w in clip]
    clip = sad.array(np.float32(clip), dtype=float4)
    large, small = [0, 1, 2], [3, 4, 5]
    for corners, first in (([large, small], 0), ([small, large], 1)):
        face = render.rasterize(clip, sad.array(np.int32(corners), dtype=int3), (20, 20)).face
        shown = face.numpy()
        assert np.all(shown >= 0)
        assert (shown != first).any() == (first == 1)


@pytest.mark.parametrize(("features", "count"), [({"int64-atomics"}, 4), (set[str](), 5)])
def test_a_picture_takes_few_dispatches(features: set[str], count: int) -> None:
    with entered("wgpu") as device:
        own = device.capabilities.features
    if not own >= features:
        pytest.skip("wgpu: no 64-bit atomics")
    with entered("wgpu", {"features": (own - {"int64-atomics"}) | features}):
        clip, corners = soup(np.random.default_rng(0), 30, 0.3)
        clip, corners = sad.array(clip, dtype=float4), sad.array(corners, dtype=int3)
        picture = sad.graph(lambda c, t: tuple(render.rasterize(c, t, (40, 50))))
        assert f"dispatches: {count}, in one submission" in picture.explain(clip, corners)


def test_views_are_the_pictures_of_each(device: sad.Device) -> None:
    rng = np.random.default_rng(5)
    clips = np.stack([soup(np.random.default_rng(k), 8, 0.3)[0] for k in range(3)])
    corners = soup(rng, 8, 0.3)[1]
    together = render.rasterize(clips, corners, (20, 31))
    for view, clip in enumerate(clips):
        alone = render.rasterize(clip, corners, (20, 31))
        for found, expected in zip(together, alone, strict=True):
            assert np.array_equal(found.numpy()[view], expected.numpy())


def test_uv_by_pixel_is_the_difference_between_pixels(device: sad.Device) -> None:
    clip = np.float32([[-3, 3, 0.2, 1], [9, 4, 1, 3], [-4, -9, 0.5, 2]])
    size = (512, 512)
    found = render.rasterize(clip, np.int32([[0, 1, 2]]), size)
    uv, by_x, by_y = (
        part.numpy().astype(np.float64) for part in (found.uv, found.uv_dx, found.uv_dy)
    )
    shown = found.face.numpy() == 0
    inside = (
        shown[1:-1, 1:-1] & shown[:-2, 1:-1] & shown[2:, 1:-1] & shown[1:-1, :-2] & shown[1:-1, 2:]
    )
    assert inside.mean() > 0.5
    for part, differences in ((by_x, (uv[1:-1, 2:] - uv[1:-1, :-2]) / 2),
                              (by_y, (uv[2:, 1:-1] - uv[:-2, 1:-1]) / 2)):  # fmt: skip
        largest = np.abs(part).max()
        assert np.abs(part[1:-1, 1:-1] - differences)[inside].max() < STEEP * largest


def looked_at(clip: Any, corners: Any, size: tuple[int, int], weights: Any) -> Any:
    """A number that depends on all that `rasterize` gives."""
    found = render.rasterize(clip, corners, size)
    parts = (found.uv, found.depth, 10.0 * found.uv_dx, 10.0 * found.uv_dy)
    return sum(sad.sum(w * part) for w, part in zip(weights, parts, strict=True))


def test_fragments_have_the_derivatives_of_their_formulas(device: sad.Device) -> None:
    # No edge is near a centre, so that finite differences see no pixel change its face.
    clip = np.float32([[-3, -2.9, 0.4, 1], [2.9, -3.1, 0.9, 1.2], [0.1, 4.8, 0.8, 1.5]])
    corners, size = np.int32([[0, 1, 2]]), (7, 6)
    rng = np.random.default_rng(0)
    channels = [((2,), float2), ((), float), ((2,), float2), ((2,), float2)]
    weights = [sad.array(rng.uniform(0.5, 1.5, (*size, *c)), dtype=t) for c, t in channels]
    assert np.all(render.rasterize(clip, corners, size).face.numpy() == 0)
    sad.gradcheck(lambda c: looked_at(c, corners, size, weights), sad.array(clip, dtype=float4))


def test_second_derivatives_of_fragments_agree_with_differences_of_gradients(
    device: sad.Device,
) -> None:
    clip = sad.array(
        [[-3, -2.9, 0.4, 1], [2.9, -3.1, 0.9, 1.2], [0.1, 4.8, 0.8, 1.5]], dtype=float4
    )
    corners = np.int32([[0, 1, 2]])

    def loss(c: Any) -> Any:
        found = render.rasterize(c, corners, (7, 6))
        return sad.sum(found.uv.x * found.depth + found.uv.y * found.uv.y)

    v = sad.array(np.random.default_rng(1).normal(size=(3, 4)), dtype=float4)
    product = sad.hvp(loss, (clip,), (v,))
    step = 1e-2
    ahead, behind = (sad.grad(loss)(clip + s * v).numpy() for s in (step, -step))
    expected = (ahead - behind) / (2 * step)
    found = product[1] if isinstance(product, tuple) else product
    found = found[0] if isinstance(found, tuple) else found
    assert np.allclose(found.numpy(), expected, atol=STEEP * np.abs(expected).max())


@pytest.mark.parametrize(
    ("dtype", "channels"), [(float, ()), (float2, (2,)), (float3, (3,)), (float4, (4,))]
)
def test_interpolation_is_that_of_the_points_seen(
    device: sad.Device, dtype: Any, channels: tuple[int, ...]
) -> None:
    rng, size = np.random.default_rng(2), (23, 31)
    clip, corners = soup(rng, 12, 0.3)
    values = np.float32(rng.normal(size=(len(clip), *channels)))
    found = render.rasterize(clip, corners, size)
    result = render.interpolate(sad.array(values, dtype=dtype), corners, found).numpy()
    face, uv = found.face.numpy(), found.uv.numpy().astype(np.float64)
    weights = np.stack([1 - uv[..., 0] - uv[..., 1], uv[..., 0], uv[..., 1]], -1)
    weights = np.where((face >= 0)[..., None], weights, 0.0)
    expected = np.einsum("hwk,hwk...->hw...", weights, values[corners[np.maximum(face, 0)]])
    assert np.allclose(result, expected, atol=CLOSE * np.abs(values).max())


def test_footprint_is_how_values_change_from_pixel_to_pixel(device: sad.Device) -> None:
    clip = np.float32([[-3, 3, 0.2, 1], [9, 4, 1, 3], [-4, -9, 0.5, 2]])
    corners, places = np.int32([[0, 1, 2]]), sad.array([[0, 0], [1, 0], [0, 1]], dtype=float2)
    found = render.rasterize(clip, corners, (64, 64))
    uv, (by_x, by_y) = render.interpolate(places, corners, found, footprint=True)
    assert np.allclose(uv.numpy(), found.uv.numpy(), atol=CLOSE)
    assert np.allclose(by_x.numpy(), found.uv_dx.numpy(), atol=CLOSE)
    assert np.allclose(by_y.numpy(), found.uv_dy.numpy(), atol=CLOSE)


def test_interpolation_has_derivatives_by_values_and_positions(device: sad.Device) -> None:
    clip = sad.array(
        [[-3, -2.9, 0.4, 1], [2.9, -3.1, 0.9, 1.2], [0.1, 4.8, 0.8, 1.5]], dtype=float4
    )
    corners = np.int32([[0, 1, 2]])
    values = sad.array(np.random.default_rng(4).normal(size=(3, 3)), dtype=float3)

    def picture(clip: Any, values: Any) -> Any:
        found = render.rasterize(clip, corners, (5, 6))
        shown, (by_x, _) = render.interpolate(values, corners, found, footprint=True)
        return shown * shown + by_x

    sad.gradcheck(picture, clip, values)


def test_second_derivatives_of_interpolation_by_values_and_positions(device: sad.Device) -> None:
    rng, corners = np.random.default_rng(8), np.int32([[0, 1, 2]])
    clip = sad.array(
        [[-3, -2.9, 0.4, 1], [2.9, -3.1, 0.9, 1.2], [0.1, 4.8, 0.8, 1.5]], dtype=float4
    )
    values = sad.array(rng.normal(size=(3, 3)), dtype=float3)

    def loss(clip: Any, values: Any) -> Any:
        found = render.rasterize(clip, corners, (5, 6))
        shown = render.interpolate(values, corners, found)
        return sad.sum(sad.dot(shown, shown))

    dots = [sad.array(rng.normal(size=x.numpy().shape), dtype=x.dtype) for x in (clip, values)]
    products = sad.hvp(loss, (clip, values), dots)
    step = 1e-2
    ahead, behind = (
        sad.grad(loss, argnums=(0, 1))(clip + s * dots[0], values + s * dots[1])
        for s in (step, -step)
    )
    for moved, high, low in zip(products, ahead, behind, strict=True):
        expected = (high.numpy() - low.numpy()) / (2 * step)
        assert np.allclose(moved.numpy(), expected, atol=STEEP * np.abs(expected).max())


def test_faces_have_no_derivative(device: sad.Device) -> None:
    clip = sad.array([[-1, -1, 0.5, 1], [1, -1, 0.5, 1], [-1, 1, 0.5, 1]], dtype=float4)

    def total(clip: Any) -> Any:
        return sad.sum(render.rasterize(clip, np.int32([[0, 1, 2]]), (8, 8)).face)

    with pytest.raises(sad.DerivativeError, match=r"(?s)SR0457.*the result is int"):
        sad.grad(total)(clip)
    assert not sad.grad(lambda clip: 1.0 * total(clip))(clip).numpy().any()


def test_values_of_views_go_to_their_views(device: sad.Device) -> None:
    rng = np.random.default_rng(6)
    clip, corners = soup(rng, 6, 0.3)
    clips, values = np.stack([clip, clip[::-1]]), np.float32(rng.normal(size=(2, len(clip))))
    found = render.rasterize(clips, corners, (12, 10))
    both = render.interpolate(values, corners, found).numpy()
    for view in range(2):
        alone = render.rasterize(clips[view], corners, (12, 10))
        expected = render.interpolate(values[view], corners, alone).numpy()
        assert np.array_equal(both[view], expected)


def test_wrong_arguments_are_named(device: sad.Device) -> None:
    clip, corners = np.zeros((3, 4), np.float32), np.int32([[0, 1, 2]])
    with pytest.raises(sad.ShapeError, match=r"SR0330.*`clip`"):
        render.rasterize(np.zeros((3, 3), np.float32), corners, (4, 4))
    with pytest.raises(sad.ShapeError, match=r"SR0330.*`triangles`"):
        render.rasterize(clip, np.zeros((2, 3), np.float32), (4, 4))
    for size in (4, (4,), (4, 4, 4), (4.0, 4), (-1, 4), (4, 600_000)):
        with pytest.raises(sad.ShapeError, match="`size`"):
            render.rasterize(clip, corners, size)
    with pytest.raises(sad.ShapeError, match="SR0807"):
        render.rasterize(np.zeros((2, 2, 3, 4), np.float32), corners, (4, 4))
    found = render.rasterize(clip, corners, (4, 4))
    with pytest.raises(sad.ShapeError, match="SR0805"):
        render.interpolate(np.zeros((2, 3), np.float32), corners, found)
