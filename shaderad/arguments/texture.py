"""Textures as arguments: their texels, as an array that lies in the texture, and their size."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from shaderad.arguments.kinds import (
    ArgumentPart,
    ArgumentParts,
    Opened,
    ResourceKind,
    register_resource,
)
from shaderad.arrays.containers import register
from shaderad.arrays.textures import Mips, Texture, Textures
from shaderad.device.devices import check_same
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir.types import ResourceType, TextureType, Type

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.device.devices import Device
    from shaderad.runtime.textures import TextureLayout


class OpenTexture(Texture, Opened):
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
    def dimension(self) -> str:
        return self.type.dimension.value

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
        return ("texels", TextureType.number_name)

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


register(OpenTexture, OpenTextures)


class TextureKind(ResourceKind):
    """Textures. Derivatives by one are arrays of its levels."""

    noun = "texture"

    def parts(self, value: Any, t: Type) -> ArgumentParts | None:
        if not isinstance(value, Texture):
            return None
        return ArgumentParts(Textures, value.outline, [ArgumentPart((), value.texels, t)])

    def bound(self, value: Any, t: Type, name: str, device: Device) -> Array:
        texels = self.checked(value, t, name).texels
        check_same(texels.device, device, name)
        return texels

    def checked(self, value: Any, t: Type, name: str) -> Texture:
        assert isinstance(t, TextureType)
        description = f"a `{type(value).__name__}`"
        if isinstance(value, Texture):
            description = f"a {value.dimension} texture of `{value.texels.element}`"
            if value.dimension == t.dimension.value and value.texels.element == t.element:
                return value
        make = f'sad.texture(image, dimension="{t.dimension.value}")'
        raise error("SR0819", name=name, type=t, found=description, make=make)

    def content(self, value: Any) -> Any:
        return value.texels

    def number(self, value: Any) -> Any:
        return value.size

    def open_extents(self, position: int) -> tuple[str, ...]:
        return (f"texels.{position}",)

    def opened(self, t: ResourceType, content: Any, number: Any) -> Opened:
        assert isinstance(t, TextureType)
        return OpenTexture(t, content, number)

    def placed(self, opened: Any, value: Any) -> Any:
        return Texture(value.outline, opened.texels)


TEXTURES = OpenTexture.kind = TextureKind()
register_resource(TEXTURES, TextureType, Texture, OpenTexture)
