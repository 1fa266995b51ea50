"""Texels and coordinates -> filtered values.

The texels of level 0 have the shape [depth, height, width]; those of a mip chain are in one
array, level after level, each row-major.

Coordinates run from 0 to 1 over a texture: the centre of texel k of n is at (k + 1/2) / n. Kernels
capture the settings of a texture, so that they have no branches on them.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cache
from typing import Any, NamedTuple

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3
from shaderad.textures.kernels.cubes import corner_weights, cube_texel, on_cube
from shaderad.textures.kernels.products import product

LEVEL_COUNT = 14
"""Levels of a mip chain; with 8,192 texels along an edge, the last has one. Smaller textures repeat
their last level."""
MOST_TEXELS = 1 << 21
"""Maximum texels along an edge, where float32 coordinates still resolve eighths of a texel."""
COUNTED = 2.0**23 + 2.0
"""Floats from 2**23 on are whole numbers, and consecutive ones have consecutive words."""
COUNTED_WORD = 0x4B000002
"""The word of `COUNTED`."""


class Filter(IntEnum):
    NEAREST = 0
    LINEAR = 1
    TRILINEAR = 2


class Wrap(IntEnum):
    REPEAT = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


class Coding(Enum):
    """The coding of texels: floats, or four bytes in a ``uint`` with linear or sRGB colours."""

    FLOAT = "float"
    UNORM8 = "unorm8"
    SRGB8 = "srgb8"


@sad.struct
class Taps:
    """The two texels around a coordinate on one axis, and their weights; nearest uses the first."""

    texels: int2
    weights: float2


@sad.function
def position_of(at: float) -> int:
    """Converts a whole number from -2 to 3 * `MOST_TEXELS`; other floats give an arbitrary integer.

    A conversion by ``int`` saturates, which takes as long as the read of a texel on devices whose
    threads run in turn.
    """
    return sad.bitcast(int, at + COUNTED) - COUNTED_WORD


@cache
def taps_along(choice: Filter, wrap: Wrap) -> Any:
    """The function from a coordinate and a number of texels to the `Taps`."""
    ends = wrap in (Wrap.CLAMP, Wrap.BORDER)
    has_border, repeats, mirrors = wrap == Wrap.BORDER, wrap == Wrap.REPEAT, wrap == Wrap.MIRROR
    is_nearest = choice == Filter.NEAREST

    @sad.function
    def wrapped(position: int, n: int) -> int:
        """The texel at a position from -1 to n, or to 2 n for ``mirror``."""
        k = position
        if repeats:
            k = n - 1 if k < 0 else (0 if k >= n else k)
        if mirrors:
            k = 2 * n - 1 - k if k >= n else k
        return k

    @sad.function
    def taps(u: float, n: int) -> Taps:
        at = u * float(n)
        if repeats:
            at = sad.frac(u) * float(n)
        if mirrors:
            at = 2.0 * sad.frac(0.5 * u) * float(n)
        if ends:
            at = sad.clamp(at, -1.0, float(n) + 1.0)
        if is_nearest:
            k = position_of(sad.floor(at))
            is_there = not has_border or (k >= 0 and k < n)
            return Taps(int2(wrapped(k, n), 0), float2(1.0 if is_there else 0.0, 0.0))
        at -= 0.5
        low = sad.floor(at)
        share, k = at - low, position_of(low)
        low_weight, high_weight = 1.0 - share, share
        if has_border:
            low_weight = low_weight if k >= 0 and k < n else 0.0
            high_weight = high_weight if k + 1 >= 0 and k + 1 < n else 0.0
        return Taps(int2(wrapped(k, n), wrapped(k + 1, n)), float2(low_weight, high_weight))

    return taps


@sad.function
def whole() -> Taps:
    """The only texel of an axis for which there is no coordinate."""
    return Taps(int2(0), float2(1.0, 0.0))


@sad.function
def linear_light(c: float) -> float:
    """A channel of sRGB as linear light."""
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


@cache
def unpacking(coding: Coding) -> Any:
    """The function from a word to the four channels in its bytes."""
    is_srgb = coding is Coding.SRGB8

    @sad.function
    def unpacked(bits: sad.uint) -> float4:
        c = float4(bits & 255, (bits >> 8) & 255, (bits >> 16) & 255, bits >> 24) / 255.0
        if is_srgb:
            c.x, c.y, c.z = linear_light(c.x), linear_light(c.y), linear_light(c.z)
        return c

    return unpacked


class Reader(NamedTuple):
    """The types and the function with which kernels read texels."""

    texels: Any
    """The type of the array."""
    value: Any
    """The type of a texel as floats."""
    read: Any
    """The function that reads the texel nearest to a position (x, y, z) from a level of `n` texels
    that starts at texel `start`. It clamps, because NaN coordinates give arbitrary positions."""


@cache
def level_0_reader(texel: Any, value: Any, coding: Coding) -> Reader:
    """Reads texels of shape [depth, height, width]."""
    convert = value if coding is Coding.FLOAT else unpacking(coding)

    @sad.function
    def read(texels: sad.In[texel, 3], start: int, n: int3, at: int3) -> value:
        # Clamped by extents, so that no index needs a check.
        x = sad.clamp(at.x, 0, texels.shape[2] - 1)
        y = sad.clamp(at.y, 0, texels.shape[1] - 1)
        return convert(texels[sad.clamp(at.z, 0, texels.shape[0] - 1), y, x])

    return Reader(sad.In[texel, 3], value, read)


@cache
def chain_reader(texel: Any, value: Any) -> Reader:
    """Reads a mip chain."""

    @sad.function
    def read(texels: sad.In[texel], start: int, n: int3, at: int3) -> value:
        k = sad.clamp(at, int3(0), n - 1)
        return value(texels[start + (k.z * n.y + k.y) * n.x + k.x])

    return Reader(sad.In[texel], value, read)


@cache
def filter_of(axes: int, reader: Reader, choice: Filter, wrap: Wrap) -> Any:
    """The function from texels and a coordinate to a value, on one level."""
    texels_type, value, read = reader
    taps, count = taps_along(choice, wrap), 1 if choice == Filter.NEAREST else 2
    has_rows, has_planes = axes > 1, axes > 2
    rows, planes = count if has_rows else 1, count if has_planes else 1

    @sad.function
    def blended(texels: texels_type, start: int, n: int3, x: Taps, y: Taps, z: Taps) -> value:
        result = value(0.0)
        for c in sad.static_range(planes):
            for b in sad.static_range(rows):
                for a in sad.static_range(count):
                    texel = read(texels, start, n, int3(x.texels[a], y.texels[b], z.texels[c]))
                    weight = x.weights[a]
                    if has_rows:
                        weight = product(weight, y.weights[b])
                    if has_planes:
                        weight = product(weight, z.weights[c])
                    result = sad.mad(texel, value(weight), result)
        return result

    @sad.function
    def in_line(texels: texels_type, start: int, n: int3, at: float) -> value:
        return blended(texels, start, n, taps(at, n.x), whole(), whole())

    @sad.function
    def in_plane(texels: texels_type, start: int, n: int3, at: float2) -> value:
        return blended(texels, start, n, taps(at.x, n.x), taps(at.y, n.y), whole())

    @sad.function
    def in_space(texels: texels_type, start: int, n: int3, at: float3) -> value:
        x, y, z = taps(at.x, n.x), taps(at.y, n.y), taps(at.z, n.z)
        return blended(texels, start, n, x, y, z)

    return (in_line, in_plane, in_space)[axes - 1]


@cache
def cube_filter(reader: Reader, choice: Filter) -> Any:
    """Like `filter_of`, for the six faces of a cube and directions."""
    texels_type, value, read = reader
    is_nearest = choice == Filter.NEAREST

    @sad.function
    def filtered(texels: texels_type, start: int, n: int3, d: float3) -> value:
        face, point = on_cube(d)
        at = point * float(n.x)
        if is_nearest:
            x, y = position_of(sad.floor(at.x)), position_of(sad.floor(at.y))
            return read(texels, start, n, cube_texel(face, x, y, n.x))
        at -= 0.5
        start_of = sad.floor(at)
        low, t = int2(position_of(start_of.x), position_of(start_of.y)), at - start_of
        # At a corner of the cube, only three texels meet; they share the weight of the fourth.
        weights = corner_weights(t)
        is_left, is_above, end = low.x < 0, low.y < 0, n.x - 1
        if (is_left or low.x >= end) and (is_above or low.y >= end):
            missing = int(not is_left) + 2 * int(not is_above)
            share = weights[missing] / 3.0
            weights += share
            weights[missing] = 0.0
        x, y = low.x, low.y
        first = read(texels, start, n, cube_texel(face, x, y, n.x))
        right = read(texels, start, n, cube_texel(face, x + 1, y, n.x))
        below = read(texels, start, n, cube_texel(face, x, y + 1, n.x))
        last = read(texels, start, n, cube_texel(face, x + 1, y + 1, n.x))
        result = sad.mad(first, value(weights.x), value(0.0))
        result = sad.mad(right, value(weights.y), result)
        result = sad.mad(below, value(weights.z), result)
        return sad.mad(last, value(weights.w), result)

    return filtered


@cache
def lookup(filtered: Any, place: Any, reader: Reader) -> Any:
    """The kernel for lookups on level 0, by coordinates of type `place`."""

    @sad.kernel
    def look_up(
        i: sad.Index, texels: reader.texels, at: sad.In[place], values: sad.Out[reader.value]
    ):
        size = int3(texels.shape[2], texels.shape[1], texels.shape[0])
        values[i] = filtered(texels, 0, size, at[i])

    return look_up


@cache
def level_lookup(filtered: Any, place: Any, reader: Reader, *, mixes: bool, is_cube: bool) -> Any:
    """The kernel for lookups on the nearest level, or between two levels if it mixes them."""
    texels_type, value, _ = reader

    @sad.function
    def at_level(texels: texels_type, level: int, size: int3, at: place) -> value:
        start, n = 0, size
        for _ in range(level):
            start += n.x * n.y * n.z
            n = sad.max(n >> 1, int3(1, 1, 6 if is_cube else 1))
        return filtered(texels, start, n, at)

    @sad.kernel
    def look_up_level(
        i: sad.Index,
        texels: texels_type,
        size: int3,
        at: sad.In[place],
        level: sad.In[float],
        values: sad.Out[value],
    ):
        at_most = sad.clamp(level[i], 0.0, float(LEVEL_COUNT - 1))
        if mixes:
            finer = int(sad.clamp(sad.floor(at_most), 0.0, float(LEVEL_COUNT - 2)))
            fine = at_level(texels, finer, size, at[i])
            coarse = at_level(texels, finer + 1, size, at[i])
            values[i] = sad.mad(coarse - fine, value(at_most - float(finer)), fine)
        else:
            nearest = int(sad.clamp(sad.round(at_most), 0.0, float(LEVEL_COUNT - 1)))
            values[i] = at_level(texels, nearest, size, at[i])

    return look_up_level
