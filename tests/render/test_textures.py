"""Filtered texels against PyTorch and NumPy in float64."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float3, float4, half3, int2, render
from shaderad.render.kernels.textures import LEVEL_COUNT, MOST_TEXELS
from shaderad.textures.mips import levels_of

pytestmark = pytest.mark.gpu

VALUE = 1e-5
"""Of values near 1, whose weights are differences of coordinates times sizes in 32 bits."""
GRADIENT = 1e-4
AWAY = 0.02
"""Texels from the places where derivatives jump."""
PADDINGS = {"zeros": "border", "border": "clamp", "reflection": "mirror"}
SHAPES = {2: (7, 10), 3: (5, 7, 6)}
PLACES = {1: float, 2: float2, 3: float3}


def grid_of(rng: np.random.Generator, shape: tuple[int, ...], count: int = 400) -> np.ndarray:
    """Points of PyTorch's grids, some beyond the edges, away from centres and edges of texels."""
    points = np.float32(rng.uniform(-1.7, 1.7, (20 * count, len(shape))))
    sizes = np.float64(shape[::-1])
    keep = np.ones(len(points), bool)
    for extent in (sizes, sizes - 1):
        texel = 2 * (points + 1) / 2 * extent
        keep &= np.all(np.abs(texel - np.round(texel)) > 2 * AWAY, axis=1)
    return points[keep][:count]


def coordinates(grid: Any, sizes: Any, *, aligned: bool, padding: str) -> Any:
    """The coordinates of a texture that PyTorch's grids mean."""
    if not aligned:
        return 0.5 * (grid + 1.0)
    last = sizes - 1.0
    at = 0.5 * (grid + 1.0) * last
    if padding == "reflection":
        # PyTorch mirrors at the centres of the outer texels then.
        at = last - sad.abs(at - 2.0 * last * sad.floor(at / (2.0 * last)) - last)
    return (at + 0.5) / sizes


@pytest.mark.sample(3)
@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_values_and_gradients_are_those_of_grid_sample(
    device: sad.Device, axes: int, padding: str, aligned: bool, mode: str
) -> None:
    rng, shape, place = np.random.default_rng(axes), SHAPES[axes], PLACES[axes]
    texels, grid = rng.uniform(size=(*shape, 3)), grid_of(rng, shape)
    wrap = "clamp" if aligned and padding == "reflection" else PADDINGS[padding]
    sizes = sad.array(np.float32(shape[::-1]), dtype=place)

    def looked_up(texels: Any, grid: Any) -> Any:
        uv = coordinates(grid, sizes, aligned=aligned, padding=padding)
        return render.texture(texels, uv, filter=mode, wrap=wrap)

    found, pullback = sad.vjp(
        looked_up, sad.array(texels, dtype=float3), sad.array(grid, dtype=place)
    )
    bar = rng.normal(size=(*found.shape, 3))
    by_texels, by_grid = pullback(sad.array(bar, dtype=float3))

    axes_first = (axes, *range(axes))
    torch = pytest.importorskip("torch")
    x = torch.tensor(texels.transpose(axes_first)[None], requires_grad=True)
    g = torch.tensor(np.float64(grid).reshape(1, *[1] * (axes - 1), -1, axes), requires_grad=True)
    y = torch.nn.functional.grid_sample(
        x, g, mode="bilinear" if mode == "linear" else mode, padding_mode=padding,
        align_corners=aligned,
    )  # fmt: skip
    y = y.reshape(3, -1).T
    x_bar, g_bar = torch.autograd.grad(y, [x, g], torch.tensor(bar))
    assert np.abs(found.numpy() - y.detach().numpy()).max() < VALUE
    expected = np.moveaxis(x_bar.numpy()[0], 0, -1)
    assert np.abs(by_texels.numpy() - expected).max() < GRADIENT * np.abs(expected).max()
    expected = g_bar.numpy().reshape(-1, axes)
    assert np.abs(by_grid.numpy() - expected).max() <= GRADIENT * np.abs(expected).max()
    assert mode == "nearest" or np.abs(expected).max() > 0.1


