"""Textures and samplers on every runtime: what programs read is what was written."""

from __future__ import annotations

import gc
import struct
from typing import Any

import numpy as np
import pytest

from shaderad.compiler.artifact import Program
from shaderad.diagnostics import DeviceError
from shaderad.ir.dimensions import Dimension
from shaderad.runtime import DeviceBuffer, Runtime, open_runtime
from shaderad.runtime.texture_formats import TEXTURE_FORMATS, read_by_shaders, stored
from shaderad.runtime.textures import DeviceTexture, SamplerSettings, TextureLayout
from tests.runtime.programs import SCALE_AND_ADD, scale_and_add_words
from tests.runtime.texture_programs import loading, sampling
from tests.runtime.texture_reference import FACES, sampled

LINE, PLANE, VOLUME = Dimension.LINE, Dimension.PLANE, Dimension.VOLUME
LAYERS, CUBE = Dimension.LAYERS, Dimension.CUBE
EXTENTS = {LINE: (7, 1, 1), PLANE: (7, 5, 1), LAYERS: (7, 5, 3), VOLUME: (4, 3, 5), CUBE: (4, 4, 6)}
FLOAT4 = 16
"""Bytes."""
REPEAT = ("repeat",) * 3
LINEAR, NEAREST = (SamplerSettings(f, REPEAT, f) for f in ("linear", "nearest"))
STORED = 1e-7
"""Bytes as floats from 0 to 1, in 32 bits."""
SRGB = 2e-3
"""lavapipe turns bytes of sRGB to light by a polynomial."""
FILTERED = 1 / 256
"""Devices weigh texels from 0 to 1 by eight bits at least."""


def made(
    runtime: Runtime,
    dimension: Dimension,
    levels: int = 1,
    name: str = "rgba32float",
    seed: int = 0,
) -> tuple[DeviceTexture, list[np.ndarray]]:
    """A texture of random texels, and what shaders read of each level."""
    row = TEXTURE_FORMATS[name]
    layout = TextureLayout(dimension, row, EXTENTS[dimension], levels)
    texture = runtime.create_texture(layout)
    contents = [random_level(layout, level, seed) for level in range(levels)]
    for level, content in enumerate(contents):
        runtime.write_texture(texture, level, content.data)
    return texture, [read_by_shaders(content, row) for content in contents]


def random_level(layout: TextureLayout, level: int, seed: int) -> np.ndarray:
    shape = (*layout.level_shape(level), layout.format.channel_count)
    return stored(np.random.default_rng((seed, level)).uniform(size=shape), layout.format)


def values(runtime: Runtime, buffer: DeviceBuffer) -> np.ndarray:
    content = runtime.read([(buffer, 0, buffer.byte_count)])[0]
    return np.frombuffer(content, np.float32).reshape(-1, 4)


