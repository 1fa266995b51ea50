"""Reads of textures in kernels -> values computed from texels, and so their derivatives.

A texture is an array of texels and a size, in the encoding of `ir.types.TextureType`. The settings
of a sampler are encoded as in `ir.types.SamplerType`. No struct is declared here, because a kernel
that uses these functions may have one with the same name.

Source: Vulkan 1.3, section 16, *Image Operations*.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from shaderad.decorators import function
from shaderad.ir.dimensions import Dimension
from shaderad.ir.nodes import TextureRead
from shaderad.ir.types import FLOAT, LINEAR, MIXES_LEVELS, WRAPS, Type
from shaderad.language.annotations import TYPES, Const, In
from shaderad.names import FORMS, INTRINSICS
from shaderad.textures.kernels.cubes import corner_weights, cube_texel, on_cube
from shaderad.textures.kernels.products import product

float2, float3, float4 = (TYPES[f"float{n}"] for n in (2, 3, 4))
int2, int3, int4, uint = (TYPES[name] for name in ("int2", "int3", "int4", "uint"))
clamp, floor, frac, log2, mad, nearest, all_true = (
    INTRINSICS[name] for name in ("clamp", "floor", "frac", "log2", "mad", "round", "all")
)
diff_pair, fwd_diff = FORMS["diff_pair"], FORMS["fwd_diff"]


REPEAT, MIRROR = WRAPS.index("repeat"), WRAPS.index("mirror")


@function
def extent(n: int, level: int) -> int:
    """The extent of an axis on a level."""
    return max(n >> level, 1) if level >= 0 and level < 31 else 0


@function
def level_size(size: int4, level: int, has_layers: Const[bool]) -> int3:
    halved = max(size.xyz >> level, 1)
    return int3(halved.xy, size.z if has_layers else halved.z)


@function
def level_start(size: int4, level: int, has_layers: Const[bool]) -> int:
    """The index of a level's first texel."""
    start = 0
    for k in range(level):
        n = level_size(size, k, has_layers)
        start += n.x * n.y * n.z
    return start


@function
def wrap_along(settings: uint, axis: Const[int]) -> uint:
    return (settings >> (2 * axis)) & 3


@function
def is_linear(settings: uint) -> bool:
    return (settings & LINEAR) != 0


@function
def mixes_levels(settings: uint) -> bool:
    return (settings & MIXES_LEVELS) != 0


@function
def wrapped(position: int, n: int, wrap: uint) -> int:
    """The texel at a position inside n texels or beyond their edges."""
    k = position
    if wrap == REPEAT:
        k = k % n
    elif wrap == MIRROR:
        k = k % (2 * n)
        k = 2 * n - 1 - k if k >= n else k
    # NaN becomes an arbitrary int, so the clamp keeps reads in range.
    return clamp(k, 0, n - 1)


@function
def taps(u: float, n: int, settings: uint, axis: Const[int]) -> tuple[int, int, float]:
    """The two texels around a coordinate on one axis, and the weight of the second."""
    at, wrap = u, wrap_along(settings, axis)
    if wrap == REPEAT:
        at = frac(u)
    elif wrap == MIRROR:
        at = 2.0 * frac(0.5 * u)
    at = clamp(at * float(n), -1.0, 2.0 * float(n) + 1.0) - 0.5
    low, share = int(floor(at)), frac(at)
    if not is_linear(settings):
        share = 1.0 if share >= 0.5 else 0.0
    return wrapped(low, n, wrap), wrapped(low + 1, n, wrap), share


@function
def layer_of(at: float, n: int) -> int:
    """The layer at a coordinate: the nearest, of two the even one, as in HLSL."""
    # NaN becomes an arbitrary int, so the clamp keeps reads in range.
    return clamp(int(nearest(clamp(at, 0.0, float(n - 1)))), 0, n - 1)


@function
def on_layer(size: int4, at: float3) -> float3:
    """A place on the layer that it selects, because texture units round in different ways."""
    return float3(at.xy, float(layer_of(at.z, size.z)))


@function
def cube_number(face: int, x: int, y: int, n: int) -> int:
    """The index of the texel at x and y from -1 to n among those of all faces."""
    # NaN becomes an arbitrary int, so the clamp keeps reads in range.
    p = clamp(cube_texel(face, x, y, n), int3(0), int3(n - 1, n - 1, 5))
    return (p.z * n + p.y) * n + p.x


