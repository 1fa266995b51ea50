"""Textures and samplers of any form: the arguments of a graph that is built before it is called.

Invariant: each is two inputs of the graph: its content, and the number that kernels know it by.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, cast

from shaderad.arrays.containers import Container, register
from shaderad.arrays.textures import Mips, Texture, Textures
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir.types import SETTINGS, SIZE

if TYPE_CHECKING:
    from shaderad.ir.types import TextureType
    from shaderad.runtime.textures import Dimension, TextureLayout


def texel_count_of(position: int) -> str:
    """The name of the number of texels of a texture among the inputs of a graph that is built."""
    return f"texels.{position}"


class OpenTexture(Texture):
    """A texture of any layout: an argument of a graph that is built, with its size as an array."""

    __slots__ = ("open_size", "type")

    def __init__(self, t: TextureType, texels: Any, size: Any) -> None:
        self.type = t
        self.texels = texels
        self.open_size = size

    @property
    def size(self) -> Any:
        return self.open_size

    @property
    def dimension(self) -> Dimension:
        return cast("Dimension", self.type.dimension.value.lower())

    @property
    def layout(self) -> TextureLayout:
        raise error("SR0736", user_span(), type=self.type)

    @property
    def mips(self) -> Mips | None:
        raise error("SR0736", user_span(), type=self.type)

    def __repr__(self) -> str:
        return f"{self.type} of any layout"


class OpenTextures(Textures):
    """Textures of any layout in trees; the detail is the type."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return tree.type, (tree.texels, tree.open_size)

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return ("texels", SIZE)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return OpenTexture(detail, *parts)

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any]:
        return (derivative.texels if isinstance(derivative, Texture) else derivative, None)

    @classmethod
    def derivative(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return parts[0]

    @classmethod
    def tangent(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return parts[0]


class OpenSampler:
    """A sampler with any settings, likewise."""

    __slots__ = ("sampler", "word")

    def __init__(self, sampler: Any, word: Any) -> None:
        self.sampler = sampler
        self.word = word


class OpenSamplers(Container):
    """Samplers with any settings in trees."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return None, (tree.sampler, tree.word)

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return ("sampler", SETTINGS)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return OpenSampler(*parts)

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any] | None:
        return None

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return "sampler"


register(OpenTexture, OpenTextures)
register(OpenSampler, OpenSamplers)
