"""Textures as users hold them: pictures that kernels sample with hardware filters.

Invariant: a texture is a value like an array, because kernels only read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakValueDictionary

import numpy as np

from shaderad.arrays.arrays import Array, array
from shaderad.arrays.containers import Container, container_of, register
from shaderad.arrays.tape import trace_of
from shaderad.device.devices import Device, asked_device, current_device
from shaderad.diagnostics import error, text_of
from shaderad.diagnostics.tracebacks import api_boundary, api_class
from shaderad.ir.dimensions import Dimension
from shaderad.ir.types import FLOAT, Vector
from shaderad.runtime.textures import NoArrayOfJax

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from shaderad.ir.types import Scalar
    from shaderad.runtime.textures import DeviceTexture, Extents, TextureLayout

__all__ = ["Texture"]


class Mips(Protocol):
    """The chain of levels made from level 0, which is a linear map of it."""

    def levels(self, texels: Array) -> list[Array]:
        """All levels."""
        ...

    def pulled(self, by_levels: Sequence[Array]) -> Array:
        """Gradients with respect to all levels -> the gradient with respect to level 0."""
        ...


def texel_of(channels: int) -> Scalar | Vector:
    """The type of a texel with this many channels, as kernels read it."""
    return Vector(FLOAT, channels) if channels > 1 else FLOAT


@dataclass(frozen=True, slots=True)
class TextureOutline:
    """All of a texture but its content."""

    layout: TextureLayout
    mips: Mips | None

    @property
    def texel(self) -> Scalar | Vector:
        """The type of a texel, as kernels read it."""
        return texel_of(self.layout.format.channel_count)

    def by_levels(self, texels: Array) -> Any:
        """The gradient by all texels -> that by level 0, or by each level that was given."""
        levels = self._levels(texels)
        if self.mips is not None:
            return self.mips.pulled(levels)
        return levels[0] if len(levels) == 1 else tuple(levels)

    def tangent(self, texels: Array) -> Any:
        """The tangent of all texels -> that of level 0, or of each level that was given."""
        levels = self._levels(texels)
        is_one = self.mips is not None or len(levels) == 1
        return levels[0] if is_one else tuple(levels)

    def _levels(self, texels: Array) -> list[Array]:
        levels: list[Array] = []
        start = 0
        for level in range(self.layout.level_count):
            shape = self.layout.level_shape(level)
            levels.append(texels[start : start + prod(shape)].reshape(shape))
            start += prod(shape)
        return levels


@dataclass(frozen=True, slots=True)
class ByLevels:
    """A derivative by the levels of a texture, in place of one by all texels."""

    outline: TextureOutline
    content: Any


class Textures(Container):
    """Textures in trees: the texels are the only part, and the detail is the outline."""

    @classmethod
    def taken_apart(cls, tree: Any) -> tuple[Hashable, Sequence[Any]]:
        return tree.outline, (tree.texels,)

    @classmethod
    def keys(cls, detail: Any, count: int) -> Sequence[Any]:
        return ("texels",)

    @classmethod
    def built(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return Texture(detail, parts[0])

    @classmethod
    def derivative(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return None if parts[0] is None else detail.by_levels(parts[0])

    @classmethod
    def tangent(cls, detail: Any, parts: Sequence[Any]) -> Any:
        return None if parts[0] is None else detail.tangent(parts[0])

    @classmethod
    def parts_of(cls, detail: Any, count: int, derivative: Any) -> Sequence[Any]:
        if isinstance(derivative, Texture):
            return (derivative.texels,)
        return (ByLevels(detail, derivative),)

    @classmethod
    def described(cls, detail: Any, count: int) -> str:
        return "Texture"


@api_class
class Texture(NoArrayOfJax):
    """A texture on a device, made by `sad.texture`; kernels take it for a `sad.Texture2D`.

    Attributes:
        outline: All but the content.
        texels: The texels of all levels as floats, in an array that lies in the texture: what
            traces follow, and launches bind. No array function can read it.
    """

    __slots__ = ("__weakref__", "outline", "serial", "texels")

    def __init__(self, outline: TextureOutline, texels: Array) -> None:
        self.outline = outline
        self.texels = texels
        self.serial = next(_serials)  # no other texture of the process has this number
        texture_by_serial[self.serial] = self

    @property
    def device(self) -> Device:
        """The device that holds the content."""
        return self.texels.device

    @property
    def is_followed(self) -> bool:
        """True while a transform or graph computes with this texture."""
        device = cast("Device | None", self.device)  # one that is traced is on none
        return device is None or trace_of([self.texels]) is not None

    @property
    def resource(self) -> DeviceTexture:
        """The device memory."""
        return cast("DeviceTexture", self.texels.buffer)

    @property
    def layout(self) -> TextureLayout:
        """Its format, dimension, extents and levels."""
        return self.outline.layout

    @property
    def mips(self) -> Mips | None:
        """The chain that made the levels; `None` where they were given."""
        return self.outline.mips

    @property
    def size(self) -> tuple[int, int, int, int]:
        """The number that identifies it in kernels: see `ir.types.TextureType`."""
        return (*self.layout.level_extents(0), self.level_count)

    def with_texels(self, texels: np.ndarray[Any, Any]) -> Texture:
        """A texture of the same form with other texels of level 0: floats of 32 bits, if this has
        such.
        """
        levels = [texels]
        if self.mips is not None:
            first = array(texels, dtype=self.texels.element, device=self.device)
            levels = [level.numpy() for level in self.mips.levels(first)]
        contents = [np.ascontiguousarray(level, np.float32) for level in levels]
        return texture_of_levels(self.device, self.layout, contents, self.mips)

    @property
    def dimension(self) -> str:
        """``"1d"``, ``"2d"``, ``"2d-array"``, ``"3d"`` or ``"cube"``."""
        return self.layout.dimension.value

    @property
    def extents(self) -> Extents:
        """Width, height and depth in texels: 1 where there is no such axis; layers, or 6 faces."""
        return self.layout.extents

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes, that of channels excluded: ``(height, width)`` of a picture,
        ``(layers, height, width)`` of layers, ``(6, n, n)`` of a cube.
        """
        return self.shape_of(0)

    def shape_of(self, level: int) -> tuple[int, ...]:
        """The shape of a level."""
        return self.layout.level_shape(level)

    @property
    def channel_count(self) -> int:
        """Channels of a texel: 1, 2 or 4."""
        return self.layout.format.channel_count

    @property
    def format(self) -> str:
        """The format of texels, such as ``"rgba8unorm"``."""
        return self.layout.format.name

    @property
    def level_count(self) -> int:
        """Levels: 1 without mips."""
        return self.layout.level_count

    @property
    def mips_are_made(self) -> bool:
        """True if `sad.texture` made the levels behind the first, by ``mips=True``."""
        return self.mips is not None

    @property
    def native(self) -> Any:
        """The runtime's texture, with all recorded work submitted."""
        self.device.runtime.submit()
        return self.resource.native

    @staticmethod
    @api_boundary
    def from_native(
        native: Any, device: Device | None = None, dimension: str | None = None
    ) -> Texture:
        """Wraps a texture of the runtime's own library without a copy.

        Its owner may write to it between calls. A derivative in a cube of slangpy is refused
        (SR0635); that by any other reads the content at the time of the pullback.

        Args:
            native: A `wgpu.GPUTexture` or `slangpy.Texture` of the same device, in a format of
                `sad.texture`.
            device: Default: the current one.
            dimension: A word of `sad.texture`, where wgpu leaves it open: six layers are a cube,
                and one is a picture, unless you pass ``"2d-array"``.

        Raises:
            ShapeError: SR0815 for an unknown `dimension`.
            DeviceError: SR0631 and SR0632, where `native` is no texture that kernels can read, or
                of another dimension; SR0627 for a format that the device lacks; SR0651 for a
                `device` that is none.
        """
        device = asked_device(device) or current_device()
        wanted = dimension_of(dimension)
        return texture_of(device, device.runtime.wrap_texture(native, wanted))

    @api_boundary
    def numpy(self, level: int = 0) -> np.ndarray[Any, Any]:
        """The content of a level as it is stored; waits for the device.

        Args:
            level: 0 for the texels themselves.

        Returns:
            uint8, float16 or float32 by the format, of the level's shape, and with channels as the
            last axis if there are several. Colours in sRGB stay as they are.

        Raises:
            ShapeError: SR0814, where there is no such level.
            BoundsError: As `Array.numpy`, reported by a kernel since the last synchronisation.
        """
        layout = self.layout
        self.texels.check_readable("`.numpy()` of a texture")
        if not 0 <= level < layout.level_count:
            raise error("SR0814", level=level, count=layout.level_count)
        self.device.read([])
        content = self.device.runtime.read_texture(self.resource, level)
        channels = (self.channel_count,) if self.channel_count > 1 else ()
        shape = (*layout.level_shape(level), *channels)
        return np.frombuffer(content, layout.format.dtype).reshape(shape).copy()

    def __copy__(self) -> Texture:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> Texture:
        return self

    def __reduce__(self) -> Any:
        raise error(
            "SR0384", what="pickled, being a texture", help="pickle its levels: `x.numpy()`"
        )

    def __repr__(self) -> str:
        device = cast("Device | None", self.device)  # one that is traced is on none
        where = "traced" if device is None else device.capabilities.runtime
        levels = f", levels={self.level_count}" if self.level_count > 1 else ""
        kind = f"{self.dimension!r}, {self.format!r}"
        return f"Texture({kind}, shape={self.shape}{levels}, device={where!r})"


