"""Pictures and coordinates -> texture lookups, with exact filters and derivatives.

Filters are computed in float32 from the texels, equally on every device.

Source: Williams, *Pyramidal parametrics*, SIGGRAPH 1983.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

import shaderad as sad
from shaderad import float2, float3, float4, int3
from shaderad.arrays.dtypes import shown_dtype
from shaderad.arrays.traced_sizes import shown
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import sizes
from shaderad.ir.types import FLOAT, UINT, Matrix, Struct, is_differentiable, with_scalar
from shaderad.render.kernels.textures import (
    LEVEL_COUNT,
    MOST_TEXELS,
    Coding,
    Filter,
    Reader,
    Wrap,
    chain_reader,
    cube_filter,
    filter_of,
    level_0_reader,
    level_lookup,
    lookup,
    unpacking,
)
from shaderad.textures.mips import levels_of
from shaderad.trace.elements import as_array, as_floats, conform
from shaderad.trace.primitives import known_shape, size_array
from shaderad.trace.traced import tracing

__all__ = ["Texture", "texture"]


class _Texels(NamedTuple):
    texels: sad.Array


class Texture(_Texels):
    """Texels with the settings of their lookups; in arguments and results a tree of one array.

    ``Texture(texels, mips=True, srgb=False, cube=False)``. The gradient by a texture is a texture
    whose `texels` are the gradient. Bytes have no gradient.

    Attributes:
        texels: Floats or float vectors of shape [width], [height, width] or
            [depth, height, width], or [6, n, n] for the faces +x, -x, +y, -y, +z, -z of a cube.
            Pictures of bytes, `numpy.uint8` of shape [..., channels], are kept as four bytes per
            texel and give ``float4`` from 0 to 1.
        mips: If true, lookups with a level or a footprint read means over boxes of texels;
            otherwise they read only `texels`.
        srgb: If true, the colours of bytes are in sRGB and become linear light; the fourth channel
            is linear.
        cube: If true, the texels are those of a cube, and coordinates are directions.

    Raises:
        ShapeError: SR0810 for bytes with more than four channels.
    """

    mips = True
    srgb = False
    cube = False

    @api_boundary
    def __new__(
        cls,
        texels: Any,
        mips: bool | None = None,
        srgb: bool | None = None,
        cube: bool | None = None,
    ) -> Texture:
        """Packs bytes into words."""
        flags = (mips, srgb, cube)
        defaults = (cls.mips, cls.srgb, cls.cube)
        kind = _kind(
            *(
                own if flag is None else bool(flag)
                for flag, own in zip(flags, defaults, strict=True)
            )
        )
        return _Texels.__new__(kind, _words_of(texels) if _is_bytes(texels) else texels)


@cache
def _kind(mips: bool, srgb: bool, cube: bool) -> type[Texture]:
    """The class of textures with these settings, because trees are rebuilt by their class."""
    if (mips, srgb, cube) == (Texture.mips, Texture.srgb, Texture.cube):
        return Texture
    return type("Texture", (Texture,), {"mips": mips, "srgb": srgb, "cube": cube})


def _is_bytes(texels: Any) -> bool:
    return getattr(texels, "dtype", None) == np.uint8


def _words_of(texels: Any) -> Any:
    """Packs one to four byte channels into one word per texel.

    Missing colours repeat the first one; a missing alpha is 1.
    """
    data = np.asarray(texels)
    channels = data.shape[-1] if data.ndim else 0
    if channels not in (1, 2, 3, 4):
        raise error("SR0810", user_span(), shape=data.shape)
    colors = data[..., :3] if channels > 2 else data[..., :1].repeat(3, -1)
    alpha = data[..., channels - 1 :] if channels in (2, 4) else np.full_like(data[..., :1], 255)
    packed = np.concatenate([colors, alpha], -1).astype(np.uint32)
    return sad.array(packed @ _BYTES, dtype=sad.uint)


_BYTES = np.array([1 << 0, 1 << 8, 1 << 16, 1 << 24], np.uint32)
_PLACES = {"float": float, "float2": float2, "float3": float3}


@array_function
def texture(
    texture: Any,
    uv: Any,
    *,
    footprint: Any = None,
    level: Any = None,
    filter: str = "linear",  # noqa: A002 - the public name
    wrap: str = "repeat",
) -> sad.Array:
    """Looks up the values of a texture at coordinates.

    Coordinates run from 0 to 1 over a texture: (0, 0) is the outer corner of the top left texel,
    (1, 1) that of the bottom right texel, and the centre of texel k of n is at ``(k + 1/2) / n``.

    Args:
        texture: A `Texture`, or its texels.
        uv: Coordinates of any shape: floats for texels of shape [width], ``float2`` (x, y) for
            [height, width], ``float3`` (x, y, z) for [depth, height, width]; directions of any
            length for cubes.
        footprint: The derivatives of `uv` per pixel to the right and down, ``(d_dx, d_dy)``, as
            `interpolate` returns them. The level is ``log2`` of the longer one, in texels.
        level: The level, 0 for the texels themselves, 1 for half as many along each edge. A number,
            or floats that broadcast to the shape of `uv`.
        filter: ``"nearest"`` reads one texel and ``"linear"`` interpolates between texels, both on
            the nearest level; ``"trilinear"`` also interpolates between levels.
        wrap: The texels beyond the edge: ``"repeat"``, ``"clamp"`` to the edge, ``"mirror"``, or
            ``"border"`` for 0. Cubes have no edge.

    Returns:
        Floats or float vectors in the shape of `uv`.

    Raises:
        ShapeError: SR0809 for another filter or wrap, SR0811 for coordinates that do not fit the
            texels, SR0812 for both a footprint and a level, SR0821 for over 2,097,152 texels along
            an axis.
        BoundsError: SR0660 for a texture without texels.

    Differentiable in the texels, in `uv` (between the centres of texels), `footprint` and `level`.
    """
    texture = texture if isinstance(texture, Texture) else Texture(texture)
    looked_up = _LookUp(texture, uv, _member(Filter, filter), _member(Wrap, wrap))
    if level is not None and footprint is not None:
        raise error("SR0812", user_span())
    if footprint is not None:
        level = looked_up.level_of(*footprint)
    if level is None or not texture.mips:
        return looked_up.on_level_0()
    return looked_up.on_levels(conform(level, FLOAT, "level"))


def _member(choices: Any, word: Any) -> Any:
    """The member of an enum with the name `word`."""
    words = {choice.name.lower(): choice for choice in choices}
    if word not in words:
        shown_words = " or ".join(f'`"{choice}"`' for choice in words)
        name = choices.__name__.lower()
        raise error("SR0809", user_span(), name=name, known=shown_words, found=text_of(word))
    return words[word]


class _LookUp:
    """The kernels for one texture and one array of coordinates, and their arguments."""

    def __init__(self, texture: Texture, uv: Any, choice: Filter, wrap: Wrap) -> None:
        self.texels = as_array(texture.texels)
        self.uv = as_floats(as_array(uv))
        self._texture, self._filter, self._wrap = texture, choice, wrap
        place, element = str(self.uv.element), self.texels.element
        axes = len(self.texels.shape)
        wanted = {"float": 1, "float2": 2, "float3": 3}.get(place)
        is_texel = is_differentiable(element) and not isinstance(element, Struct | Matrix)
        if axes != wanted or not (is_texel or element == UINT) or (texture.cube and axes != 3):
            shape = known_shape(self.texels.extents)
            raise error("SR0811", user_span(), shape=shape, element=element, place=place)
        if not all(tracing().is_less(n, MOST_TEXELS + 1) for n in self.texels.extents):
            shape = known_shape(self.texels.extents)
            raise error("SR0821", user_span(), shape=shape, limit=f"{MOST_TEXELS:,}")
        self._place, self._axes = _PLACES[place], axes
        self._coding = Coding.FLOAT
        if element == UINT:
            self._coding = Coding.SRGB8 if texture.srgb else Coding.UNORM8
        self._at = sad.reshape(self.uv, (self._count,))

    @property
    def _count(self) -> Any:
        return shown(sizes.product(self.uv.extents))

    def level_of(self, by_x: Any, by_y: Any) -> Any:
        """The level on which a footprint is one texel wide."""
        by_x, by_y = (as_floats(as_array(d)) for d in (by_x, by_y))
        size = [sad.cast(size_array(n), float) for n in reversed(self.texels.extents)]
        if self._texture.cube:
            major = sad.max(sad.max(sad.abs(self.uv.x), sad.abs(self.uv.y)), sad.abs(self.uv.z))
            scale: Any = 0.5 * size[0] / sad.where(major > 0.0, major, 1.0)
        else:
            scale = size[0] if self._axes == 1 else self._place(*size)
        longer = sad.max(_squared(by_x * scale), _squared(by_y * scale))
        return 0.5 * sad.log2(sad.max(longer, 1e-20))

    def on_level_0(self) -> Any:
        reader = level_0_reader(*_types_of(self.texels), self._coding)
        kernel = lookup(self._filtered(reader), self._place, reader)
        return self._called(kernel, _in_space(self.texels), self._at)

    def on_levels(self, level: Any) -> Any:
        texels = self.texels
        if self._coding is not Coding.FLOAT:
            texels = sad.map(unpacking(self._coding), texels)
        reader = chain_reader(*_types_of(texels))
        is_cube, mixes = self._texture.cube, self._filter == Filter.TRILINEAR
        filtered = self._filtered(reader)
        kernel = level_lookup(filtered, self._place, reader, mixes=mixes, is_cube=is_cube)
        levels = levels_of(texels, LEVEL_COUNT, has_layers=is_cube)
        chain = sad.concatenate([sad.reshape(x, -1) for x in levels])
        level = sad.reshape(sad.broadcast_to(level, self.uv.shape), (self._count,))
        extents = [size_array(n) for n in reversed(texels.extents)]
        size = int3(*extents, *[1] * (3 - self._axes))
        return self._called(kernel, chain, size, self._at, level)

    def _filtered(self, reader: Reader) -> Any:
        if self._texture.cube:
            return cube_filter(reader, self._filter)
        return filter_of(self._axes, reader, self._filter, self._wrap)

    def _called(self, kernel: Any, *arguments: Any) -> Any:
        values = kernel(*arguments, dim=self._count)
        return sad.reshape(values, self.uv.shape)


def _types_of(texels: Any) -> tuple[Any, Any]:
    """The types of a texel and of its value in floats."""
    if texels.element == UINT:
        return sad.uint, float4
    return shown_dtype(texels.element), shown_dtype(with_scalar(texels.element, FLOAT))


def _squared(v: Any) -> Any:
    """The square of a length, by `mad` (see `shaderad/textures/kernels/products.py`)."""
    parts = [v] if v.element == FLOAT else [getattr(v, k) for k in "xyz"[: v.element.count]]
    total: Any = 0.0
    for part in parts:
        total = sad.mad(part, part, total)
    return total


def _in_space(texels: Any) -> Any:
    """Texels in the shape [depth, height, width]."""
    return sad.reshape(texels, (1,) * (3 - len(texels.shape)) + tuple(texels.shape))
