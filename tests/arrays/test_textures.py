"""Textures and samplers as users hold them, on every runtime."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def test_a_texture_says_what_it_is(device: sad.Device) -> None:
    picture = sad.texture(pixels(5, 7, 4), mips=True)
    assert (picture.dimension, picture.format) == ("2d", "rgba8unorm")
    assert (picture.shape, picture.extents, picture.channel_count) == ((5, 7), (7, 5, 1), 4)
    assert [picture.shape_of(k) for k in range(picture.level_count)] == [(5, 7), (2, 3), (1, 1)]
    assert picture.device is device
    runtime = device.capabilities.runtime
    assert repr(picture) == (
        f"Texture('2d', 'rgba8unorm', shape=(5, 7), levels=3, device='{runtime}')"
    )
    assert repr(sad.texture(pixels(6, 4, 4), dimension="cube")) == (
        f"Texture('cube', 'r8unorm', shape=(6, 4, 4), device='{runtime}')"
    )


def test_only_levels_that_we_make_have_a_pullback(device: sad.Device) -> None:
    assert sad.texture(pixels(4, 4), mips=True).mips_are_made
    for image in (pixels(4, 4), [pixels(4, 4), pixels(2, 2)]):
        assert not sad.texture(image).mips_are_made


def test_a_level_that_is_not_there_is_refused(device: sad.Device) -> None:
    picture = sad.texture(pixels(4, 4))
    for level in (1, -1):
        with pytest.raises(sad.ShapeError, match="1 level") as caught:
            picture.numpy(level)
        assert caught.value.code == "SR0814"


def test_content_waits_for_reports_of_kernels(device: sad.Device) -> None:
    @sad.kernel
    def reads_too_far(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i + 1]

    picture = sad.texture(pixels(4, 4))
    reads_too_far(np.zeros(2, np.float32), dim=2)
    with pytest.raises(sad.BoundsError):
        picture.numpy()
    np.testing.assert_array_equal(picture.numpy(), pixels(4, 4))


def test_a_native_texture_is_wrapped_without_a_copy(device: sad.Device) -> None:
    picture = sad.texture(pixels(5, 7, 4), mips=True, format="rgba8unorm-srgb")
    wrapped = sad.Texture.from_native(picture.native)
    assert wrapped.native is picture.native
    assert (wrapped.shape, wrapped.format, wrapped.level_count) == ((5, 7), "rgba8unorm-srgb", 3)
    assert not wrapped.mips_are_made
    for level in range(3):
        np.testing.assert_array_equal(wrapped.numpy(level), picture.numpy(level))


def test_only_textures_of_the_device_are_wrapped(device: sad.Device) -> None:
    with pytest.raises(sad.DeviceError) as caught:
        sad.Texture.from_native(sad.array([1.0]).native)
    assert caught.value.code == "SR0631"
    with pytest.raises(sad.DeviceError) as caught:
        sad.Texture.from_native(sad.texture(pixels(4, 4)).native, device="wgpu")
    assert caught.value.code == "SR0651"


def test_a_texture_is_its_own_copy_and_not_pickled(device: sad.Device) -> None:
    picture = sad.texture(pixels(4, 4))
    assert copy.copy(picture) is picture
    assert copy.deepcopy({"picture": [picture]})["picture"][0] is picture
    with pytest.raises(sad.ShapeError) as caught:
        pickle.dumps(picture)
    assert caught.value.code == "SR0384"


def test_settings_of_samplers_are_compared_by_value() -> None:
    plain = sad.sampler()
    assert (plain.filter, plain.wrap, plain.mip_filter) == ("linear", ("repeat",) * 3, "linear")
    assert plain == sad.sampler("linear", "repeat", "linear")
    assert hash(plain) == hash(sad.sampler(wrap=("repeat", "repeat", "repeat")))
    assert sad.sampler(wrap=("clamp", "mirror")).wrap == ("clamp", "mirror", "mirror")
    assert sad.sampler(filter="nearest", mip_filter="nearest") != plain


@pytest.mark.parametrize(
    "wrong",
    [
        {"filter": "cubic"},
        {"mip_filter": "trilinear"},
        {"wrap": "border"},
        {"wrap": ("repeat", "edge")},
        {"wrap": ("repeat",) * 4},
        {"wrap": ()},
        {"wrap": None},
    ],
    ids=str,
)
def test_other_words_for_samplers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(sad.ShapeError, match=f"`{next(iter(wrong))}`") as caught:
        sad.sampler(**wrong)
    assert caught.value.code == "SR0815"
    assert "`border` works only in `render.texture`" in caught.value.help
