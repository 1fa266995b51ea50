"""Textures and samplers in wgpu."""

from __future__ import annotations

from typing import Any

import wgpu

from shaderad.diagnostics import error
from shaderad.ir.dimensions import FACE_COUNT, Dimension
from shaderad.runtime.texture_formats import TEXTURE_FORMATS
from shaderad.runtime.textures import (
    DeviceTexture,
    SamplerSettings,
    StagedRows,
    TextureLayout,
)

USAGE = wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_SRC | wgpu.TextureUsage.COPY_DST

ADDRESS_MODES = {"repeat": "repeat", "clamp": "clamp-to-edge", "mirror": "mirror-repeat"}


def new_texture(device: Any, layout: TextureLayout) -> Any:
    return device.create_texture(
        size=layout.extents,
        mip_level_count=layout.level_count,
        dimension=native_dimension(layout.dimension),
        format=layout.format.name,
        usage=USAGE,
    )


def native_dimension(dimension: Dimension) -> str:
    """The dimension of a texture in WebGPU, in which layers and faces are planes."""
    return "2d" if dimension.row.has_layers else dimension.value


def views_of(layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
    """The views that entry points may bind."""
    return {view: native.create_view(dimension=view.value) for view in layout.views}


def layout_of(native: Any, wanted: Dimension | None) -> TextureLayout:
    """The layout of a wrapped texture; six planes are a cube, unless layers are wanted."""
    planes = native.size[2] if native.dimension == "2d" else 1
    choices = [Dimension(native.dimension)]
    if native.dimension == "2d":
        choices = [*_BY_PLANES.get(planes, ()), Dimension.LAYERS]
    dimension = wanted or choices[0]
    is_known = native.format in TEXTURE_FORMATS and dimension in choices
    if not is_known or native.sample_count != 1 or native.usage & USAGE != USAGE:
        shown = (
            f"{native.dimension}, {native.format}, {planes} planes, {native.sample_count} samples"
        )
        raise error("SR0632", found=shown, usage="TEXTURE_BINDING, COPY_SRC and COPY_DST")
    return TextureLayout(
        dimension, TEXTURE_FORMATS[native.format], native.size, native.mip_level_count
    )


_BY_PLANES = {1: [Dimension.PLANE], FACE_COUNT: [Dimension.CUBE]}
"""The dimensions, but for layers, of textures with this many planes."""


def new_sampler(device: Any, settings: SamplerSettings) -> Any:
    u, v, w = (ADDRESS_MODES[wrap] for wrap in settings.wrap)
    return device.create_sampler(
        address_mode_u=u,
        address_mode_v=v,
        address_mode_w=w,
        mag_filter=settings.filter,
        min_filter=settings.filter,
        mipmap_filter=settings.mip_filter,
    )


def write_level(queue: Any, texture: DeviceTexture, level: int, content: memoryview) -> None:
    """Writes a level; the queue copies `content` at once."""
    extents = texture.layout.level_extents(level)
    pitch = extents[0] * texture.layout.format.texel_bytes
    queue.write_texture(
        {"texture": texture.native, "mip_level": level},
        content,
        {"bytes_per_row": pitch, "rows_per_image": extents[1]},
        extents,
    )


def copy_level(encoder: Any, texture: DeviceTexture, rows: StagedRows, staging: Any) -> None:
    """Records the copy of a level to the start of `staging`."""
    encoder.copy_texture_to_buffer(
        {"texture": texture.native, "mip_level": rows.level},
        {"buffer": staging, "bytes_per_row": rows.pitch, "rows_per_image": rows.extents[1]},
        rows.extents,
    )
