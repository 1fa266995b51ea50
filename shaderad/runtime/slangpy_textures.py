"""Textures and samplers in slangpy.

slang-rhi can bind a cube only as a cube. Each cube of ours therefore has a second texture with its
six faces as layers, for entry points that load texels of a face.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shaderad.compiler.artifact import Binding
from shaderad.diagnostics import error
from shaderad.ir.dimensions import FACE_COUNT, Dimension
from shaderad.ir.tables import check_rows
from shaderad.runtime.slangpy_module import spy
from shaderad.runtime.texture_formats import TEXTURE_FORMATS
from shaderad.runtime.textures import (
    DeviceTexture,
    SamplerSettings,
    StagedRows,
    TextureLayout,
)

USAGE = (
    spy.TextureUsage.shader_resource
    | spy.TextureUsage.copy_source
    | spy.TextureUsage.copy_destination
)

TYPES = {
    Dimension.LINE: spy.TextureType.texture_1d,
    Dimension.PLANE: spy.TextureType.texture_2d,
    Dimension.LAYERS: spy.TextureType.texture_2d_array,
    Dimension.VOLUME: spy.TextureType.texture_3d,
    Dimension.CUBE: spy.TextureType.texture_cube,
}
check_rows(TYPES, Dimension)
ADDRESS_MODES = {
    "repeat": spy.TextureAddressingMode.wrap,
    "clamp": spy.TextureAddressingMode.clamp_to_edge,
    "mirror": spy.TextureAddressingMode.mirror_repeat,
}
FILTERS = {
    "linear": spy.TextureFilteringMode.linear,
    "nearest": spy.TextureFilteringMode.point,
}


def formats(device: Any, wanted: spy.FormatSupport) -> frozenset[str]:
    """The formats for which the device reports the support `wanted`."""
    return frozenset(
        row.name
        for row in TEXTURE_FORMATS.values()
        if device.get_format_support(spy.Format[row.slangpy_name]) & wanted
    )


def new_texture(device: Any, layout: TextureLayout) -> Any:
    return _created(device, layout, layout.dimension)


def _created(device: Any, layout: TextureLayout, view: Dimension) -> Any:
    """The texture that entry points bind for `view`."""
    width, height, depth = layout.extents
    return device.create_texture(
        type=TYPES[view],
        format=spy.Format[layout.format.slangpy_name],
        width=width,
        height=height,
        depth=1 if view.row.has_layers else depth,
        array_length=layout.layer_count if view is Dimension.LAYERS else 1,
        mip_count=layout.level_count,
        usage=USAGE,
    )


def views_of(device: Any, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
    """The textures that entry points may bind in place of views."""
    others = layout.views - {layout.dimension}
    return wrapped_views_of(layout, native) | {v: _created(device, layout, v) for v in others}


def wrapped_views_of(layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
    """The same for a wrapped texture."""
    return {layout.dimension: native}


def bound_as(binding: Binding, texture: DeviceTexture) -> Any:
    """The object that is bound for `texture`; raises SR0635 for the planes of a wrapped cube."""
    assert binding.view is not None
    if binding.view not in texture.native_by_view:
        raise error("SR0635", name=binding.name)
    return texture.native_by_view[binding.view]


def layout_of(native: Any, wanted: Dimension | None) -> TextureLayout:
    """The layout of a wrapped texture."""
    dimensions = {kind: dimension for dimension, kind in TYPES.items()}
    names = {spy.Format[row.slangpy_name]: row for row in TEXTURE_FORMATS.values()}
    desc = native.desc
    dimension = dimensions.get(desc.type)
    is_single = dimension is Dimension.LAYERS or desc.array_length == 1
    is_known = desc.format in names and wanted in (None, dimension) and is_single
    is_read = desc.sample_count == 1 and desc.usage & USAGE == USAGE
    if dimension is None or not is_known or not is_read:
        shown = f"{desc.type.name}, {desc.format.name}, {desc.array_length} layers"
        raise error("SR0632", found=shown, usage="shader_resource, copy_source, copy_destination")
    layer_counts = {Dimension.CUBE: FACE_COUNT, Dimension.LAYERS: desc.array_length}
    extents = (desc.width, desc.height, layer_counts.get(dimension, desc.depth))
    return TextureLayout(dimension, names[desc.format], extents, desc.mip_count)


def new_sampler(device: Any, settings: SamplerSettings) -> Any:
    u, v, w = (ADDRESS_MODES[wrap] for wrap in settings.wrap)
    return device.create_sampler(
        min_filter=FILTERS[settings.filter],
        mag_filter=FILTERS[settings.filter],
        mip_filter=FILTERS[settings.mip_filter],
        address_u=u,
        address_v=v,
        address_w=w,
    )


def write_level(encoder: Any, texture: DeviceTexture, level: int, content: memoryview) -> None:
    """Records the upload of a level to each of the textures that serve as views."""
    layout = texture.layout
    channels = layout.format.channel_count
    shape = layout.level_shape(level) + ((channels,) if channels > 1 else ())
    values = np.frombuffer(content, layout.format.dtype).reshape(shape)
    layers = values if layout.dimension.row.has_layers else values[None]
    # slangpy refuses read-only arrays even as input.
    layers = layers if layers.flags.writeable else layers.copy()
    for native in texture.native_by_view.values():
        for layer, plane in enumerate(layers):
            encoder.upload_texture_data(native, layer, level, plane)


def copy_level(encoder: Any, texture: DeviceTexture, rows: StagedRows, staging: Any) -> None:
    """Records the copy of a level to the start of `staging`."""
    layer_count = texture.layout.layer_count
    size = rows.byte_count // layer_count
    for layer in range(layer_count):
        encoder.copy_texture_to_buffer(
            staging, layer * size, size, rows.pitch, texture.native, layer, rows.level
        )
