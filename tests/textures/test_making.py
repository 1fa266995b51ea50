"""Pictures -> textures: channels, formats, dimensions, levels, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import half3, render
from shaderad.runtime.texture_formats import TEXTURE_FORMATS, light_of, srgb_of, stored
from shaderad.textures.mips import levels_of

pytestmark = pytest.mark.gpu

BYTES = np.arange(256, dtype=np.uint8)
ROUNDED = 0.5 / 255 + 1e-6
"""A value in a byte, computed in 32 bits."""


def values(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    found = np.random.default_rng(sum(shape)).uniform(size=shape)
    return (255 * found).astype(dtype) if dtype == np.uint8 else found.astype(dtype)


@pytest.mark.parametrize(
    ("shape", "dimension", "expected"),
    [
        ((7,), None, ("1d", (7,), 1)),
        ((5, 7), None, ("2d", (5, 7), 1)),
        ((5, 7, 1), None, ("2d", (5, 7), 1)),
        ((5, 7, 2), None, ("2d", (5, 7), 2)),
        ((5, 7, 3), None, ("2d", (5, 7), 4)),
        ((3, 5, 7, 4), None, ("3d", (3, 5, 7), 4)),
        ((7, 2), "1d", ("1d", (7,), 2)),
        ((3, 5, 7), "3d", ("3d", (3, 5, 7), 1)),
        ((3, 5, 7), "2d-array", ("2d-array", (3, 5, 7), 1)),
        ((1, 5, 7, 2), "2d-array", ("2d-array", (1, 5, 7), 2)),
        ((6, 4, 4, 3), "2d-array", ("2d-array", (6, 4, 4), 4)),
        ((6, 4, 4), "cube", ("cube", (6, 4, 4), 1)),
        ((6, 4, 4, 3), "cube", ("cube", (6, 4, 4), 4)),
        ((1, 1), None, ("2d", (1, 1), 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.float64])
def test_shape_and_numbers_say_dimension_and_format(
    device: sad.Device,
    shape: tuple[int, ...],
    dimension: str | None,
    expected: tuple[str, tuple[int, ...], int],
    dtype: Any,
) -> None:
    image = values(*shape, dtype=dtype)
    made = sad.texture(image, dimension=dimension)
    assert (made.dimension, made.shape, made.channel_count) == expected
    kind = {1: "8unorm", 2: "16float"}.get(image.itemsize, "32float")
    assert made.format == {1: "r", 2: "rg", 4: "rgba"}[made.channel_count] + kind
    found = made.numpy()
    assert found.dtype == np.dtype({1: np.uint8, 2: np.float16}.get(image.itemsize, np.float32))
    if shape[-1] == 3 and len(shape) > len(made.shape):
        np.testing.assert_array_equal(found[..., 3], 255 if dtype == np.uint8 else 1)
        found = found[..., :3]
    np.testing.assert_array_equal(found.reshape(shape), image.astype(found.dtype))


def test_components_of_arrays_are_channels(device: sad.Device) -> None:
    image = values(5, 7, 3)
    picture = sad.texture(sad.array(image, dtype=sad.float3))
    assert (picture.dimension, picture.format, picture.device) == ("2d", "rgba32float", device)
    np.testing.assert_array_equal(picture.numpy()[..., :3], image)
    line = sad.texture(sad.array(np.float16(image[0]), dtype=half3))
    assert (line.dimension, line.format) == ("1d", "rgba16float")
    volume = sad.texture(sad.array(image), dimension="3d")
    assert (volume.shape, volume.format) == ((5, 7, 3), "r32float")


def test_pictures_of_pillow_are_four_bytes_a_texel(device: sad.Device) -> None:
    pillow = pytest.importorskip("PIL.Image")
    data = values(5, 7, 3, dtype=np.uint8)
    for mode, expected in (
        ("RGB", data),
        ("L", np.repeat(data[..., :1], 3, -1)),
        ("P", data // 128 * 255),
    ):
        given = {"RGB": data, "L": data[..., 0], "P": expected}[mode]
        picture = pillow.fromarray(given)
        made = sad.texture(picture.convert("P", palette=1) if mode == "P" else picture)
        assert made.format == "rgba8unorm"
        np.testing.assert_array_equal(made.numpy()[..., :3], expected)
        np.testing.assert_array_equal(made.numpy()[..., 3], 255)
    floats = sad.texture(pillow.fromarray(values(5, 7)))
    assert floats.format == "r32float"
    np.testing.assert_array_equal(floats.numpy(), values(5, 7))
    with pytest.raises(sad.ShapeError, match="bytes") as caught:
        sad.texture(pillow.fromarray(np.uint16(data[..., 0])))
    assert caught.value.code == "SR0817"
    assert caught.value.label == "found a picture of mode `I;16`"


def test_tensors_of_other_libraries_are_images(device: sad.Device) -> None:
    torch = pytest.importorskip("torch")
    image = torch.tensor(values(5, 7, 4))
    np.testing.assert_array_equal(sad.texture(image).numpy(), image.numpy())


@pytest.mark.parametrize("name", TEXTURE_FORMATS)
def test_every_format_may_be_asked_for(device: sad.Device, name: str) -> None:
    row = TEXTURE_FORMATS[name]
    image = values(3, 4, row.channel_count)
    made = sad.texture(image, format=name)
    assert (made.format, made.numpy().dtype) == (name, row.dtype)
    found = made.numpy().reshape(image.shape) / (255 if row.is_normalised else 1)
    if row.is_srgb:
        found[..., :3] = light_of(found[..., :3])
    # A step of sRGB is a smaller one of light below 1/2, and up to 2.3 times as large above.
    tolerance = 2.3 * ROUNDED if row.is_normalised else 1e-3 if row.dtype == np.float16 else 0
    assert np.abs(found - image).max() <= tolerance


def test_numbers_become_bytes_and_bytes_numbers(device: sad.Device) -> None:
    image = np.float32([[-0.5, 0.0, 0.4999 / 255, 0.5001 / 255, 1.0, 7.0, np.nan, np.inf]])
    found = sad.texture(image, format="r8unorm").numpy()
    np.testing.assert_array_equal(found, [[0, 0, 0, 1, 255, 255, 0, 255]])
    found = sad.texture(BYTES[None], format="r32float").numpy()
    np.testing.assert_array_equal(found, BYTES[None] / np.float32(255))
    found = sad.texture(BYTES.reshape(1, 64, 4), format="rgba8unorm-srgb").numpy()
    np.testing.assert_array_equal(found, BYTES.reshape(1, 64, 4))


def test_srgb_and_light_are_inverse(device: sad.Device) -> None:
    assert np.abs(srgb_of(light_of(BYTES / 255)) - BYTES / 255).max() < 1e-6
    light = light_of(np.repeat(BYTES[:, None], 4, 1) / 255)
    light[:, 3] = BYTES / 255
    found = stored(light, TEXTURE_FORMATS["rgba8unorm-srgb"])
    np.testing.assert_array_equal(found, np.repeat(BYTES[:, None], 4, 1))


# -- levels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dimension", "count"),
    [
        ((7, 10), None, 4),
        ((9, 6, 3), "2d-array", 3),
        ((8, 4, 4), "3d", 4),
        ((5, 6, 3), "3d", 3),
        ((6, 4, 4), "cube", 3),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8])
def test_levels_are_those_of_render(
    device: sad.Device, shape: tuple[int, ...], dimension: str | None, count: int, dtype: Any
) -> None:
    image = values(*shape, dtype=dtype)
    made = sad.texture(image, mips=True, dimension=dimension)
    texels = sad.array(np.float32(image) / np.float32(255 if dtype == np.uint8 else 1))
    expected = levels_of(texels, count, has_layers=dimension in ("2d-array", "cube"))
    assert made.level_count == count
    for level, wanted in enumerate(expected):
        found = made.numpy(level)
        wanted = wanted.numpy().reshape(made.shape_of(level))
        if dtype == np.uint8:
            assert np.abs(found / 255 - wanted).max() <= ROUNDED
        else:
            np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_levels_of_bytes_are_those_of_a_texture_of_render(device: sad.Device) -> None:
    image = values(8, 8, 4, dtype=np.uint8)
    centres = np.float32([[((x + 0.5) / 4, (y + 0.5) / 4) for x in range(4)] for y in range(4)])
    for srgb, name in ((False, "rgba8unorm"), (True, "rgba8unorm-srgb")):
        found = sad.texture(image, mips=True, format=name).numpy(1) / 255
        if srgb:
            found[..., :3] = light_of(found[..., :3])
        wanted = render.texture(
            render.Texture(image, srgb=srgb), sad.array(centres, dtype=sad.float2), level=1.0
        )
        assert np.abs(found - wanted.numpy()).max() <= (2.3 if srgb else 1) * ROUNDED


def test_levels_may_be_given(device: sad.Device) -> None:
    levels = [values(5, 7, 3), values(2, 3, 3), values(1, 1, 3)]
    made = sad.texture(levels)
    assert made.level_count == 3
    for level, wanted in enumerate(levels):
        np.testing.assert_array_equal(made.numpy(level)[..., :3], wanted)
    assert sad.texture(levels[:2], format="rgba16float").level_count == 2
    for dimension in ("cube", "2d-array"):
        layers = sad.texture([values(6, 4, 4), values(6, 2, 2)], dimension=dimension)
        assert layers.shape_of(1) == (6, 2, 2)


def test_levels_of_a_line_are_made_where_the_device_has_them(device: sad.Device) -> None:
    if device.capabilities.has_line_levels:
        assert sad.texture(values(9), mips=True).level_count == 4
        return
    with pytest.raises(sad.DeviceError) as caught:
        sad.texture(values(9), mips=True)
    assert caught.value.code == "SR0636"


def test_a_texture_is_made_inside_of_a_function_that_is_traced(device: sad.Device) -> None:
    def scaled(x: Any) -> Any:
        mean = sad.texture(np.full((4, 4), 3.0, np.float32), mips=True).numpy(2)
        return sad.sum(x * float(mean[0, 0]))

    x = sad.array([1.0, 2.0])
    assert float(sad.graph(scaled)(x)) == 9.0
    np.testing.assert_array_equal(sad.grad(scaled)(x).numpy(), [3.0, 3.0])


# -- refusals --------------------------------------------------------------------------------------


def code_of(image: Any, **options: Any) -> str:
    with pytest.raises(sad.ShapeError) as caught:
        sad.texture(image, **options)
    return caught.value.code


@pytest.mark.parametrize(
    ("image", "options", "code"),
    [
        (values(5, 7, 5), {}, "SR0816"),
        (values(5, 7, 0), {}, "SR0816"),
        (values(0, 7), {}, "SR0816"),
        (np.float32(1.0), {}, "SR0816"),
        (values(2, 3, 4, 5, 4), {}, "SR0816"),
        (values(6, 4, 5), {"dimension": "cube"}, "SR0816"),
        (values(5, 4, 4), {"dimension": "cube"}, "SR0816"),
        (values(5, 7), {"dimension": "3d"}, "SR0816"),
        (values(5, 7), {"dimension": "2d-array"}, "SR0816"),
        (values(0, 5, 7), {"dimension": "2d-array"}, "SR0816"),
        ([values(3, 4, 4), values(1, 2, 2)], {"dimension": "2d-array"}, "SR0818"),
        (values(5, 7, 3), {"dimension": "1d"}, "SR0816"),
        (values(5, 7, 3), {"format": "rg32float"}, "SR0816"),
        (values(5, 7), {"format": "rgb32float"}, "SR0815"),
        (values(5, 7), {"dimension": "2"}, "SR0815"),
        (np.ones((5, 7), np.int64), {}, "SR0817"),
        (np.ones((5, 7), bool), {}, "SR0817"),
        ("a picture", {}, "SR0351"),
        ([], {}, "SR0818"),
        ([values(4, 4), values(2, 2)], {"mips": True}, "SR0818"),
        ([values(5, 7), values(3, 4)], {}, "SR0818"),
        ([values(1, 1), values(1, 1)], {}, "SR0818"),
        ([[0.0, 1.0], [2.0, 3.0]], {}, "SR0818"),
        (np.float32([[1e5]]), {"format": "r16float"}, "SR0354"),
        (np.float64([[1e300]]), {}, "SR0354"),
    ],
    ids=lambda x: str(getattr(x, "shape", x))[:40],
)
def test_what_makes_no_texture_is_refused(
    device: sad.Device, image: Any, options: dict[str, Any], code: str
) -> None:
    assert code_of(image, **options) == code


def test_arrays_of_other_elements_are_refused(device: sad.Device) -> None:
    assert code_of(sad.array(np.arange(4))) == "SR0817"
    assert code_of(sad.array(values(5, 7, 3), dtype=sad.float3), dimension="3d") == "SR0816"
    assert code_of(sad.array(values(5, 7), dtype=float), dimension="1d") == "SR0816"


def test_infinities_and_nans_are_kept(device: sad.Device) -> None:
    image = np.float32([[np.inf, -np.inf, np.nan, 1.0]])
    np.testing.assert_array_equal(sad.texture(image, format="r16float").numpy(), image)


def test_what_a_device_lacks_is_refused() -> None:
    limits = {
        "texture_formats": frozenset({"r32float"}),
        "texture_extent_limits": (8, 8, 4),
        "texture_layer_limit": 6,
    }
    small = sad.open_device("wgpu", limits=limits)
    with pytest.raises(sad.DeviceError, match=r"(?s)SR0640.*7 layers.*at most 6"):
        sad.texture(values(7, 4, 4), dimension="2d-array", device=small)
    assert sad.texture(values(6, 8, 4), dimension="2d-array", device=small).shape == (6, 8, 4)
    for image, code in ((values(4, 4, 2), "SR0627"), (values(4, 9), "SR0628")):
        with pytest.raises(sad.DeviceError) as caught:
            sad.texture(image, device=small)
        assert caught.value.code == code
    assert sad.texture(values(4, 4), device=small).device is small
    with pytest.raises(sad.DeviceError) as caught:
        sad.texture(values(4, 4), device="wgpu")
    assert caught.value.code == "SR0651"
    small.close()
