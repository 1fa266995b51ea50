"""A texture for one debugged thread, whose methods compute lookups from texels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shaderad.frontend.textures import FILTERS
from shaderad.ir.nodes import TextureRead
from shaderad.ir.types import TextureType
from shaderad.language.host import UserFunction
from shaderad.runtime.texture_formats import TEXTURE_FORMATS, read_by_shaders

Body = Callable[[UserFunction], Callable[..., Any]]


def texels_of(texture: Any) -> np.ndarray[Any, Any]:
    """The texels of all levels of a `sad.Texture`, level after level, as floats."""
    row, count = TEXTURE_FORMATS[texture.format], texture.channel_count
    levels = (texture.numpy(level) for level in range(texture.level_count))
    floats = [
        np.float32(read_by_shaders(level.reshape(-1, count), row)).reshape(-1, count)
        for level in levels
    ]
    joined = np.concatenate(floats)
    return joined if count > 1 else joined[:, 0]


class TextureValue:
    """The value of a texture parameter."""

    def __init__(self, texels: Any, size: Any, t: TextureType, body: Body) -> None:
        # texels: an array of one axis; size: an int4; body: a kernel function -> its Python body.
        self._texels = texels
        self._size = size
        self._type = t
        self._body = body

    def sample(self, sampler: Any, uv: Any) -> Any:
        return self._filtered(TextureRead.BASE, sampler, uv)

    def sample_level(self, sampler: Any, uv: Any, level: Any) -> Any:
        return self._filtered(TextureRead.LEVEL, sampler, uv, np.float32(level))

    def sample_grad(self, sampler: Any, uv: Any, dx: Any, dy: Any) -> Any:
        return self._filtered(TextureRead.STEPS, sampler, uv, dx, dy)

    def load(self, position: Any, level: Any = 0) -> Any:
        function = FILTERS.functions.loading(self._type.dimension, self._type.element)
        return self._body(function)(self._texels, self._size, position, np.int32(level))

    def shape(self, level: Any = 0) -> tuple[Any, ...]:
        row, extent = self._type.dimension.row, self._body(FILTERS.functions.extent)
        extents = ((letter, getattr(self._size, letter)) for letter in row.extents)
        return tuple(
            extent(n, np.int32(level)) if row.is_halved(letter) else n for letter, n in extents
        )

    def _filtered(self, read: TextureRead, sampler: Any, *where: Any) -> Any:
        function = FILTERS.functions.sampling(read, self._type.dimension, self._type.element)
        return self._body(function)(self._texels, self._size, sampler, *where)

    def __repr__(self) -> str:
        return f"{self._type} of {len(self._texels)} texels"
