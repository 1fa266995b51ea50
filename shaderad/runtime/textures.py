"""Textures and samplers of a device as data: extents, levels, views, settings.

Layers and the faces of a cube form the depth of a texture, on all levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NoReturn

import numpy as np

from shaderad.compiler.artifact import Binding
from shaderad.diagnostics import error
from shaderad.ir.dimensions import Dimension
from shaderad.ir.types import LINEAR, MIXES_LEVELS, WRAPS
from shaderad.runtime.capabilities import Capabilities, check_bytes
from shaderad.runtime.texture_formats import TextureFormat

Filter = Literal["linear", "nearest"]
Wrap = Literal["repeat", "clamp", "mirror"]

Extents = tuple[int, int, int]
"""Width, height and depth in texels."""

ROW_ALIGNMENT = 256
"""In bytes: WebGPU and D3D12 copy rows of textures to buffers at multiples of this."""


@dataclass(frozen=True, slots=True)
class TextureLayout:
    """The format, dimension, extents and number of levels of a texture."""

    dimension: Dimension
    format: TextureFormat
    extents: Extents
    level_count: int

    @property
    def views(self) -> frozenset[Dimension]:
        """The views that entry points may bind."""
        return frozenset({self.dimension, self.dimension.row.texel_view})

    @property
    def layer_count(self) -> int:
        """The layers or faces; 1 for a texture without them."""
        return self.extents[2] if self.dimension.row.has_layers else 1

    def level_extents(self, level: int) -> Extents:
        """Width, height and depth of a level."""
        width, height, depth = (max(1, n >> level) for n in self.extents)
        return width, height, self.extents[2] if self.dimension.row.has_layers else depth

    def level_shape(self, level: int) -> tuple[int, ...]:
        """The axes of a level in NumPy: depth or layers, rows, columns."""
        return self.level_extents(level)[::-1][3 - self.dimension.row.axes :]

    def level_bytes(self, level: int) -> int:
        return prod(self.level_extents(level)) * self.format.texel_bytes

    @property
    def byte_count(self) -> int:
        """The bytes of all levels."""
        return sum(map(self.level_bytes, range(self.level_count)))


def full_level_count(layout: TextureLayout) -> int:
    """The number of levels down to a single texel."""
    return max(layout.extents[: layout.dimension.row.halved_axes]).bit_length()


class StagedRows:
    """The rows of a level in the staging buffer to which it is copied, with gaps between them."""

    def __init__(self, layout: TextureLayout, level: int) -> None:
        self.level = level
        self.extents = width, height, depth = layout.level_extents(level)
        self._row_bytes = width * layout.format.texel_bytes
        self.pitch = -(-self._row_bytes // ROW_ALIGNMENT) * ROW_ALIGNMENT
        """The bytes from row to row."""
        self._row_count = height * depth
        self.byte_count = self.pitch * self._row_count

    def packed(self, content: memoryview) -> memoryview:
        """The rows without gaps."""
        rows = np.frombuffer(content, np.uint8, self.byte_count)
        rows = rows.reshape(self._row_count, self.pitch)[:, : self._row_bytes]
        return np.ascontiguousarray(rows).data.cast("B")


class DeviceTexture:
    """A texture of a runtime, which forgets its bindings once Python drops it.

    Attributes:
        layout: Its format, dimension, extents and levels.
        native: `wgpu.GPUTexture` or `slangpy.Texture`.
        serial: Its number in the runtime, which no buffer or sampler has.
        native_by_view: The object that the library below binds for each view.
    """

    __slots__ = ("__weakref__", "layout", "native", "native_by_view", "serial")
    byte_count = 0
    """The size that counts towards the limit of bindings: none."""

    def __init__(
        self,
        layout: TextureLayout,
        native: Any,
        serial: int,
        native_by_view: dict[Dimension, Any],
    ) -> None:
        self.layout = layout
        self.native = native
        self.serial = serial
        self.native_by_view = native_by_view


class NoArrayOfJax:
    """A texture or sampler, which JAX takes for an array if it is an argument of `jax.jit`."""

    __slots__ = ()

    @property
    def __jax_array__(self) -> NoReturn:
        # JAX looks for this attribute before it reports an argument that is no array.
        raise error("SR0484", found=type(self).__name__)


@dataclass(frozen=True, slots=True)
class SamplerSettings(NoArrayOfJax):
    """The filters and wrap modes of `sad.sampler`; pass it to kernels for a `sad.Sampler`."""

    filter: Filter
    """The filter between the texels of a level."""
    wrap: tuple[Wrap, Wrap, Wrap]
    """The wrap modes beyond the edges along x, y and z."""
    mip_filter: Filter
    """The filter between levels."""

    @property
    def word(self) -> int:
        """The settings as one number, in the encoding of `ir.types.SamplerType`."""
        word = LINEAR * (self.filter == "linear") + MIXES_LEVELS * (self.mip_filter == "linear")
        return word + sum(WRAPS.index(way) << 2 * axis for axis, way in enumerate(self.wrap))


@dataclass(frozen=True, slots=True)
class DeviceSampler:
    """A sampler of a runtime."""

    settings: SamplerSettings
    native: Any
    """`wgpu.GPUSampler` or `slangpy.Sampler`."""
    serial: int
    byte_count = 0


def check_layout(capabilities: Capabilities, layout: TextureLayout) -> None:
    """Raises SR0606, SR0627, SR0628, SR0636 or SR0640 if the device has no such textures."""
    name = layout.format.name
    if name not in capabilities.texture_formats:
        raise error(
            "SR0627",
            format=name,
            adapter=capabilities.adapter,
            known=", ".join(sorted(capabilities.texture_formats)),
        )
    axes = layout.dimension.row.halved_axes
    limit = capabilities.texture_extent_limits[axes - 1]
    largest = max(layout.extents[:axes])
    if largest > limit:
        raise error(
            "SR0628",
            dimension=layout.dimension.value,
            extent=largest,
            adapter=capabilities.adapter,
            limit=limit,
        )
    if layout.layer_count > capabilities.texture_layer_limit:
        raise error(
            "SR0640",
            count=layout.layer_count,
            adapter=capabilities.adapter,
            limit=capabilities.texture_layer_limit,
        )
    is_line = layout.dimension is Dimension.LINE
    if is_line and layout.level_count > 1 and not capabilities.has_line_levels:
        raise error("SR0636", adapter=capabilities.adapter)
    check_bytes(capabilities, layout.level_bytes(0), capabilities.buffer_bytes_limit)


def check_texture(capabilities: Capabilities, binding: Binding, layout: TextureLayout) -> None:
    """Raises SR0629 or SR0630 if an entry point cannot read such a texture at `binding`."""
    if binding.view not in layout.views:
        assert binding.view is not None
        wanted = binding.view.value
        raise error("SR0629", name=binding.name, wanted=wanted, found=layout.dimension.value)
    if binding.is_filtered and layout.format.name not in capabilities.filtered_formats:
        raise error(
            "SR0630",
            name=binding.name,
            format=layout.format.name,
            adapter=capabilities.adapter,
            known=", ".join(sorted(capabilities.filtered_formats)),
        )