def texel_type(texel: Type) -> Any:
    """The annotation for a type of texels."""
    return float if texel == FLOAT else TYPES[str(texel)]


def place_type(scalar: type, axes: int) -> Any:
    """The annotation for coordinates, steps, or positions of texels."""
    return scalar if axes == 1 else TYPES[f"{scalar.__name__}{axes}"]


@cache
def filters(texel: Type) -> Any:
    """The functions from texels to a value between two columns, and between four texels."""
    value = texel_type(texel)

    @function
    def along_x(texels: In[value], row: int, low: int, high: int, share: float) -> value:
        first = texels[row + low]
        return mad(texels[row + high] - first, value(share), first)

    @function
    def along_xy(texels: In[value], plane: int, n: int3, settings: uint, at: float2) -> value:
        left, right, x = taps(at.x, n.x, settings, 0)
        above, below, y = taps(at.y, n.y, settings, 1)
        first = along_x(texels, plane + above * n.x, left, right, x)
        return mad(along_x(texels, plane + below * n.x, left, right, x) - first, value(y), first)

    return along_x, along_xy


@cache
def on_level(dimension: Dimension, texel: Type) -> Any:
    """The function from texels and a place to a value on one level."""
    value = texel_type(texel)
    along_x, along_xy = filters(texel)

    @function
    def in_line(texels: In[value], size: int4, settings: uint, at: float, level: int) -> value:
        n = level_size(size, level, False)
        low, high, share = taps(at, n.x, settings, 0)
        return along_x(texels, level_start(size, level, False), low, high, share)

    @function
    def in_plane(texels: In[value], size: int4, settings: uint, at: float2, level: int) -> value:
        n = level_size(size, level, False)
        return along_xy(texels, level_start(size, level, False), n, settings, at)

    @function
    def in_layers(texels: In[value], size: int4, settings: uint, at: float3, level: int) -> value:
        n, start = level_size(size, level, True), level_start(size, level, True)
        plane = start + layer_of(at.z, n.z) * n.x * n.y
        return along_xy(texels, plane, n, settings, at.xy)

    @function
    def in_space(texels: In[value], size: int4, settings: uint, at: float3, level: int) -> value:
        n, start = level_size(size, level, False), level_start(size, level, False)
        near, far, z = taps(at.z, n.z, settings, 2)
        first = along_xy(texels, start + near * n.x * n.y, n, settings, at.xy)
        second = along_xy(texels, start + far * n.x * n.y, n, settings, at.xy)
        return mad(second - first, value(z), first)

    @function
    def on_faces(texels: In[value], size: int4, settings: uint, d: float3, level: int) -> value:
        n, start = level_size(size, level, True).x, level_start(size, level, True)
        face, point = on_cube(d)
        at = point * float(n) - 0.5
        low, t = int2(floor(at)), frac(at)
        if not is_linear(settings):
            t = float2(1.0 if t.x >= 0.5 else 0.0, 1.0 if t.y >= 0.5 else 0.0)
        w = corner_weights(t)
        # At a corner of the cube, only three texels meet; they share the weight of the fourth.
        is_left, is_above = low.x < 0, low.y < 0
        if (is_left or low.x >= n - 1) and (is_above or low.y >= n - 1) and is_linear(settings):
            missing = int(not is_left) + 2 * int(not is_above)
            w += w[missing] / 3.0
            w[missing] = 0.0
        first = texels[start + cube_number(face, low.x, low.y, n)]
        right = texels[start + cube_number(face, low.x + 1, low.y, n)]
        below = texels[start + cube_number(face, low.x, low.y + 1, n)]
        last = texels[start + cube_number(face, low.x + 1, low.y + 1, n)]
        result = mad(first, value(w.x), value(0.0))
        result = mad(right, value(w.y), result)
        result = mad(below, value(w.z), result)
        return mad(last, value(w.w), result)

    return {
        Dimension.LINE: in_line,
        Dimension.PLANE: in_plane,
        Dimension.LAYERS: in_layers,
        Dimension.VOLUME: in_space,
        Dimension.CUBE: on_faces,
    }[dimension]


