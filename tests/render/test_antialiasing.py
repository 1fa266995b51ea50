"""Coverage at silhouettes, and how it moves with the vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, int3, render

pytestmark = pytest.mark.gpu

AREA = 0.05
"""Of the gradient of an area, at 64 x 64 pixels: outlines are straight between pixels."""


def clip_of(points: Any) -> Any:
    return float4(points.x, points.y, 0.0 * points.x + 0.5, 0.0 * points.x + 1.0)


def coverage(clip: Any, corners: Any, size: tuple[int, int]) -> Any:
    """The picture of a white mesh on black."""
    found = render.rasterize(clip, corners, size)
    mask = sad.where(found.face >= 0, 1.0, 0.0)
    return render.antialias(mask, found, clip, corners)


def polygon(
    rng: np.random.Generator, count: int, radii: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """A polygon around its last vertex, turned and moved at random."""
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False) + rng.uniform(0, 2 * np.pi)
    center, radius = rng.uniform(-0.15, 0.15, (1, 2)), rng.uniform(*radii, (count, 1))
    outline = center + radius * np.column_stack([np.cos(angle), np.sin(angle)])
    corners = [[k, (k + 1) % count, count] for k in range(count)]
    return np.float32(np.vstack([outline, center])), np.int32(corners)


def area_gradient(points: np.ndarray) -> np.ndarray:
    """The gradient of the area inside an outline by its vertices."""
    chord = np.roll(points, -1, 0) - np.roll(points, 1, 0)
    return 0.5 * np.column_stack([chord[:, 1], -chord[:, 0]])


@pytest.mark.parametrize("radii", [(0.6, 0.6), (0.3, 0.75)], ids=["convex", "concave"])
def test_gradient_of_a_masks_area_is_that_of_the_area(
    device: sad.Device, radii: tuple[float, float]
) -> None:
    rng, size = np.random.default_rng(1), (64, 64)

    @sad.graph
    def gradient(points: sad.Array[float2], corners: sad.Array[int3]) -> Any:
        def area(points: Any) -> Any:
            return sad.sum(coverage(clip_of(points), corners, size)) * (2 / 64) ** 2

        return sad.grad(area)(points)

    errors, shares = [], []
    for _ in range(100):
        points, corners = polygon(rng, 7, radii)
        found, expected = gradient(points, corners).numpy()[:7], area_gradient(points[:7])
        shares.append(np.sum(found * expected) / np.sum(expected**2))
        errors.append(np.abs(found - expected).mean() / np.abs(expected).mean())
    assert abs(np.mean(shares) - 1) < AREA
    assert np.mean(errors) < AREA


def test_edge_between_pixels_shares_them_by_its_place(device: sad.Device) -> None:
    # The right edge of a rectangle stands at pixel 3 + s.
    for s in (0.1, 0.4, 0.6, 0.9):
        right = 2 * (3 + s) / 8 - 1
        clip = np.float32(
            [[-2, -2, 0.5, 1], [right, -2, 0.5, 1], [right, 2, 0.5, 1], [-2, 2, 0.5, 1]]
        )
        found = coverage(clip, np.int32([[0, 1, 2], [0, 2, 3]]), (4, 8)).numpy()
        expected = [1, 1, 1, s, 0, 0, 0, 0]
        assert np.allclose(found, expected, atol=1e-5)


def rectangle(x: float, y: float) -> np.ndarray:
    return np.float32([[x - 0.5, y - 0.4, 0.5, 1], [x + 0.5, y - 0.4, 0.5, 1],
                       [x + 0.5, y + 0.4, 0.5, 1], [x - 0.5, y + 0.4, 0.5, 1]])  # fmt: skip


def test_translated_rectangle_changes_each_pixel_as_exact_coverage_does(
    device: sad.Device,
) -> None:
    size, corners = (48, 40), np.int32([[0, 1, 2], [0, 2, 3]])

    def picture(x: Any) -> Any:
        clip = sad.array(rectangle(0.0123, -0.0321), dtype=float4)
        return coverage(float4(clip.x + x, clip.y, clip.z, clip.w), corners, size)

    _, by_x = sad.jvp(picture, (sad.array(np.float32(0)),), (sad.array(np.float32(1)),))
    found = by_x.numpy()

    def exact(x: float) -> np.ndarray:
        low, high = (rectangle(x + 0.0123, -0.0321)[k, :2] for k in (0, 2))
        shares = []
        for axis, count in ((1, 48), (0, 40)):
            edges = np.linspace(-1, 1, count + 1)
            inner = np.clip(edges[1:], low[axis], high[axis]) - np.clip(
                edges[:-1], low[axis], high[axis]
            )
            shares.append(inner * count / 2)
        return np.outer(shares[0][::-1], shares[1])

    step = 1e-3
    expected = (exact(step) - exact(-step)) / (2 * step)
    # The error and thresholds of Mitsuba 3, test_ad_integrators.
    error = np.abs(found - expected) / np.maximum(np.abs(expected), 0.2)
    assert error.mean() < 0.03
    assert error.max() <= 1.0


def test_disk_and_sphere_grow_by_their_outline(device: sad.Device) -> None:
    count, size = 96, (64, 64)
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    disk = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), [[0, 0]]])
    corners = np.int32([[k, (k + 1) % count, count] for k in range(count)])

    def disk_area(radius: Any) -> Any:
        points = radius * sad.array(np.float32(disk), dtype=float2)
        return sad.sum(coverage(clip_of(points), corners, size)) * (2 / 64) ** 2

    found = float(sad.grad(disk_area)(sad.array(np.float32(0.6))))
    assert abs(found / (2 * np.pi * 0.6) - 1) < AREA

    sphere, faces = globe(24, 36)
    camera = render.perspective(0.8, 1.0, 0.5, 10.0) @ render.look_at(
        (0.0, 0.0, 3.0), (0.0, 0.0, 0.0)
    )

    def sphere_area(radius: Any) -> Any:
        clip = render.transform(camera, radius * sad.array(sphere, dtype=float3))
        return sad.sum(coverage(clip, faces, size)) * (2 / 64) ** 2

    # The outline is a circle of the radius f r / sqrt(d^2 - r^2).
    focal, far, r = 1 / np.tan(0.4), 3.0, 0.7
    expected = 2 * np.pi * focal**2 * r * far**2 / (far**2 - r**2) ** 2
    found = float(sad.grad(sphere_area)(sad.array(np.float32(r))))
    assert abs(found / expected - 1) < AREA


def globe(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """A unit sphere; at its poles triangles have no area."""
    around = np.arange(columns) * 2 * np.pi / columns
    theta, phi = np.meshgrid(np.linspace(0, np.pi, rows + 1), around, indexing="ij")
    places = np.stack([np.sin(theta) * np.cos(phi), np.cos(theta), np.sin(theta) * np.sin(phi)], -1)
    y, x = (k.ravel() for k in np.mgrid[:rows, :columns])
    a, b = y * columns + x, y * columns + (x + 1) % columns
    faces = np.concatenate(
        [np.stack([a, b, b + columns], 1), np.stack([a, b + columns, a + columns], 1)]
    )
    return np.float32(places.reshape(-1, 3)), np.int32(faces)


def test_edges_inside_of_a_surface_are_no_silhouettes(device: sad.Device) -> None:
    rng = np.random.default_rng(0)
    points = np.stack(np.meshgrid(np.linspace(-1.5, 1.5, 7), np.linspace(-1.5, 1.5, 7)), -1)
    points += rng.uniform(-0.1, 0.1, points.shape)
    clip = np.float32([[x, y, 0.5, 1] for x, y in points.reshape(-1, 2)])
    y, x = (k.ravel() for k in np.mgrid[:6, :6])
    a = y * 7 + x
    corners = np.int32(
        np.concatenate([np.stack([a, a + 1, a + 8], 1), np.stack([a, a + 8, a + 7], 1)])
    )
    found = render.rasterize(clip, corners, (32, 32))
    color = np.float32(rng.uniform(size=(32, 32)))
    result = render.antialias(color, found, clip, corners).numpy()
    assert np.array_equal(result, color)
    # Each of these triangles by itself ends where it ends.
    alone = np.arange(corners.size, dtype=np.int32).reshape(-1, 3)
    split = render.rasterize(clip[corners.ravel()], alone, (32, 32))
    result = render.antialias(color, split, clip[corners.ravel()], alone).numpy()
    assert np.mean(result != color) > 0.3


@pytest.mark.parametrize(
    ("dtype", "channels"), [(float, ()), (float3, (3,)), (float, (5,)), (float4, (2, 4))]
)
def test_any_channels_and_views(device: sad.Device, dtype: Any, channels: tuple[int, ...]) -> None:
    rng, size = np.random.default_rng(2), (24, 20)
    meshes = [polygon(rng, 5, (0.4, 0.7)) for _ in range(2)]
    corners = meshes[0][1]
    clips = np.float32([[[x, y, 0.5, 1] for x, y in points] for points, _ in meshes])
    colors = np.float32(rng.uniform(size=(2, *size, *channels)))
    found = render.rasterize(clips, corners, size)
    both = render.antialias(sad.array(colors, dtype=dtype), found, clips, corners).numpy()
    shares = [coverage(clip, corners, size).numpy() for clip in clips]
    assert all(np.any((0.1 < share) & (share < 0.9)) for share in shares)
    for view in range(2):
        alone = render.rasterize(clips[view], corners, size)
        flat = colors[view].reshape(*size, -1)
        for k in range(flat.shape[-1]):
            expected = render.antialias(flat[..., k], alone, clips[view], corners).numpy()
            assert np.allclose(both[view].reshape(*size, -1)[..., k], expected, atol=1e-6)


def test_antialiasing_has_derivatives_by_color_and_positions(device: sad.Device) -> None:
    rng, size = np.random.default_rng(3), (9, 10)
    points = sad.array([[-0.713, -0.612], [0.657, -0.431], [0.0317, 0.7213]], dtype=float2)
    corners, color = np.int32([[0, 1, 2]]), sad.array(rng.uniform(size=size))

    def picture(points: Any, color: Any) -> Any:
        clip = clip_of(points)
        found = render.rasterize(clip, corners, size)
        return render.antialias(color * color, found, clip, corners)

    sad.gradcheck(picture, points, color, eps=1e-4)


def test_second_derivatives_of_a_picture_that_is_antialiased_twice(device: sad.Device) -> None:
    """Crossings are quotients, so that they have second derivatives: those of the formula."""
    points = sad.array([[-0.713, -0.612], [0.657, -0.431], [0.0317, 0.7213]], dtype=float2)
    corners, size = np.int32([[0, 1, 2]]), (9, 10)

    def loss(points: Any) -> Any:
        clip = clip_of(points)
        found = render.rasterize(clip, corners, size)
        picture = sad.where(found.face >= 0, 1.0, 0.0)
        for _ in range(2):
            picture = render.antialias(picture, found, clip, corners)
        return sad.sum(picture * picture)

    v = sad.array(np.random.default_rng(5).normal(size=(3, 2)), dtype=float2)
    product = sad.hvp(loss, (points,), (v,))
    step = 1e-3
    ahead, behind = (sad.grad(loss)(points + s * v).numpy() for s in (step, -step))
    expected = (ahead - behind) / (2 * step)
    assert np.abs(product.numpy() - expected).max() < 2e-3 * np.abs(expected).max()


def test_sides_know_the_side_of_the_triangle_beside_them(device: sad.Device) -> None:
    # Two triangles share the edge from 1 to 2; three have the edge from 4 to 5.
    corners = np.int32([[0, 1, 2], [2, 1, 3], [4, 5, 6], [5, 4, 7], [8, 4, 5]])
    found = render.adjacency(corners).numpy()
    assert found.tolist() == [[5, -1, -1], [-1, -1, 0], [-1, -1, -1], [-1, -1, -1], [-1, -1, -1]]
    assert render.adjacency(corners[:0]).shape == (0,)


def test_adjacency_that_is_known_gives_the_same_picture(device: sad.Device) -> None:
    points, corners = globe(6, 8)
    clip = np.float32([[0.8 * x, 0.7 * y, 0.5 + 0.3 * z, 1] for x, y, z in points])
    found = render.rasterize(clip, corners, (24, 24))
    color = np.float32(np.random.default_rng(4).uniform(size=(24, 24)))

    @sad.graph
    def known(adjacency: Any, corners: Any) -> Any:
        return render.antialias(color, found, clip, corners, adjacency)

    expected = render.antialias(color, found, clip, corners).numpy()
    assert np.any(expected != color)
    assert np.array_equal(
        known(render.adjacency(corners), sad.array(corners, dtype=int3)).numpy(), expected
    )
    with pytest.raises(sad.ShapeError, match="SR0820"):
        render.antialias(color, found, clip, corners, render.adjacency(corners[1:]))


def test_picture_of_another_shape_is_refused(device: sad.Device) -> None:
    clip, corners = rectangle(0, 0), np.int32([[0, 1, 2], [0, 2, 3]])
    found = render.rasterize(clip, corners, (8, 8))
    with pytest.raises(sad.ShapeError, match="SR0808"):
        render.antialias(np.zeros((8, 7), np.float32), found, clip, corners)


def test_triangles_that_were_not_drawn_are_reported(device: sad.Device) -> None:
    clip, corners = rectangle(0, 0), np.int32([[0, 1, 2], [0, 2, 3]])
    found = render.rasterize(clip, corners, (8, 8))
    color = np.ones((8, 8), np.float32)
    with pytest.raises(sad.BoundsError, match="SR0660"):
        render.antialias(color, found, clip, corners[:1]).numpy()
    # A triangle that is not drawn itself lies beside one that is.
    beside = np.int32([[0, 1, 2], [0, 2, 9]])
    found = render.rasterize(clip, beside, (8, 8))
    with pytest.raises(sad.BoundsError, match="SR0660"):
        render.antialias(color, found, clip, beside).numpy()
