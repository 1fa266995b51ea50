"""Commands of wgpu as calls of wgpu-native, and those since the last submission.

Calls through wgpu-py take four times as long. Its `finish` of the encoder reports their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shaderad.compiler.artifact import Program
from shaderad.runtime.base import Pipeline
from shaderad.runtime.command_runs import NativeCommands, Ranges
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.texture_store import Bound
from shaderad.runtime.wgpu_pipelines import ffi, lib

# Looked up once: every dispatch calls them.
_SET_PIPELINE = lib.wgpuComputePassEncoderSetPipeline
_SET_IMMEDIATES = lib.wgpuComputePassEncoderSetImmediates
_SET_BIND_GROUP = lib.wgpuComputePassEncoderSetBindGroup
_DISPATCH = lib.wgpuComputePassEncoderDispatchWorkgroups
_END_PASS = lib.wgpuComputePassEncoderEnd
_RELEASE_PASS = lib.wgpuComputePassEncoderRelease
_BEGIN_PASS = lib.wgpuCommandEncoderBeginComputePass
COPY = lib.wgpuCommandEncoderCopyBufferToBuffer
_CLEAR = lib.wgpuCommandEncoderClearBuffer


class WgpuPipeline(Pipeline):
    """A compute pipeline and its bind group layout."""

    __slots__ = ("internal", "layout", "page_bytes", "run_ahead", "space")

    def __init__(
        self,
        program: Program,
        native: Any,
        serial: int,
        layout: Any,
        page_bytes: int,
        run_ahead: Callable[[], None],
    ) -> None:
        super().__init__(program, native, serial)
        self.internal = native._internal
        self.space = program.space
        self.layout = layout
        self.page_bytes = page_bytes
        """Bytes of the page that the words of a dispatch take; 0 if they are immediates."""
        self.run_ahead: Callable[[], None] | None = run_ahead
        """Runs the program in the child process; `None` after it has run or once it is useless."""


class Section:
    """Dispatches of one pass, then copies and clears."""

    __slots__ = ("dispatches", "page_bytes", "paged_words", "transfers")

    def __init__(self) -> None:
        self.dispatches: list[tuple[Any, ...]] = []
        """The arguments of their calls."""
        self.transfers: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        """Functions of wgpu-native, and their arguments behind the encoder."""
        self.paged_words: list[tuple[Any, bytes | bytearray, int]] = []
        """Words in the page: the cell for their offset, their content, the bytes they take."""
        self.page_bytes = 0


class WgpuCommands(NativeCommands):
    """Commands in sections.

    Args:
        group_of: The bind group of a pipeline, its resources and their ranges.
        empty_group: Makes the group of the spaces before that of a program.
        page_limit: The bytes of the page of words.
    """

    def __init__(
        self,
        group_of: Callable[[WgpuPipeline, Sequence[Bound], Ranges | None], Any],
        empty_group: Callable[[], Any],
        page_limit: int,
    ) -> None:
        self.sections = [Section()]
        self._group_of, self._empty_group = group_of, empty_group
        self._page_limit = page_limit
        self._held: list[Any] = []
        """The owners of native buffers and bind groups. A run does not keep pipelines alive."""

    def record_dispatch(
        self,
        pipeline: WgpuPipeline,
        resources: Sequence[Bound],
        words: bytes | bytearray,
        groups: tuple[int, int, int],
        ranges: Ranges | None,
    ) -> None:
        bind_groups = [self._empty_group()] * pipeline.space
        bind_groups.append(self._group_of(pipeline, resources, ranges))
        section, page_bytes = self.sections[-1], pipeline.page_bytes
        if section.transfers or section.page_bytes + page_bytes > self._page_limit:
            section = Section()
            self.sections.append(section)
        content, offset_count, offset = ffi.from_buffer(words) if words else b"", 0, ffi.NULL
        if page_bytes:
            content, offset_count, offset = b"", 1, ffi.new("uint32_t [1]")
            section.paged_words.append((offset, words, page_bytes))
            section.page_bytes += page_bytes
        *before, last = [(k, group._internal) for k, group in enumerate(bind_groups)]
        section.dispatches.append(
            (pipeline.internal, content, before, (*last, offset_count, offset), groups)
        )
        self._held.append(bind_groups)

    def add_copy(
        self,
        source: tuple[DeviceBuffer, int],
        destination: tuple[DeviceBuffer, int],
        byte_count: int,
    ) -> None:
        (origin, start), (target, to) = source, destination
        natives = origin.native, target.native
        arguments = natives[0]._internal, start, natives[1]._internal, to, byte_count
        self.sections[-1].transfers.append((COPY, arguments))
        self._held.append(natives)

    def add_zero(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
        native = buffer.native
        arguments = native._internal, offset, byte_count
        self.sections[-1].transfers.append((_CLEAR, arguments))
        self._held.append(native)


class Recording:
    """The commands since the last submission."""

    __slots__ = ("_pass", "_pipeline", "encoder", "touched", "words_used")

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        """That of wgpu-py."""
        self._pass: Any = None
        """The open compute pass, which consecutive dispatches share."""
        self._pipeline: Any = None
        """The native pipeline that is set in it."""
        self.touched: list[Sequence[int]] = []
        """Serials of the resources of each command."""
        self.words_used = 0

    def touches(self, serial: int) -> bool:
        """True if a command uses the buffer or texture."""
        return any(serial in serials for serials in self.touched)

    def record_timed(self, section: Section, descriptor: Any) -> None:
        """Makes the calls of `section`; its dispatches have a pass with this descriptor."""
        self.end_pass()
        self._pass = _BEGIN_PASS(self.encoder._internal, descriptor)
        self.record(section)
        self.end_pass()

    def record(self, section: Section) -> None:
        """Makes the calls of `section`."""
        if section.dispatches:
            target, last = self._open_pass(), self._pipeline
            for pipeline, words, before, bound, groups in section.dispatches:
                if pipeline is not last:
                    _SET_PIPELINE(target, pipeline)
                    last = pipeline
                if words:
                    _SET_IMMEDIATES(target, 0, words, len(words))
                for index, group in before:
                    _SET_BIND_GROUP(target, index, group, 0, ffi.NULL)
                _SET_BIND_GROUP(target, *bound)
                _DISPATCH(target, *groups)
            self._pipeline = last
        if section.transfers:
            encoder = self.end_pass()
            for call, arguments in section.transfers:
                call(encoder, *arguments)

    def _open_pass(self) -> Any:
        if self._pass is None:
            self._pass = _BEGIN_PASS(self.encoder._internal, ffi.NULL)
        return self._pass

    def end_pass(self) -> Any:
        """Ends the open pass; returns the native encoder for copies and clears."""
        if self._pass is not None:
            _END_PASS(self._pass)
            self.drop_pass()
        return self.encoder._internal

    def drop_pass(self) -> None:
        """Frees the open pass."""
        if self._pass is not None:
            ended, self._pass, self._pipeline = self._pass, None, None
            _RELEASE_PASS(ended)
