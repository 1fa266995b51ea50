"""Pictures, layers, volumes and cubes in NumPy, Pillow or arrays -> textures on a device.

Invariant: a shader reads the values of the picture, rounded to the format. Bytes stand for 0 to 1,
floats for themselves.
"""

from __future__ import annotations

from contextvars import Context
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from shaderad.arrays.arrays import Array, array_called, on_host
from shaderad.arrays.dtypes import shown_dtype
from shaderad.arrays.textures import (
    Texture,
    checked_word,
    dimension_of,
    texel_of,
    texture_of_levels,
)
from shaderad.device.devices import Device, asked_device, current_device
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import types
from shaderad.ir.dimensions import FACE_COUNT, Dimension
from shaderad.runtime import buffers
from shaderad.runtime.texture_formats import (
    BYTE,
    FLOAT,
    HALF,
    TEXTURE_FORMATS,
    AnyArray,
    format_of,
    read_by_shaders,
    stored,
)
from shaderad.runtime.textures import Extents, TextureLayout, full_level_count
from shaderad.textures.mips import MadeMips, levels_of

__all__ = ["texture"]

_MOST_CHANNELS = 4
_KINDS = (BYTE, HALF, FLOAT, np.dtype(np.float64))
"""The dtypes of texels; the last one becomes float."""
_SCALARS = {HALF: types.HALF, FLOAT: types.FLOAT}
_WIDE_MODES = ("I", "I;16", "I;16L", "I;16B", "I;16N")
"""Modes of Pillow with more than eight bits per channel."""


@api_boundary
def texture(
    image: Any,
    mips: bool = False,
    format: str | None = None,  # noqa: A002 - the public name
    dimension: str | None = None,
    device: Device | None = None,
) -> Texture:
    """Puts a picture, layers of pictures, a volume or a cube on a device as a texture.

    Args:
        image: Bytes (``numpy.uint8``) that stand for 0 to 1, or floats, of shape (w,), (h, w),
            (h, w, channels) or (d, h, w, channels). There are one to four channels, and three
            become four with an alpha of 1. An array of floats or float vectors on a device, whose
            channels are the components. A picture of Pillow, which becomes four bytes per texel. A
            list of the levels of a mip chain, each half as large as the one before.
        mips: Makes the mip chain by means over boxes in linear light, as `render.Texture` does.
        format: ``"r8unorm"``, ``"rg8unorm"``, ``"rgba8unorm"``, ``"rgba8unorm-srgb"`` for colours
            that are in sRGB, or ``"r16float"`` to ``"rgba32float"``. Default: that of the image.
        dimension: ``"1d"``, ``"2d"``, ``"2d-array"``, ``"3d"`` or ``"cube"``, if the shape is
            ambiguous: (n, channels) of a line, (layers, h, w) of pictures in layers, (d, h, w) of
            a volume, (6, n, n) of the faces +x, -x, +y, -y, +z, -z of a cube. Layers and faces may
            have an axis of channels.
        device: Default: that of `image`, if it is an array, else the current one.

    Raises:
        ShapeError: SR0815 for an unknown `format` or `dimension`, SR0816 for a shape that is none
            of these, SR0817 for other numbers, SR0818 for levels that do not fit each other, SR0354
            for floats beyond those of the format.
        DeviceError: SR0627, SR0628, SR0636 and SR0640, if the device has no such textures;
            SR0605, if it has no room; SR0651 for a `device` that is not one.
    """
    images = list(cast("list[Any]", image)) if isinstance(image, list | tuple) else [image]
    if not images or (mips and len(images) > 1):
        raise error("SR0818", why="`mips=True` makes levels from one image, or give all of them")
    owner = images[0].device if isinstance(images[0], Array) else None
    device = asked_device(device) or owner or current_device()
    wanted = dimension_of(dimension)
    levels = [_texels(x, wanted) for x in images]
    first = levels[0].channels
    name = checked_word("format", format, TEXTURE_FORMATS)
    row = format_of(first.dtype, first.shape[-1]) if name is None else TEXTURE_FORMATS[name]
    layout = TextureLayout(levels[0].dimension, row, levels[0].extents, len(levels))
    if mips:
        layout = replace(layout, level_count=full_level_count(layout))
    contents = [_content(texels, layout, k) for k, texels in enumerate(levels)]
    if mips:
        # In an empty context, so that a function that is being traced does not record it.
        contents += Context().run(_smaller_levels, contents[0], layout, device)
    chain = MadeMips(layout.level_count, layout.dimension.row.has_layers) if mips else None
    return texture_of_levels(device, layout, contents, chain)