@pytest.mark.parametrize("wrap", ["repeat", "clamp", "mirror", "border"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_lines_wrap_as_their_formula_says(device: sad.Device, wrap: str, n: int) -> None:
    rng = np.random.default_rng(n)
    texels, u = np.float32(rng.uniform(size=n)), np.float32(rng.uniform(-3, 4, 200))

    def texel(k: np.ndarray) -> np.ndarray:
        if wrap == "repeat":
            return texels[k % n]
        if wrap == "mirror":
            k = k % (2 * n)
            return texels[np.where(k < n, k, 2 * n - 1 - k)]
        inside = (k >= 0) & (k < n)
        value = texels[np.clip(k, 0, n - 1)]
        return np.where(inside, value, 0) if wrap == "border" else value

    at = np.float64(u) * n - 0.5
    low = np.floor(at).astype(int)
    linear = texel(low) * (1 - (at - low)) + texel(low + 1) * (at - low)
    found = render.texture(texels, u, wrap=wrap).numpy()
    assert np.abs(found - linear).max() < 3 * VALUE
    is_clear = np.abs(np.float64(u) * n - np.round(np.float64(u) * n)) > 1e-4
    found = render.texture(texels, u, wrap=wrap, filter="nearest").numpy()
    assert np.array_equal(found[is_clear], texel(np.floor(np.float64(u) * n).astype(int))[is_clear])


def test_filters_choose_and_mix_levels(device: sad.Device) -> None:
    rng = np.random.default_rng(1)
    texels, uv = sad.array(rng.uniform(size=(16, 12)), dtype=float), rng.uniform(size=(60, 2))
    uv = sad.array(uv, dtype=float2)
    levels = levels_of(texels, LEVEL_COUNT, has_layers=False)
    single = [render.texture(level[0], uv).numpy() for level in levels[:6]]
    for level in (0.0, 0.4, 1.0, 1.7, 3.2, 9.0):
        nearest = single[min(round(level), 5)]
        found = render.texture(texels, uv, level=level).numpy()
        assert np.abs(found - nearest).max() < VALUE
        k, share = min(int(level), 4), level - int(level)
        mixed = single[k] + (single[k + 1] - single[k]) * share if level < 5 else single[5]
        found = render.texture(texels, uv, level=level, filter="trilinear").numpy()
        assert np.abs(found - mixed).max() < VALUE
    assert np.array_equal(render.texture(texels, uv, level=-3.0).numpy(), single[0])
    plain = render.Texture(texels, mips=False)
    assert np.array_equal(render.texture(plain, uv, level=2.0).numpy(), single[0])


def test_footprint_leads_to_the_level_on_which_it_is_a_texel(device: sad.Device) -> None:
    rng = np.random.default_rng(2)
    texels, uv = sad.array(rng.uniform(size=(32, 64)), dtype=float), rng.uniform(size=(9, 2))
    uv = sad.array(uv, dtype=float2)
    by_x, by_y = np.float32(rng.normal(size=(2, 9, 2)) * 0.1)
    longer = np.maximum(*(np.linalg.norm(d * [64, 32], axis=1) for d in (by_x, by_y)))
    found = render.texture(
        texels,
        uv,
        footprint=(sad.array(by_x, dtype=float2), sad.array(by_y, dtype=float2)),
        filter="trilinear",
    )
    level = np.log2(longer)
    expected = render.texture(texels, uv, level=np.float32(level), filter="trilinear")
    assert np.abs(found.numpy() - expected.numpy()).max() < VALUE

    @sad.graph
    def by_footprint(dx: Any, dy: Any) -> Any:
        return render.texture(texels, uv, footprint=(dx, dy), filter="trilinear")

    steps = [sad.array(d, dtype=float2) for d in (by_x, by_y)]
    is_clear = np.abs(level - np.round(level)) > 0.02
    assert is_clear.all()
    sad.gradcheck(by_footprint, *steps, eps=1e-4)


def test_many_lookups_of_one_texel_add_up(device: sad.Device) -> None:
    texels = sad.zeros((4, 4))
    uv = sad.array(np.full((5000, 2), 0.375), dtype=float2)
    by_texels = sad.grad(lambda t: sad.sum(render.texture(t, uv)))(texels).numpy()
    assert by_texels[1, 1] == 5000
    assert by_texels.sum() == 5000


@pytest.mark.sample(2)
@pytest.mark.parametrize("filter_", ["linear", "trilinear"])
@pytest.mark.parametrize("dtype", [float, float3, float4])
def test_textures_have_derivatives_by_texels_coordinates_and_level(
    device: sad.Device, filter_: str, dtype: Any
) -> None:
    rng = np.random.default_rng(3)
    channels = {float: (), float3: (3,), float4: (4,)}[dtype]
    texels = render.Texture(sad.array(rng.uniform(size=(6, 5, *channels)), dtype=dtype))
    # Away from centres on the levels of 6 x 5, 3 x 2 and 1 x 1 texels, and from whole levels.
    uv = sad.array(rng.uniform(0.03, 0.05, (7, 2)) + rng.integers(0, 5, (7, 2)) * 0.2, dtype=float2)

    def value(texels: Any, uv: Any, level: Any) -> Any:
        return render.texture(texels, uv, level=level, filter=filter_)

    levels = sad.array(np.float32([0.3, 0.4, 1.2, 1.4, 0.2, 0.45, 1.3]))
    sad.gradcheck(value, texels, uv, levels)
    _, pullback = sad.vjp(lambda texels: value(texels, uv, levels), texels)
    assert isinstance(pullback(value(texels, uv, levels))[0], render.Texture)


WRAPPED = [*product([1], ["repeat", "clamp", "mirror", "border"]), (2, "repeat"), (3, "repeat")]
"""Numbers of axes and wraps: the others are held against PyTorch."""


@pytest.mark.parametrize(("axes", "wrap"), WRAPPED)
def test_wraps_have_derivatives_beyond_the_edges(device: sad.Device, axes: int, wrap: str) -> None:
    rng, shape = np.random.default_rng(axes), (6, 4, 8)[-axes:]
    # Away from the centres and edges of texels.
    at = rng.uniform(0.06, 0.44, (8, axes)) + rng.integers(-16, 32, (8, axes)) / 2
    uv = at[..., 0] if axes == 1 else at
    uv = sad.array(uv / np.float64(shape[::-1]), dtype=PLACES[axes])
    texels = sad.array(rng.uniform(size=shape))
    sad.gradcheck(lambda t, uv: render.texture(t, uv, wrap=wrap), texels, uv, eps=1e-3)


def test_second_derivatives_by_texels_and_coordinates(device: sad.Device) -> None:
    rng = np.random.default_rng(4)
    texels = sad.array(rng.uniform(size=(5, 6)), dtype=float)
    uv = sad.array(rng.uniform(0.03, 0.05, (6, 2)) + rng.integers(0, 5, (6, 2)) * 0.2, dtype=float2)

    def loss(texels: Any, uv: Any) -> Any:
        return sad.sum(render.texture(texels, uv) ** 2)

    dots = [sad.array(rng.normal(size=(5, 6)))]
    dots.append(sad.array(rng.normal(size=(6, 2)), dtype=float2))
    found = sad.hvp(loss, (texels, uv), dots)
    step = 2e-3
    ends = [
        sad.grad(loss, argnums=(0, 1))(texels + s * dots[0], uv + s * dots[1])
        for s in (step, -step)
    ]
    for product_, ahead, behind in zip(found, *ends, strict=True):
        expected = (ahead.numpy() - behind.numpy()) / (2 * step)
        assert np.abs(product_.numpy() - expected).max() < 0.02 * np.abs(expected).max()


def test_bytes_are_numbers_from_0_to_1_and_srgb_becomes_linear(device: sad.Device) -> None:
    rng = np.random.default_rng(5)
    centers = [[(x + 0.5) / 8, (y + 0.5) / 4] for y, x in product(range(4), range(8))]
    uv = sad.array(centers, dtype=float2)
    for channels in (1, 2, 3, 4):
        image = rng.integers(0, 256, (4, 8, channels)).astype(np.uint8)
        colors = image[..., :3] if channels > 2 else image[..., :1].repeat(3, -1)
        alpha = image[..., channels - 1 :] if channels in (2, 4) else np.full((4, 8, 1), 255)
        expected = np.concatenate([colors, alpha], -1).reshape(-1, 4) / 255
        found = render.texture(render.Texture(image), uv).numpy()
        assert np.abs(found - expected).max() < VALUE
        c = expected[:, :3]
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        found = render.texture(render.Texture(image, srgb=True), uv).numpy()
        assert np.abs(found[:, :3] - linear).max() < VALUE
        assert np.abs(found[:, 3] - expected[:, 3]).max() < VALUE
        mean = render.texture(render.Texture(image, srgb=True), uv, level=9.0).numpy()
        assert np.abs(mean[:, :3] - linear.mean(0)).max() < VALUE


AXES = {0: (0, 1), 1: (0, -1), 2: (1, 1), 3: (1, -1), 4: (2, 1), 5: (2, -1)}


def test_directions_find_the_faces_of_cubes(device: sad.Device) -> None:
    texels = np.arange(6)[:, None, None] * np.ones((6, 3, 3))
    cube = render.Texture(sad.array(texels), cube=True)
    for face, (axis, sign) in AXES.items():
        d = np.zeros((1, 3))
        d[0, axis] = 3.7 * sign
        assert render.texture(cube, sad.array(d, dtype=float3)).numpy()[0] == face
    # Rows of +x go down, and columns towards -z, as in Vulkan and D3D.
    texels = np.zeros((6, 2, 2))
    texels[0] = [[1, 2], [3, 4]]
    cube = render.Texture(sad.array(texels), cube=True)
    d = sad.array([[1, 0.5, 0.5], [1, 0.5, -0.5], [1, -0.5, 0.5], [1, -0.5, -0.5]], dtype=float3)
    assert np.allclose(render.texture(cube, d).numpy(), [1, 2, 3, 4])


def test_cubes_have_no_seams(device: sad.Device) -> None:
    rng = np.random.default_rng(6)
    cube = render.Texture(sad.array(rng.uniform(size=(6, 4, 4))), cube=True)
    a, t = np.ones(60), rng.uniform(-0.95, 0.95, 60)
    for axes in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        for sign, other in product((-1, 1), (-1, 1)):
            near = []
            for shift in (1e-5, -1e-5):
                d = np.empty((60, 3))
                d[:, axes[0]], d[:, axes[1]], d[:, axes[2]] = sign * (a + shift), other * a, t
                near.append(render.texture(cube, sad.array(d, dtype=float3)).numpy())
            assert np.abs(near[0] - near[1]).max() < 1e-3


def test_cubes_have_derivatives_by_texels_and_directions(device: sad.Device) -> None:
    rng = np.random.default_rng(7)
    cube = render.Texture(sad.array(rng.uniform(size=(6, 4, 4, 3)), dtype=float3), cube=True)
    d = sad.array(
        [[1, 0.31, 0.2], [-0.2, 1.3, 0.4], [0.1, 0.43, -2], [0.7, -1.1, 0.6]], dtype=float3
    )
    sad.gradcheck(lambda c, d: render.texture(c, d), cube, d)


def test_a_direction_of_0_has_finite_derivatives(device: sad.Device) -> None:
    # `interpolate` gives 0 where no triangle shows.
    texels = sad.array(np.random.default_rng(7).uniform(size=(6, 4, 4)))
    d = sad.array([[0, 0, 0], [0.3, 0.2, 1]], dtype=float3)

    @sad.graph
    def total(texels: sad.Array[float, 6, 4, 4], d: sad.Array[float3, 2]) -> sad.Array[float]:
        values = render.texture(
            render.Texture(texels, cube=True), d, footprint=(d, d), filter="trilinear"
        )
        return sad.sum(sad.where(sad.length(d) > 0.0, values, 0.0))

    by_texels, by_d = sad.grad(total, argnums=(0, 1))(texels, d)
    assert np.isclose(by_texels.numpy().sum(), 1.0)
    assert np.isfinite(by_d.numpy()).all()
    assert by_d.numpy().any()
    found = render.texture(render.Texture(texels, cube=True), d).numpy()
    assert np.isclose(found[0], texels.numpy()[0, 1:3, 1:3].mean())


def test_halves_are_filtered_in_float(device: sad.Device) -> None:
    texels = np.random.default_rng(8).uniform(size=(5, 5, 3)).astype(np.float16)
    uv = sad.array(np.random.default_rng(9).uniform(size=(30, 2)), dtype=float2)
    for level in (None, 1.0):
        found = render.texture(sad.array(texels, dtype=half3), uv, level=level)
        expected = render.texture(
            sad.array(texels.astype(np.float32), dtype=float3), uv, level=level
        )
        assert found.dtype is float3
        assert np.abs(found.numpy() - expected.numpy()).max() < (VALUE if level is None else 1e-3)


def test_any_shape_of_coordinates(device: sad.Device) -> None:
    texels = np.float32(np.random.default_rng(0).uniform(size=(4, 5)))
    for shape in ((), (3,), (2, 3), (2, 1, 2), (0,), (3, 0)):
        uv = sad.array(np.full((*shape, 2), 0.3), dtype=float2)
        assert render.texture(texels, uv).shape == shape
        assert render.texture(texels, uv, level=0.5, filter="trilinear").shape == shape


def test_coordinates_that_are_not_finite_read_in_range(device: sad.Device) -> None:
    texels = sad.array(np.ones((4, 5)))
    uv = sad.array([[np.nan, 0.5], [np.inf, 0.5], [-np.inf, 0.5], [1e30, 0.5]], dtype=float2)
    for wrap in ("repeat", "clamp", "mirror", "border"):
        render.texture(texels, uv, wrap=wrap).numpy()


def test_textures_in_graphs_take_any_size(device: sad.Device) -> None:
    @sad.graph
    def picture(texels: sad.Array[float2, "h", "w"], uv: sad.Array[float2, "n"]) -> Any:
        return render.texture(texels, uv, level=1.3, filter="trilinear")

    rng = np.random.default_rng(1)
    for shape in ((4, 4), (7, 3), (1, 9)):
        texels, uv = (
            sad.array(rng.uniform(size=(*shape, 2)), dtype=float2),
            sad.array(rng.uniform(size=(8, 2)), dtype=float2),
        )
        expected = render.texture(texels, uv, level=1.3, filter="trilinear").numpy()
        assert np.abs(picture(texels, uv).numpy() - expected).max() < VALUE


def test_wrong_arguments_are_named(device: sad.Device) -> None:
    texels, uv = np.zeros((4, 4), np.float32), sad.zeros(3, float2)
    with pytest.raises(sad.ShapeError, match=r"SR0809.*`filter`"):
        render.texture(texels, uv, filter="cubic")
    with pytest.raises(sad.ShapeError, match=r"SR0809.*`wrap`"):
        render.texture(texels, uv, wrap="zeros")
    with pytest.raises(sad.ShapeError, match="SR0810"):
        render.Texture(np.zeros((4, 4, 5), np.uint8))
    for wrong in (np.zeros((4, 4, 3), np.float32), sad.zeros((4, 4), int2), np.float32(1)):
        with pytest.raises(sad.ShapeError, match="SR0811"):
            render.texture(wrong, uv)
    with pytest.raises(sad.ShapeError, match="SR0811"):
        render.texture(render.Texture(texels, cube=True), uv)
    with pytest.raises(sad.ShapeError, match="SR0812"):
        render.texture(texels, uv, level=1.0, footprint=(uv, uv))
    long = sad.zeros(MOST_TEXELS + 1)
    for look_up in (render.texture, sad.graph(lambda t, u: render.texture(t, u))):
        with pytest.raises(sad.ShapeError, match=r"SR0821.*2,097,152"):
            look_up(long, 0.5)


@pytest.mark.parametrize("wrap", ["repeat", "clamp", "mirror", "border"])
def test_every_texel_of_the_longest_line_is_found(wrap: str, device: sad.Device) -> None:
    n = MOST_TEXELS
    texels = np.random.default_rng(0).uniform(size=n).astype(np.float32)
    k = np.r_[0:9, n // 2 - 9 : n // 2 + 9, n - 9 : n]
    for filter_ in ("nearest", "linear"):
        found = render.texture(texels, np.float32((k + 0.5) / n), filter=filter_, wrap=wrap)
        np.testing.assert_array_equal(found.numpy(), texels[k])


@pytest.mark.parametrize(("wrap", "ends"), [("clamp", (2.0, 5.0)), ("border", (0.0, 0.0))])
def test_far_coordinates_read_what_is_beyond_the_edge(
    wrap: str, ends: tuple[float, float], device: sad.Device
) -> None:
    texels, far = np.float32([2.0, 3.0, 5.0]), np.float32([-np.inf, -1e30, -4.0, 4.0, 1e30, np.inf])
    for filter_ in ("nearest", "linear"):
        found = render.texture(texels, far, filter=filter_, wrap=wrap)
        np.testing.assert_array_equal(found.numpy(), np.repeat(ends, 3))


def test_texture_without_texels_is_reported(device: sad.Device) -> None:
    for level in (None, 1.0):
        with pytest.raises(sad.BoundsError, match="SR0660"):
            render.texture(sad.zeros((0, 4)), sad.zeros(3, float2), level=level).numpy()