def load(runtime: Runtime, texture: DeviceTexture, level: int = 0) -> DeviceBuffer:
    """Records a dispatch that reads all texels of a level."""
    width, height, depth = texture.layout.level_extents(level)
    count = width * height * depth
    out = runtime.allocate(FLOAT4 * count)
    pipeline = runtime.pipeline(loading(texture.layout.dimension.row.texel_view))
    words = struct.pack("<IIIi", width, height, count, level)
    runtime.dispatch(pipeline, {1: texture, 2: out}, words, (-(-count // 64), 1, 1))
    return out


def sample(
    runtime: Runtime,
    texture: DeviceTexture,
    points: np.ndarray,
    settings: SamplerSettings,
    program: Program | None = None,
) -> DeviceBuffer:
    """Records a dispatch that samples at points (x, y, z, level)."""
    places = runtime.allocate(FLOAT4 * len(points))
    runtime.write(places, 0, np.float32(points).tobytes())
    out = runtime.allocate(FLOAT4 * len(points))
    pipeline = runtime.pipeline(program or sampling(texture.layout.dimension))
    bound = {1: places, 2: texture, 3: runtime.sampler(settings), 4: out}
    groups = (-(-len(points) // 64), 1, 1)
    runtime.dispatch(pipeline, bound, struct.pack("<I", len(points)), groups)
    return out


def random_points(count: int, level_count: int = 1) -> np.ndarray:
    """Points (x, y, z, level), some beyond the edges, away from those of texels."""
    points = np.random.default_rng(3).uniform(-1.5, 2.5, (40 * count, 4))
    points[:, 3] = points[:, 3] % 1 * (level_count - 1)
    edges = points[:, :3, None] * np.arange(1, 8)  # of levels of one to seven texels
    is_clear = (np.abs(edges - np.rint(edges)) > 0.02).all((1, 2))
    points = points[is_clear & (np.abs(points[:, 3] % 1 - 0.5) > 0.02)]
    assert len(points) > count
    return np.float32(points[:count])


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """True if the channels of a format are as expected, and the rest is 0, and alpha 1."""
    count = expected.shape[-1]
    missing = np.float32([0, 0, 0, 1])[count:]
    is_missing = np.array_equal(found[:, count:], np.broadcast_to(missing, found[:, count:].shape))
    return is_missing and np.abs(found[:, :count] - expected.reshape(-1, count)).max() <= tolerance


@pytest.mark.parametrize("name", TEXTURE_FORMATS)
def test_texels_of_every_format_are_read_as_their_values(runtime: Runtime, name: str) -> None:
    texture, (expected,) = made(runtime, PLANE, name=name)
    tolerance = SRGB if TEXTURE_FORMATS[name].is_srgb else STORED
    assert close(values(runtime, load(runtime, texture)), expected, tolerance)


@pytest.mark.parametrize("dimension", [PLANE, LAYERS, VOLUME, CUBE])
def test_every_level_of_every_dimension_is_loaded_where_it_was_written(
    runtime: Runtime, dimension: Dimension
) -> None:
    texture, levels = made(runtime, dimension, 3)
    for level, expected in enumerate(levels):
        assert close(values(runtime, load(runtime, texture, level)), expected, 0.0)


@pytest.mark.parametrize("dimension", EXTENTS)
@pytest.mark.parametrize("name", ["r8unorm", "rgba8unorm-srgb", "rg16float", "rgba32float"])
def test_a_level_is_read_back_as_it_was_written(
    runtime: Runtime, dimension: Dimension, name: str
) -> None:
    level_count = 1 if dimension is LINE else 3
    texture, _ = made(runtime, dimension, level_count, name)
    for level in range(level_count):
        expected = random_level(texture.layout, level, 0)
        assert bytes(runtime.read_texture(texture, level)) == expected.tobytes()


@pytest.mark.parametrize("dimension", [LINE, PLANE, VOLUME])
@pytest.mark.parametrize("wrap", ["repeat", "clamp", "mirror"])
@pytest.mark.parametrize("filter_", ["linear", "nearest"])
def test_samples_are_those_of_the_formula(
    runtime: Runtime, dimension: Dimension, wrap: str, filter_: Any
) -> None:
    settings = SamplerSettings(filter_, (wrap,) * 3, "nearest")
    texture, levels = made(runtime, dimension)
    points = random_points(200)
    axes = dimension.row.axes
    expected = sampled(levels, points[:, :axes], points[:, 3], settings)
    assert close(values(runtime, sample(runtime, texture, points, settings)), expected, FILTERED)


def test_each_axis_wraps_in_its_own_way(runtime: Runtime) -> None:
    settings = SamplerSettings("linear", ("clamp", "mirror", "repeat"), "linear")
    texture, levels = made(runtime, VOLUME)
    points = random_points(200)
    expected = sampled(levels, points[:, :3], points[:, 3], settings)
    assert close(values(runtime, sample(runtime, texture, points, settings)), expected, FILTERED)


@pytest.mark.parametrize("filter_", ["linear", "nearest"])
@pytest.mark.parametrize("mip_filter", ["linear", "nearest"])
def test_levels_are_chosen_or_mixed(runtime: Runtime, filter_: Any, mip_filter: Any) -> None:
    settings = SamplerSettings(filter_, REPEAT, mip_filter)
    texture, levels = made(runtime, PLANE, 3)
    points = random_points(300, 3)
    expected = sampled(levels, points[:, :2], points[:, 3], settings)
    found = values(runtime, sample(runtime, texture, points, settings))
    assert close(found, expected, 2 * FILTERED)


def test_colours_in_srgb_are_filtered_as_light(runtime: Runtime) -> None:
    texture, levels = made(runtime, PLANE, name="rgba8unorm-srgb")
    points = random_points(200)
    expected = sampled(levels, points[:, :2], points[:, 3], LINEAR)
    found = values(runtime, sample(runtime, texture, points, LINEAR))
    assert close(found, expected, FILTERED + SRGB)


def test_directions_lead_to_the_faces_of_a_cube(runtime: Runtime) -> None:
    texture, (faces,) = made(runtime, CUBE)
    centres = (2 * np.arange(4) + 1) / 4 - 1
    points = np.float32([(*face(a, b), 0) for face in FACES for b in centres for a in centres])
    assert close(values(runtime, sample(runtime, texture, points, NEAREST)), faces, 0.0)


def test_programs_of_a_later_space_bind_textures(runtime: Runtime) -> None:
    texture, levels = made(runtime, PLANE)
    points = random_points(100)
    expected = sampled(levels, points[:, :2], points[:, 3], LINEAR)
    out = sample(runtime, texture, points, LINEAR, sampling(PLANE, space=1))
    assert close(values(runtime, out), expected, FILTERED)


def test_a_write_to_a_texture_is_seen_by_dispatches_behind_it_alone(runtime: Runtime) -> None:
    texture, (before,) = made(runtime, CUBE)
    first = load(runtime, texture)
    after = random_level(texture.layout, 0, seed=1)
    runtime.write_texture(texture, 0, after.data)
    second = load(runtime, texture)
    assert close(values(runtime, first), before, 0.0)
    assert close(values(runtime, second), after, 0.0)


def test_one_program_reads_many_textures_in_turn(runtime: Runtime) -> None:
    made_ones = [made(runtime, PLANE, seed=seed) for seed in range(4)]
    found = [[load(runtime, texture) for texture, _ in made_ones] for _ in range(2)]
    for outs in found:
        for out, (_, (expected,)) in zip(outs, made_ones, strict=True):
            assert close(values(runtime, out), expected, 0.0)


def test_a_texture_dropped_while_recorded_still_serves(runtime: Runtime) -> None:
    texture, (expected,) = made(runtime, PLANE)
    out = load(runtime, texture)
    del texture
    gc.collect()
    others = [made(runtime, PLANE, seed=seed) for seed in range(1, 17)]
    assert close(values(runtime, out), expected, 0.0)
    assert len(others) == 16


def test_bindings_of_dropped_textures_are_forgotten(runtime: Runtime) -> None:
    texture, _ = made(runtime, PLANE)
    load(runtime, texture)
    serial = texture.serial
    assert runtime.bindings.count_of(serial) == 1
    del texture
    gc.collect()
    runtime.submit()
    assert runtime.bindings.count_of(serial) == 0


def test_samplers_of_the_same_settings_are_one(runtime: Runtime) -> None:
    assert runtime.sampler(LINEAR) is runtime.sampler(SamplerSettings("linear", REPEAT, "linear"))
    assert runtime.sampler(LINEAR) is not runtime.sampler(NEAREST)


# -- textures of others ----------------------------------------------------------------------------


def native_texture(runtime: Runtime, **changes: Any) -> Any:
    """A texture of 7 x 5 texels made by the library itself."""
    if runtime.capabilities.runtime == "wgpu":
        import wgpu

        usage = (
            wgpu.TextureUsage.TEXTURE_BINDING
            | wgpu.TextureUsage.COPY_SRC
            | wgpu.TextureUsage.COPY_DST
        )
        options: dict[str, Any] = {"size": (7, 5, 1), "format": "rgba32float", "usage": usage}
        return runtime.native.create_texture(**options | changes)
    import slangpy as spy

    usages = spy.TextureUsage
    options = {
        "type": spy.TextureType.texture_2d, "width": 7, "height": 5,
        "format": spy.Format.rgba32_float,
        "usage": usages.shader_resource | usages.copy_source | usages.copy_destination,
    }  # fmt: skip
    return runtime.native.create_texture(**options | changes)


def test_a_wrapped_texture_is_read_and_written_like_another(runtime: Runtime) -> None:
    native = native_texture(runtime)
    texture = runtime.wrap_texture(native)
    assert texture.native is native
    assert texture.layout == TextureLayout(PLANE, TEXTURE_FORMATS["rgba32float"], (7, 5, 1), 1)
    content = random_level(texture.layout, 0, seed=0)
    runtime.write_texture(texture, 0, content.data)
    assert close(values(runtime, load(runtime, texture)), content, 0.0)


def test_a_wrapped_cube_is_sampled(runtime: Runtime) -> None:
    own, (faces,) = made(runtime, CUBE)
    texture = runtime.wrap_texture(own.native)
    assert texture.layout == own.layout
    points = np.float32([(*face(0.25, 0.25), 0) for face in FACES])
    found = values(runtime, sample(runtime, texture, points, NEAREST))
    assert close(found, faces[:, 2, 2], 0.0)
    if runtime.capabilities.runtime == "wgpu":
        assert close(values(runtime, load(runtime, texture)), faces, 0.0)
    else:
        assert code_of(load, runtime, texture) == "SR0635"


@pytest.mark.parametrize("count", [1, 4, 6])
def test_wrapped_layers_are_loaded(runtime: Runtime, count: int) -> None:
    """No texture of wgpu says whether six layers are a cube, and one is a picture."""
    row, is_wgpu = TEXTURE_FORMATS["rgba32float"], runtime.capabilities.runtime == "wgpu"
    own = runtime.create_texture(TextureLayout(LAYERS, row, (5, 5, count), 1))
    content = random_level(own.layout, 0, seed=count)
    runtime.write_texture(own, 0, content.data)
    texture = runtime.wrap_texture(own.native, LAYERS)
    assert texture.layout == own.layout
    assert close(values(runtime, load(runtime, texture)), content, 0.0)
    unnamed = runtime.wrap_texture(own.native).layout.dimension
    assert unnamed is ({1: PLANE, 6: CUBE}.get(count, LAYERS) if is_wgpu else LAYERS)
    assert code_of(runtime.wrap_texture, own.native, VOLUME) == "SR0632"


def test_only_textures_that_kernels_can_read_are_wrapped(runtime: Runtime) -> None:
    assert code_of(runtime.wrap_texture, runtime.allocate(16).native) == "SR0631"
    if runtime.capabilities.runtime == "wgpu":
        import wgpu

        wrong = [
            {"format": "rgba8snorm"},
            {"usage": wgpu.TextureUsage.TEXTURE_BINDING},
        ]
    else:
        import slangpy as spy

        wrong = [
            {"format": spy.Format.rgba8_snorm},
            {"type": spy.TextureType.texture_cube_array, "width": 5, "array_length": 2},
            {"usage": spy.TextureUsage.shader_resource},
        ]
    for changes in wrong:
        native = native_texture(runtime, **changes)
        assert code_of(runtime.wrap_texture, native) == "SR0632"


# -- refusals --------------------------------------------------------------------------------------


def code_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(DeviceError) as caught:
        call(*arguments)
    return caught.value.code


def test_a_resource_of_another_kind_is_refused(runtime: Runtime) -> None:
    texture, _ = made(runtime, PLANE)
    buffer, words = runtime.allocate(FLOAT4), bytes(16)
    pipeline = runtime.pipeline(loading(PLANE))
    for bound in ({1: buffer, 2: buffer}, {1: texture, 2: texture}, {2: buffer}):
        assert code_of(runtime.dispatch, pipeline, bound, words, (1, 1, 1)) == "SR0614"
    bound = {1: buffer, 2: runtime.sampler(LINEAR), 3: buffer}
    words = scale_and_add_words(1, 1.0, 1.0)
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    assert code_of(runtime.dispatch, pipeline, bound, words, (1, 1, 1)) == "SR0614"


def test_a_texture_of_another_dimension_is_refused(runtime: Runtime) -> None:
    texture, _ = made(runtime, VOLUME)
    with pytest.raises(DeviceError, match="`picture`") as caught:
        sample(runtime, texture, random_points(1), LINEAR, sampling(PLANE))
    assert caught.value.code == "SR0629"


@pytest.mark.parametrize(("level", "missing"), [(0, 1), (1, 0), (-1, 0)])
def test_bytes_that_do_not_fit_a_level_are_refused(
    runtime: Runtime, level: int, missing: int
) -> None:
    texture, _ = made(runtime, PLANE)
    content = bytes(texture.layout.level_bytes(0) - missing)
    assert code_of(runtime.write_texture, texture, level, content) == "SR0633"
    assert missing or code_of(runtime.read_texture, texture, level) == "SR0633"


def test_what_a_device_lacks_is_named(runtime_name: str) -> None:
    limits = {
        "texture_formats": frozenset({"rgba8unorm", "r32float"}),
        "filtered_formats": frozenset({"rgba8unorm"}),
        "texture_extent_limits": (8, 6, 4),
        "texture_layer_limit": 7,
        "has_line_levels": False,
        "sampler_limit": 0,
    }
    small = open_runtime(runtime_name, limits=limits)
    row = TEXTURE_FORMATS["rgba8unorm"]
    for layout, code in (
        (TextureLayout(PLANE, TEXTURE_FORMATS["rgba16float"], (4, 4, 1), 1), "SR0627"),
        (TextureLayout(PLANE, row, (7, 4, 1), 1), "SR0628"),
        (TextureLayout(VOLUME, row, (4, 4, 5), 1), "SR0628"),
        (TextureLayout(CUBE, row, (7, 7, 6), 1), "SR0628"),
        (TextureLayout(LAYERS, row, (4, 4, 8), 1), "SR0640"),
        (TextureLayout(LINE, row, (8, 1, 1), 2), "SR0636"),
    ):
        assert code_of(small.create_texture, layout) == code
    small.create_texture(TextureLayout(CUBE, row, (6, 6, 6), 1))
    small.create_texture(TextureLayout(LAYERS, row, (6, 6, 7), 1))
    assert code_of(small.pipeline, sampling(PLANE)) == "SR0634"
    small.close()
    few = open_runtime(runtime_name, limits={"texture_limit": 0})
    assert code_of(few.pipeline, loading(PLANE)) == "SR0626"
    few.close()


def test_levels_larger_than_a_buffer_are_refused(runtime_name: str) -> None:
    small = open_runtime(runtime_name, limits={"buffer_bytes_limit": 4 << 20})
    wide, narrow = TEXTURE_FORMATS["rgba32float"], TEXTURE_FORMATS["r8unorm"]
    assert code_of(small.create_texture, TextureLayout(PLANE, wide, (600, 600, 1), 1)) == "SR0606"
    texture = small.create_texture(TextureLayout(VOLUME, narrow, (1, 300, 60), 1))
    assert (
        code_of(small.read_texture, texture, 0) == "SR0606"
    )  # read rows begin at multiples of 256
    small.close()


def test_a_format_that_is_not_filtered_is_loaded_but_not_sampled(runtime_name: str) -> None:
    small = open_runtime(runtime_name, limits={"filtered_formats": frozenset({"rgba16float"})})
    texture, (expected,) = made(small, PLANE, name="r32float")
    assert close(values(small, load(small, texture)), expected, 0.0)
    with pytest.raises(DeviceError, match=r"(?s)`r32float`.*rgba16float") as caught:
        sample(small, texture, random_points(1), NEAREST)
    assert caught.value.code == "SR0630"
    small.close()
