"""Textures and samplers of a runtime: the part that depends on neither wgpu nor slangpy.

Invariants, as for buffers: a dispatch never sees a write that was recorded after it; a texture that
Python drops lives until the commands recorded before have run.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from shaderad.compiler.artifact import Binding, BindingAccess
from shaderad.diagnostics import error
from shaderad.runtime.capabilities import Capabilities, check_bytes
from shaderad.runtime.clocks.observing import Observable, Spending
from shaderad.runtime.guard import guarded
from shaderad.runtime.idle_buffers import BufferPool, DeviceBuffer
from shaderad.runtime.textures import (
    DeviceSampler,
    DeviceTexture,
    StagedRows,
    check_layout,
    check_texture,
)

if TYPE_CHECKING:
    from shaderad.ir.dimensions import Dimension
    from shaderad.runtime.textures import SamplerSettings, TextureLayout

Bound = DeviceBuffer | DeviceTexture | DeviceSampler
"""The resources that a dispatch binds."""

KINDS: dict[BindingAccess, type[Any]] = {
    BindingAccess.READ: DeviceBuffer,
    BindingAccess.WRITE: DeviceBuffer,
    BindingAccess.TEXTURE: DeviceTexture,
    BindingAccess.SAMPLER: DeviceSampler,
}
"""The class of the bound resource, by kind of binding."""


class TextureStore(Observable):
    """The textures and samplers of a runtime.

    Attributes:
        native_texture: The class of textures in the library below.
        pool: The pool that numbers the resources that dispatches bind.
    """

    native_texture: type
    pool: BufferPool

    def __init__(self, capabilities: Capabilities) -> None:
        super().__init__(capabilities)
        self.samplers: dict[SamplerSettings, DeviceSampler] = {}

    @guarded
    def create_texture(self, layout: TextureLayout) -> DeviceTexture:
        """Creates a texture whose content is arbitrary.

        Raises:
            DeviceError: SR0605 and SR0606, if the device has no room for it; SR0627, SR0628,
                SR0636 and SR0640, if it has no such textures.
        """
        check_layout(self.capabilities, layout)
        native = self.allocated(lambda: self.new_texture(layout), layout.byte_count)
        return self._held_texture(layout, native, self.texture_views(layout, native))

    @guarded
    def wrap_texture(self, native: Any, dimension: Dimension | None = None) -> DeviceTexture:
        """Wraps a texture of the library below; the caller synchronises its content.

        Args:
            native: The texture.
            dimension: `None` for that which the library names; six planes of wgpu are a cube.

        Raises:
            DeviceError: SR0631, if `native` is no texture; SR0632, if kernels cannot read it.
        """
        capabilities = self.capabilities
        if not isinstance(native, self.native_texture):
            wanted = f"{capabilities.runtime}.{self.native_texture.__name__}"
            raise error("SR0631", wanted=wanted, found=type(native).__qualname__)
        layout = self.layout_of(native, dimension)
        check_layout(capabilities, layout)
        return self._held_texture(layout, native, self.wrapped_views(layout, native))

    def _held_texture(
        self, layout: TextureLayout, native: Any, native_by_view: dict[Dimension, Any]
    ) -> DeviceTexture:
        texture = DeviceTexture(layout, native, self.pool.next_serial(), native_by_view)
        self.pool.watch(texture)
        return texture

    @guarded
    def write_texture(self, texture: DeviceTexture, level: int, data: bytes | memoryview) -> None:
        """Writes a level, row after row, after all recorded commands."""
        content = memoryview(data).cast("B")
        _check_level(texture, level, content.nbytes)
        with self.spending(Spending.UPLOAD):
            self.record_texture_write(texture, level, content)

    @guarded
    def read_texture(self, texture: DeviceTexture, level: int) -> memoryview:
        """Submits, waits, and returns the bytes of a level, row after row."""
        _check_level(texture, level)
        rows = StagedRows(texture.layout, level)
        check_bytes(self.capabilities, rows.byte_count, self.capabilities.buffer_bytes_limit)
        return rows.packed(self.read_rows(texture, rows))

    @guarded
    def sampler(self, settings: SamplerSettings) -> DeviceSampler:
        """The sampler with these settings, created once."""
        kept = self.samplers.get(settings)
        if kept is None:
            native = self.new_sampler(settings)
            kept = DeviceSampler(settings, native, self.pool.next_serial())
            self.samplers[settings] = kept
        return kept

    def check_bound(self, program: str, binding: Binding, bound: Bound) -> None:
        """Raises SR0614, SR0629 or SR0630 if `bound` cannot be bound at `binding`."""
        if type(bound) is not KINDS[binding.access]:
            raise error("SR0614", slot=binding.slot, program=program)
        if isinstance(bound, DeviceTexture):
            check_texture(self.capabilities, binding, bound.layout)

    @abstractmethod
    def new_texture(self, layout: TextureLayout) -> Any:
        """Creates a texture in the library below."""

    @abstractmethod
    def texture_views(self, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
        """The objects that the library below binds for a texture that it created, by view."""

    @abstractmethod
    def wrapped_views(self, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
        """The objects that the library below binds for a wrapped texture, by view."""

    @abstractmethod
    def layout_of(self, native: Any, dimension: Dimension | None) -> TextureLayout:
        """The layout of a wrapped texture; raises SR0632 if kernels cannot read it so."""

    @abstractmethod
    def new_sampler(self, settings: SamplerSettings) -> Any:
        """Creates a sampler in the library below."""

    @abstractmethod
    def record_texture_write(
        self, texture: DeviceTexture, level: int, content: memoryview
    ) -> None: ...

    @abstractmethod
    def read_rows(self, texture: DeviceTexture, rows: StagedRows) -> memoryview:
        """Submits, waits, and returns the bytes of `rows` with the gaps between them."""


def _check_level(texture: DeviceTexture, level: int, byte_count: int | None = None) -> None:
    """Raises SR0633 if there is no such level, or it has another size."""
    layout = texture.layout
    is_there = 0 <= level < layout.level_count
    if not is_there or (byte_count is not None and byte_count != layout.level_bytes(level)):
        access = "a read" if byte_count is None else f"{byte_count} bytes"
        raise error("SR0633", level=level, level_count=layout.level_count, found=access)