register(Texture, Textures)

_serials = count()
texture_by_serial: WeakValueDictionary[int, Texture] = WeakValueDictionary()
"""The textures that are alive, for operators that take only numbers beside tensors."""


def kind_but_textures(part: Any) -> type[Container] | None:
    """The kind of a container for `trees.flatten`, where textures are leaves."""
    return None if isinstance(part, Texture) else container_of(part)


def checked_word(name: str, word: Any, choices: Iterable[str]) -> Any:
    """An argument that is `None` or one of `choices`; raises SR0815."""
    if word is not None and word not in choices:
        known = ", ".join(f'`"{each}"`' for each in choices)
        raise error("SR0815", name=name, known=known, found=text_of(word))
    return word


def dimension_of(word: Any) -> Dimension | None:
    """The dimension with a word of users; raises SR0815."""
    checked_word("dimension", word, [each.value for each in Dimension])
    return None if word is None else Dimension(word)


def texture_of_levels(
    device: Device,
    layout: TextureLayout,
    contents: Sequence[np.ndarray[Any, Any]],
    mips: Mips | None = None,
) -> Texture:
    """A texture with the content of each level, contiguous and in its format."""
    resource = device.runtime.create_texture(layout)
    for level, content in enumerate(contents):
        device.runtime.write_texture(resource, level, content.data)
    return texture_of(device, resource, mips)


def texture_of(device: Device, resource: DeviceTexture, mips: Mips | None = None) -> Texture:
    """The texture that lies in `resource`."""
    layout = resource.layout
    count = sum(prod(layout.level_extents(k)) for k in range(layout.level_count))
    texel = texel_of(layout.format.channel_count)
    texels = Array(device, texel, (count,), cast("Any", resource))
    return Texture(TextureOutline(layout, mips), texels)
