"""The formats of texels: their names in libraries, and NumPy arrays <-> what a texture stores.

Bytes are normalised: 0 to 255 stand for 0 to 1. Invariant: stored values are read back bit for
bit; only values of another kind are converted, and rounded to nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

AnyArray = np.ndarray[tuple[Any, ...], np.dtype[Any]]

BYTE = np.dtype(np.uint8)
HALF = np.dtype(np.float16)
FLOAT = np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class TextureFormat:
    """The texels of a texture."""

    name: str
    """The name in WebGPU, which users write."""
    slangpy_name: str
    channel_count: int
    dtype: np.dtype[Any]
    """The dtype of a stored channel."""
    is_srgb: bool = False
    """True if the first three channels are in sRGB, and become linear light when they are read."""

    @property
    def texel_bytes(self) -> int:
        return self.channel_count * self.dtype.itemsize

    @property
    def is_normalised(self) -> bool:
        """True if channels are bytes."""
        return self.dtype == BYTE


TEXTURE_FORMATS = {
    row.name: row
    for row in (
        TextureFormat("r8unorm", "r8_unorm", 1, BYTE),
        TextureFormat("rg8unorm", "rg8_unorm", 2, BYTE),
        TextureFormat("rgba8unorm", "rgba8_unorm", 4, BYTE),
        TextureFormat("rgba8unorm-srgb", "rgba8_unorm_srgb", 4, BYTE, is_srgb=True),
        TextureFormat("r16float", "r16_float", 1, HALF),
        TextureFormat("rg16float", "rg16_float", 2, HALF),
        TextureFormat("rgba16float", "rgba16_float", 4, HALF),
        TextureFormat("r32float", "r32_float", 1, FLOAT),
        TextureFormat("rg32float", "rg32_float", 2, FLOAT),
        TextureFormat("rgba32float", "rgba32_float", 4, FLOAT),
    )
}
"""The formats by their names."""


def format_of(dtype: np.dtype[Any], channel_count: int) -> TextureFormat:
    """The format for channels of `dtype`; float64 becomes float32, three channels become four."""
    dtype = FLOAT if dtype == np.float64 else dtype
    count = 4 if channel_count == 3 else channel_count
    return next(
        row
        for row in TEXTURE_FORMATS.values()
        if (row.dtype, row.channel_count, row.is_srgb) == (dtype, count, False)
    )


def stored(channels: AnyArray, texture_format: TextureFormat) -> AnyArray:
    """Values -> what a texture stores, in channels that the format has.

    Args:
        channels: Bytes, or floats as shaders read them: linear light, 0 to 1 in a format of bytes.
            The last axis holds the channels. A missing alpha is 1, other missing channels are 0.
        texture_format: The format.
    """
    if texture_format.is_normalised and channels.dtype != BYTE:
        light = np.clip(np.nan_to_num(channels.astype(np.float64)), 0.0, 1.0)
        if texture_format.is_srgb:
            light[..., :3] = srgb_of(light[..., :3])
        channels = np.rint(255.0 * light).astype(BYTE)
    elif not texture_format.is_normalised and channels.dtype == BYTE:
        channels = channels / FLOAT.type(255.0)
    *axes, count = channels.shape
    result = np.zeros((*axes, texture_format.channel_count), texture_format.dtype)
    result[..., 3:] = 255 if texture_format.is_normalised else 1.0
    with np.errstate(over="ignore", under="ignore"):
        result[..., :count] = channels
    return result


def read_by_shaders(content: AnyArray, texture_format: TextureFormat) -> AnyArray:
    """The stored content of a texture -> the values that shaders read, as float32 or float16."""
    if not texture_format.is_normalised:
        return content
    values = content / FLOAT.type(255.0)
    if texture_format.is_srgb:
        values[..., :3] = light_of(values[..., :3])
    return values


def light_of(srgb: AnyArray) -> AnyArray:
    """Values in sRGB as linear light."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def srgb_of(light: AnyArray) -> AnyArray:
    """Linear light in sRGB: the inverse of `light_of`."""
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
