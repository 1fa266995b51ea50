"""Commands of slangpy as calls of its encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shaderad.compiler.artifact import Program
from shaderad.runtime.base import Pipeline
from shaderad.runtime.command_runs import NativeCommands, Ranges
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.slangpy_module import spy
from shaderad.runtime.texture_store import Bound


class SlangpyPipeline(Pipeline):
    """A compute pipeline and the positions of its bindings among the fields of the root object."""

    __slots__ = ("linked", "storage_fields", "words_field")

    def __init__(
        self, program: Program, native: Any, serial: int, linked: Any, device: Any
    ) -> None:
        super().__init__(program, native, serial)
        self.linked = linked
        root = spy.ShaderCursor(device.create_root_shader_object(linked))
        field = {b.slot: root.find_field_index(b.name) for b in program.bindings}
        self.storage_fields = [field[slot] for slot in self.storage_slots]
        self.words_field = None if self.uniform_slot is None else field[self.uniform_slot]


BoundRoot = tuple[Any, Callable[[Any], None] | None]
"""A root object, and the function that writes its words, if it has any."""


class SlangpyCommands(NativeCommands):
    """Commands in sections: dispatches, then copies and fills.

    Args:
        root_of: The root object of a pipeline and its resources.
        zeros: Makes a buffer of zeros.
    """

    def __init__(
        self,
        root_of: Callable[[SlangpyPipeline, Sequence[Bound]], BoundRoot],
        zeros: Callable[[int], DeviceBuffer],
    ) -> None:
        self.sections: list[tuple[list[Any], list[Any]]] = [([], [])]
        self.dispatch_count = 0
        self._root_of, self._zeros = root_of, zeros

    def record_dispatch(
        self,
        pipeline: SlangpyPipeline,
        resources: Sequence[Bound],
        words: bytes | bytearray,
        groups: tuple[int, int, int],
        ranges: Ranges | None,
    ) -> None:
        del ranges  # buffers are bound whole, see `binding_alignment`
        if self.sections[-1][1]:
            self.sections.append(([], []))
        root = self._root_of(pipeline, resources)
        dispatch = pipeline.native, root, writable(words), spy.uint3(*groups)
        self.sections[-1][0].append(dispatch)
        self.dispatch_count += 1

    def add_copy(
        self,
        source: tuple[DeviceBuffer, int],
        destination: tuple[DeviceBuffer, int],
        byte_count: int,
    ) -> None:
        (origin, start), (target, to) = source, destination
        arguments = target.native, to, origin.native, start, byte_count
        self.sections[-1][1].append((spy.CommandEncoder.copy_buffer, arguments))

    def add_zero(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
        native, transfers = buffer.native, self.sections[-1][1]
        if byte_count >= buffer.byte_count:
            transfers.append((spy.CommandEncoder.clear_buffer, (native,)))
        else:
            transfers.append((self._copy_zeros, (native, offset, byte_count)))

    def _copy_zeros(self, encoder: Any, native: Any, offset: int, byte_count: int) -> None:
        # `BufferRange` cannot be set from Python (0.43).
        zeros = self._zeros(byte_count)
        encoder.copy_buffer(native, offset, zeros.native, 0, byte_count)


def writable(data: bytes | bytearray | memoryview) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes as a writable array: slangpy refuses read-only arrays even as input."""
    content = np.frombuffer(data, np.uint8)
    return content if content.flags.writeable else content.copy()