class _Image(NamedTuple):
    """The texels of a level on the host."""

    dimension: Dimension
    channels: AnyArray
    """uint8, float16, float32 or float64, with the channels as the last axis."""

    @property
    def extents(self) -> Extents:
        """Width, height, depth."""
        width, height, depth = (*self.channels.shape[-2::-1], 1, 1)[:3]
        return width, height, depth


def _texels(image: Any, dimension: Dimension | None) -> _Image:
    """The texels of an image with their channels; raises SR0816 and SR0817."""
    has_channels: bool | None = None
    if isinstance(image, Array):
        image.check_readable("`sad.texture`")
        has_channels = isinstance(image.element, types.Vector)
        data, kind = image.numpy(), str(image.element)
    elif hasattr(image, "mode") and hasattr(image, "convert"):  # a picture of Pillow
        kind = f"a picture of mode `{image.mode}`"
        is_kept = image.mode == "F" or image.mode in _WIDE_MODES
        data = np.asarray(image if is_kept else image.convert("RGBA"))
    else:
        data = buffers.as_numpy(image, "image")
        kind = str(data.dtype)
    if data.dtype not in _KINDS:
        raise error("SR0817", found=kind)
    return _with_channels(data, dimension, has_channels)


def _with_channels(
    data: AnyArray, dimension: Dimension | None, has_channels: bool | None
) -> _Image:
    """Texels with channels as the last axis; `has_channels` is `None` if `data` leaves it open."""
    if has_channels is None:
        # (h, w, channels) is a picture, and (h, w) a picture with a single channel.
        has_channels = data.ndim > (2 if dimension is None else dimension.row.axes)
    axes = data.ndim - has_channels
    dimension = dimension or _DIMENSIONS.get(axes)
    if dimension is None or dimension.row.axes != axes:
        what = f'a texture of dimension "{dimension.value}"' if dimension else "a texture"
        count = dimension.row.axes if dimension else "one to three"
        raise error(
            "SR0816", shape=data.shape, why=f"{what} has {count} axes, and that of channels"
        )
    channels = data if has_channels else data[..., None]
    *shape, count = channels.shape
    if not 1 <= count <= _MOST_CHANNELS:
        raise error("SR0816", shape=data.shape, why=f"{count} channels, and a texel has 1 to 4")
    if 0 in shape:
        raise error("SR0816", shape=data.shape, why="it has no texels")
    if dimension is Dimension.CUBE and not (shape[0] == FACE_COUNT and shape[1] == shape[2]):
        raise error("SR0816", shape=data.shape, why="a cube has six square faces, (6, n, n)")
    return _Image(dimension, channels)


_DIMENSIONS = {1: Dimension.LINE, 2: Dimension.PLANE, 3: Dimension.VOLUME}


def _content(texels: _Image, layout: TextureLayout, level: int) -> AnyArray:
    """The content of a level; raises SR0354, SR0816 and SR0818."""
    channels, row = texels.channels, layout.format
    *shape, count = channels.shape
    if level >= full_level_count(layout) or tuple(shape) != layout.level_shape(level):
        wanted = layout.level_shape(level)
        raise error("SR0818", why=f"level {level} has the shape {tuple(shape)}, expected {wanted}")
    if count > row.channel_count:
        why = f"{count} channels, and `{row.name}` has {row.channel_count}"
        raise error("SR0816", shape=channels.shape, why=why)
    content = stored(channels, row)
    if not row.is_normalised:
        is_beyond = np.isinf(content[..., :count]) & np.isfinite(channels)
        if is_beyond.any():
            scalar = _SCALARS[row.dtype]
            raise error("SR0354", name="image", type=scalar, value=channels[is_beyond].flat[0])
    return content


def _smaller_levels(content: AnyArray, layout: TextureLayout, device: Device) -> list[AnyArray]:
    """The levels after the first, computed from it on the device in floats."""
    values = read_by_shaders(content, layout.format).astype(FLOAT)
    count = layout.format.channel_count
    shown = values if count > 1 else values[..., 0]
    texels = array_called("image", shown, shown_dtype(texel_of(count)), device)
    levels = levels_of(texels, layout.level_count, has_layers=layout.dimension.row.has_layers)
    return [
        stored(level.reshape(*layout.level_shape(k), count), layout.format)
        for k, level in enumerate(on_host(device, levels[1:]), start=1)
    ]