@cache
def base_sampling(dimension: Dimension, texel: Type) -> Any:
    value, place = texel_type(texel), place_type(float, dimension.row.axes)
    filtered = on_level(dimension, texel)

    @function
    def sample(texels: In[value], size: int4, settings: uint, at: place) -> value:
        return filtered(texels, size, settings, at, 0)

    return sample


@cache
def level_sampling(dimension: Dimension, texel: Type) -> Any:
    value, place = texel_type(texel), place_type(float, dimension.row.axes)
    filtered = on_level(dimension, texel)

    @function
    def sample_level(
        texels: In[value], size: int4, settings: uint, at: place, level: float
    ) -> value:
        last = size.w - 1
        on = clamp(level, 0.0, float(last))
        finer = clamp(int(floor(on)), 0, max(last - 1, 0))
        share = on - float(finer)
        if not mixes_levels(settings):
            share = 1.0 if share >= 0.5 else 0.0
        fine = filtered(texels, size, settings, at, finer)
        coarse = filtered(texels, size, settings, at, min(finer + 1, last))
        return mad(coarse - fine, value(share), fine)

    return sample_level


@function
def point_on_cube(d: float3) -> float2:
    _, point = on_cube(d)
    return point


@function
def squared(x: float) -> float:
    return product(x, x)


@function
def line_step(size: int4, at: float, step: float) -> float:
    """The square of the length of a step, in texels of level 0."""
    return squared(step * float(size.x))


@function
def plane_step(size: int4, at: float2, step: float2) -> float:
    return squared(step.x * float(size.x)) + squared(step.y * float(size.y))


@function
def layer_step(size: int4, at: float3, step: float2) -> float:
    return plane_step(size, at.xy, step)


@function
def volume_step(size: int4, at: float3, step: float3) -> float:
    along = step * float3(size.xyz)
    return squared(along.x) + squared(along.y) + squared(along.z)


@function
def cube_step(size: int4, at: float3, step: float3) -> float:
    along = fwd_diff(point_on_cube)(diff_pair(at, step)).d * float(size.x)
    return squared(along.x) + squared(along.y)


STEPS = {
    Dimension.LINE: line_step,
    Dimension.PLANE: plane_step,
    Dimension.LAYERS: layer_step,
    Dimension.VOLUME: volume_step,
    Dimension.CUBE: cube_step,
}


@cache
def step_sampling(dimension: Dimension, texel: Type) -> Any:
    value, place = texel_type(texel), place_type(float, dimension.row.axes)
    step = place_type(float, dimension.row.step_axes)
    on, squared_step = level_sampling(dimension, texel), STEPS[dimension]

    @function
    def sample_grad(
        texels: In[value], size: int4, settings: uint, at: place, by_x: step, by_y: step
    ) -> value:
        longer = max(squared_step(size, at, by_x), squared_step(size, at, by_y))
        return on(texels, size, settings, at, 0.5 * log2(max(longer, 1e-20)))

    return sample_grad


def sampling(read: TextureRead, dimension: Dimension, texel: Type) -> Any:
    """The function for a read through a sampler."""
    make = {
        TextureRead.BASE: base_sampling,
        TextureRead.LEVEL: level_sampling,
        TextureRead.STEPS: step_sampling,
    }[read]
    return make(dimension, texel)


@function
def line_place(at: int) -> int3:
    return int3(at, 0, 0)


@function
def plane_place(at: int2) -> int3:
    return int3(at, 0)


@function
def volume_place(at: int3) -> int3:
    return at


PLACES = {1: line_place, 2: plane_place, 3: volume_place}
"""The x, y and z of a texel, by axes."""


@cache
def loading(dimension: Dimension, texel: Type) -> Any:
    """The function for the read of one texel; returns 0 beyond the edges, which is reported."""
    axes, has_layers = dimension.row.axes, dimension.row.has_layers
    value, place, place_of = texel_type(texel), place_type(int, axes), PLACES[axes]

    @function
    def load(texels: In[value], size: int4, at: place, level: int) -> value:
        number = -1
        if level >= 0 and level < size.w:
            n, p = level_size(size, level, has_layers), place_of(at)
            if all_true(p >= int3(0)) and all_true(p < n):
                number = level_start(size, level, has_layers) + (p.z * n.y + p.y) * n.x + p.x
        return texels[number]

    return load
