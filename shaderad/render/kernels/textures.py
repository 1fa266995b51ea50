"""Texels and coordinates -> filtered values; texels -> the next level of a mip chain.

Texels stand in one array, level after level, each row-major over (depth, rows, columns).
Coordinates run from 0 to 1 over a texture: the centre of texel k of n is at (k + 1/2) / n. What is
known of a texture before its lookups is captured, so that kernels have no branches for it.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cache
from typing import Any

import shaderad as sad
from shaderad import float2, float3, float4, int2, int3

LEVEL_COUNT = 14
"""Levels of a mip chain: of 8,192 texels along an edge the last is one. Smaller ones repeat it."""


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
    """Texels are floats, or four bytes in a ``uint``, with colours linear or in sRGB."""

    FLOAT = "float"
    UNORM8 = "unorm8"
    SRGB8 = "srgb8"


@sad.struct
class Taps:
    """The two texels around a coordinate on one axis, and their weights."""

    low: int
    high: int
    low_weight: float
    high_weight: float


@cache
def taps_along(choice: Filter, wrap: Wrap) -> Any:
    """The function from a coordinate and a number of texels to the `Taps`."""
    ends = wrap in (Wrap.CLAMP, Wrap.BORDER)
    has_border, repeats, mirrors = wrap == Wrap.BORDER, wrap == Wrap.REPEAT, wrap == Wrap.MIRROR
    is_nearest = choice == Filter.NEAREST

    @sad.function
    def texel_at(position: int, n: int) -> int:
        """The texel at a position from -1 to n or, mirrored, to 2 n."""
        k = position
        if repeats:
            k = n - 1 if k < 0 else (0 if k >= n else k)
        if mirrors:
            k = 2 * n - 1 - k if k >= n else k
        # NaN becomes any int: no read is out of range.
        return sad.clamp(k, 0, n - 1)

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
            k = int(sad.floor(at))
            is_there = not has_border or (k >= 0 and k < n)
            return Taps(texel_at(k, n), 0, 1.0 if is_there else 0.0, 0.0)
        at -= 0.5
        share, k = sad.frac(at), int(sad.floor(at))
        low_weight, high_weight = 1.0 - share, share
        if has_border:
            low_weight = low_weight if k >= 0 and k < n else 0.0
            high_weight = high_weight if k + 1 >= 0 and k + 1 < n else 0.0
        return Taps(texel_at(k, n), texel_at(k + 1, n), low_weight, high_weight)

    return taps


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


@cache
def texel_reader(texel: Any, value: Any, coding: Coding) -> Any:
    """The function that reads a texel as floats."""
    convert = value if coding is Coding.FLOAT else unpacking(coding)

    @sad.function
    def read(texels: sad.In[texel], k: int) -> value:
        return convert(texels[k])

    return read


@cache
def filter_of(axes: int, texel: Any, value: Any, coding: Coding, choice: Filter, wrap: Wrap) -> Any:
    """The function from texels and a coordinate to a value, on the level at `start`."""
    taps, read = taps_along(choice, wrap), texel_reader(texel, value, coding)
    is_nearest = choice == Filter.NEAREST

    @sad.function
    def along_x(texels: sad.In[texel], row: int, x: Taps) -> value:
        result = read(texels, row + x.low) * x.low_weight
        if not is_nearest:
            result += read(texels, row + x.high) * x.high_weight
        return result

    @sad.function
    def along_y(texels: sad.In[texel], plane: int, n: int3, x: Taps, y: Taps) -> value:
        result = along_x(texels, plane + y.low * n.x, x) * y.low_weight
        if not is_nearest:
            result += along_x(texels, plane + y.high * n.x, x) * y.high_weight
        return result

    @sad.function
    def in_line(texels: sad.In[texel], start: int, n: int3, at: float) -> value:
        return along_x(texels, start, taps(at, n.x))

    @sad.function
    def in_plane(texels: sad.In[texel], start: int, n: int3, at: float2) -> value:
        return along_y(texels, start, n, taps(at.x, n.x), taps(at.y, n.y))

    @sad.function
    def in_space(texels: sad.In[texel], start: int, n: int3, at: float3) -> value:
        x, y, z = taps(at.x, n.x), taps(at.y, n.y), taps(at.z, n.z)
        plane = n.x * n.y
        result = along_y(texels, start + z.low * plane, n, x, y) * z.low_weight
        if not is_nearest:
            result += along_y(texels, start + z.high * plane, n, x, y) * z.high_weight
        return result

    return (in_line, in_plane, in_space)[axes - 1]


@sad.struct
class FacePoint:
    """A point on a face of a cube, from (0, 0) to (1, 1)."""

    face: int
    at: float2


@sad.function
def on_cube(d: float3) -> FacePoint:
    """Where a direction leaves the cube: faces +x, -x, +y, -y, +z, -z, as in Vulkan and D3D."""
    size = sad.abs(d)
    face, side, down, major = 4 if d.z >= 0.0 else 5, d.x, -d.y, size.z
    if d.z < 0.0:
        side = -d.x
    if size.x >= size.y and size.x >= size.z:
        face, side, down, major = 0 if d.x >= 0.0 else 1, -d.z, -d.y, size.x
        if d.x < 0.0:
            side = d.z
    elif size.y >= size.z:
        face, side, down, major = 2 if d.y >= 0.0 else 3, d.x, d.z, size.y
        if d.y < 0.0:
            down = -d.z
    # No direction, as where no triangle shows, is the middle of a face: NaN would reach its texels.
    return FacePoint(face, 0.5 * float2(side, down) / (major if major > 0.0 else 1.0) + 0.5)


@sad.function
def direction_of(face: int, at: float2) -> float3:
    """The direction that `on_cube` takes to a point, or beyond the edge of a face."""
    a, b = 2.0 * at.x - 1.0, 2.0 * at.y - 1.0
    d = float3(1.0, -b, -a)
    if face == 1:
        d = float3(-1.0, -b, a)
    elif face == 2:
        d = float3(a, 1.0, b)
    elif face == 3:
        d = float3(a, -1.0, -b)
    elif face == 4:
        d = float3(a, -b, 1.0)
    elif face == 5:
        d = float3(-a, -b, -1.0)
    return d


@sad.function
def cube_texel(face: int, x: int, y: int, n: int) -> int:
    """The texel at a position, from -1 to n, on the next face where it is beyond an edge."""
    f, at = face, int2(x, y)
    if sad.min(x, y) < 0 or sad.max(x, y) >= n:
        center = float2(float(x) + 0.5, float(y) + 0.5) / float(n)
        point = on_cube(direction_of(face, center))
        f, at = point.face, int2(point.at * float(n))
    at = sad.clamp(at, int2(0), int2(n - 1))
    return (f * n + at.y) * n + at.x


@cache
def cube_filter(texel: Any, value: Any, coding: Coding, choice: Filter) -> Any:
    """Like `filter_of`, for the six faces of a cube and directions."""
    read, is_nearest = texel_reader(texel, value, coding), choice == Filter.NEAREST

    @sad.function
    def filtered(texels: sad.In[texel], start: int, n: int3, d: float3) -> value:
        point = on_cube(d)
        face, at = point.face, point.at * float(n.x)
        if is_nearest:
            return read(texels, start + cube_texel(face, int(at.x), int(at.y), n.x))
        at -= 0.5
        low, t = int2(sad.floor(at)), sad.frac(at)
        # At a corner of the cube three texels meet, and share the weight of the fourth.
        weights = float4((1.0 - t.x) * (1.0 - t.y), t.x * (1.0 - t.y), (1.0 - t.x) * t.y, t.x * t.y)
        is_left, is_above, last = low.x < 0, low.y < 0, n.x - 1
        if (is_left or low.x >= last) and (is_above or low.y >= last):
            missing = int(not is_left) + 2 * int(not is_above)
            share = weights[missing] / 3.0
            weights += share
            weights[missing] = 0.0
        result = read(texels, start + cube_texel(face, low.x, low.y, n.x)) * weights.x
        result += read(texels, start + cube_texel(face, low.x + 1, low.y, n.x)) * weights.y
        result += read(texels, start + cube_texel(face, low.x, low.y + 1, n.x)) * weights.z
        result += read(texels, start + cube_texel(face, low.x + 1, low.y + 1, n.x)) * weights.w
        return result

    return filtered


@cache
def lookup(filtered: Any, place: Any, texel: Any, value: Any) -> Any:
    """The kernel of lookups on level 0, by coordinates of type `place`."""

    @sad.kernel
    def look_up(
        i: sad.Index, texels: sad.In[texel], size: int3, at: sad.In[place], values: sad.Out[value]
    ):
        values[i] = filtered(texels, 0, size, at[i])

    return look_up


@cache
def level_lookup(
    filtered: Any, place: Any, texel: Any, value: Any, *, mixes: bool, is_cube: bool
) -> Any:
    """The kernel of lookups on the nearest level, or between two where it mixes them."""

    @sad.function
    def at_level(texels: sad.In[texel], level: int, size: int3, at: place) -> value:
        start, n = 0, size
        for _ in range(level):
            start += n.x * n.y * n.z
            n = sad.max(n >> 1, int3(1, 1, 6 if is_cube else 1))
        return filtered(texels, start, n, at)

    @sad.kernel
    def look_up_level(
        i: sad.Index,
        texels: sad.In[texel],
        size: int3,
        at: sad.In[place],
        level: sad.In[float],
        values: sad.Out[value],
    ):
        at_most = sad.clamp(level[i], 0.0, float(LEVEL_COUNT - 1))
        if mixes:
            finer = int(sad.min(sad.floor(at_most), float(LEVEL_COUNT - 2)))
            fine = at_level(texels, finer, size, at[i])
            coarse = at_level(texels, finer + 1, size, at[i])
            values[i] = fine + (coarse - fine) * (at_most - float(finer))
        else:
            values[i] = at_level(texels, int(sad.round(at_most)), size, at[i])

    return look_up_level


@cache
def shrinking(texel: Any, value: Any, *, is_cube: bool) -> Any:
    """The kernel from a level to the next: means over boxes, in floats.

    Of an odd number of texels each of the next level covers two and a part of a third.
    """

    @sad.function
    def weight(k: int, j: int, n: int) -> float:
        """How much of texel k of the next level texel 2 k + j of n makes up."""
        half = n // 2
        if n == 1:
            return 1.0 if j == 0 else 0.0
        if 2 * half == n:
            return 0.5 if j < 2 else 0.0
        part = half - k if j == 0 else (half if j == 1 else k + 1)
        return float(part) / float(n)

    @sad.kernel
    def shrink(
        z: sad.Index, y: sad.Index, x: sad.Index, texels: sad.In[texel, 3], level: sad.Out[texel, 3]
    ):
        n = int3(texels.shape[2], texels.shape[1], texels.shape[0])
        total = value(0.0)
        for c in range(1 if is_cube or n.z == 1 else 3):
            for b in range(3 if n.y > 1 else 1):
                for a in range(3 if n.x > 1 else 1):
                    w = weight(x, a, n.x) * weight(y, b, n.y)
                    k = z
                    if not is_cube:
                        w *= weight(z, c, n.z)
                        k = 2 * z + c
                    if w > 0.0:
                        total += w * value(texels[k, 2 * y + b, 2 * x + a])
        level[z, y, x] = texel(total)

    return shrink
