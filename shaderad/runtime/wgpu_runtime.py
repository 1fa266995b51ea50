"""Programs on wgpu: SPIR-V or WGSL pipelines, one command encoder per submission.

The words of a dispatch are immediates (push constants) if the device has room for them. Otherwise
they are a constant buffer, which is part of a page that all dispatches share. Small writes between
dispatches are copies from this page.

Invariants: no buffer is smaller than 16 bytes. The words of a constant buffer reach the device
before the submission that reads them, and are not overwritten during it. For this, each submission
owns the whole page while it is recorded, and queue writes are ordered with submissions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import wgpu

from shaderad.compiler.artifact import Binding, Code, Program
from shaderad.compiler.background import background
from shaderad.compiler.validate import VettingDevice, run_ahead
from shaderad.diagnostics.progress import Work
from shaderad.ir.dimensions import Dimension
from shaderad.runtime import wgpu_adapters, wgpu_pipelines, wgpu_textures
from shaderad.runtime.base import (
    STAGING_KEPT_BYTES,
    STAGING_LIMIT_BYTES,
    Pipeline,
    Ranges,
    Runtime,
)
from shaderad.runtime.capabilities import (
    UNIFORM_ALIGNMENT,
    Capabilities,
    check_bytes,
    padded,
    uniform_bytes,
)
from shaderad.runtime.clocks.of_wgpu import FEATURE, WgpuClock
from shaderad.runtime.guard import guarded
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.naga import layout_of
from shaderad.runtime.process import let_through
from shaderad.runtime.routes import Route, choose_code
from shaderad.runtime.texture_store import Bound
from shaderad.runtime.textures import (
    DeviceSampler,
    DeviceTexture,
    SamplerSettings,
    StagedRows,
    TextureLayout,
)
from shaderad.runtime.wgpu_adapters import WORDS_PAGE_BYTES, list_devices, vetting_device
from shaderad.runtime.wgpu_recording import COPY, Recording, WgpuCommands, WgpuPipeline
from shaderad.runtime.wgpu_waits import StagedRead, check_not_lost, is_queue_empty

__all__ = ["list_devices", "open_device", "vetting_device", "wrap_device"]

STORAGE_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
PAGE_USAGE = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING_USAGE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST

PAGED_WRITE_BYTES = 4 << 10
"""The most bytes of a write that is recorded if the order of commands asks for it."""

_WHOLE: Ranges = MappingProxyType({})


def open_device(wanted: str | int | None, limits: Mapping[str, Any]) -> WgpuRuntime:
    """Opens the adapter that matches `wanted`, with all of our features that it supports."""
    return WgpuRuntime(*wgpu_adapters.open_native(wanted, limits), owns_device=True)


def wrap_device(device: Any, limits: Mapping[str, Any]) -> WgpuRuntime:
    """Uses a device that the caller created and owns, with the features it was created with."""
    capabilities, vetting = wgpu_adapters.described(device, limits)
    return WgpuRuntime(device, capabilities, vetting, owns_device=False)


class WgpuRuntime(Runtime):
    """A runtime over one `wgpu.GPUDevice`."""

    foreign_errors = (wgpu.GPUError, RuntimeError, MemoryError)
    native_buffer = wgpu.GPUBuffer
    native_texture = wgpu.GPUTexture
    zeroes_new_buffers = True

    def __init__(
        self,
        device: Any,
        capabilities: Capabilities,
        vetting: VettingDevice,
        *,
        owns_device: bool,
    ) -> None:
        super().__init__(device, capabilities, owns_device=owns_device)
        self._vetting = vetting
        self._queue = device.queue
        self._recording: Recording | None = None
        self._submissions = self._ended = 0
        """The number of submissions, and how many of them are known to have ended."""
        self._alignment = max(
            UNIFORM_ALIGNMENT, int(device.limits["min-uniform-buffer-offset-alignment"])
        )
        self._words = bytearray(WORDS_PAGE_BYTES)
        self._words_buffer = device.create_buffer(size=WORDS_PAGE_BYTES, usage=PAGE_USAGE)
        # Allocated here because reads need it even if memory is short.
        self._staging: Any = self._new_staging(STAGING_KEPT_BYTES)

    def new_native(self, size: int) -> Any:
        return self.native.create_buffer(size=size, usage=STORAGE_USAGE)

    def record_write(self, buffer: DeviceBuffer, offset: int, content: memoryview) -> None:
        spare = bytes(padded(content.nbytes) - content.nbytes)
        data = memoryview(bytes(content) + spare) if spare else content
        if self._recording is not None and self._recording.touches(buffer.serial):
            # A queue write would overtake recorded commands.
            if data.nbytes <= PAGED_WRITE_BYTES:
                self._write_by_page(buffer, offset, data)
                return
            self.submit()
        for start in range(0, data.nbytes, STAGING_LIMIT_BYTES):
            if start:  # after a submission, wgpu frees the copy of the previous part
                self._queue.submit([])
                self.native._poll()
            part = data[start : start + STAGING_LIMIT_BYTES]
            self._queue.write_buffer(buffer.native, offset + start, part)

    def _write_by_page(self, buffer: DeviceBuffer, offset: int, data: memoryview) -> None:
        """Records a write as a copy from the page of words, which takes less than a submission."""
        recording = self._recorded(room := self._aligned(data.nbytes))
        start, recording.words_used = recording.words_used, recording.words_used + room
        self._words[start : start + data.nbytes] = data
        recording.touched.append((buffer.serial,))
        encoder, page = recording.end_pass(), self._words_buffer._internal
        COPY(encoder, page, start, buffer.native._internal, offset, data.nbytes)

    def _aligned(self, byte_count: int) -> int:
        """The bytes of the page that so many take."""
        return -(-byte_count // self._alignment) * self._alignment

    def read_back(self, parts: Sequence[tuple[Any, int, int]], total: int) -> memoryview:
        staging = self._staging_buffer(total)
        encoder = self._recorded().end_pass()
        start = 0
        for native, offset, size in parts:
            COPY(encoder, native._internal, offset, staging._internal, start, size)
            start += size
        return self._mapped(staging, total)

    def _staging_buffer(self, byte_count: int) -> Any:
        if byte_count > STAGING_KEPT_BYTES:
            return self._new_staging(byte_count)
        if self._staging is None:
            self._staging = self._new_staging(STAGING_KEPT_BYTES)
        return self._staging

    def _new_staging(self, byte_count: int) -> Any:
        return self.native.create_buffer(size=byte_count, usage=STAGING_USAGE)

    def _mapped(self, staging: Any, byte_count: int) -> memoryview:
        """Submits, waits, and copies the content of `staging`."""
        self.submit()
        submissions = self._submissions
        kept, self._staging = self._staging, None  # an interrupted wait leaves it mapped
        reading = StagedRead(self.native, staging, byte_count)
        with self.first_runs():
            self.await_device(reading.is_done)
        self._staging, self._ended = kept, submissions
        return reading.taken()

    def new_texture(self, layout: TextureLayout) -> Any:
        return wgpu_textures.new_texture(self.native, layout)

    def texture_views(self, layout: TextureLayout, native: Any) -> dict[Dimension, Any]:
        return wgpu_textures.views_of(layout, native)

    wrapped_views = texture_views

    def layout_of(self, native: Any, dimension: Dimension | None) -> TextureLayout:
        return wgpu_textures.layout_of(native, dimension)

    def new_sampler(self, settings: SamplerSettings) -> Any:
        return wgpu_textures.new_sampler(self.native, settings)

    def record_texture_write(self, texture: DeviceTexture, level: int, content: memoryview) -> None:
        if self._recording is not None and self._recording.touches(texture.serial):
            # A queue write would overtake recorded commands.
            self.submit()
        wgpu_textures.write_level(self._queue, texture, level, content)

    def read_rows(self, texture: DeviceTexture, rows: StagedRows) -> memoryview:
        staging = self._staging_buffer(rows.byte_count)
        recording = self._recorded()
        recording.end_pass()
        wgpu_textures.copy_level(recording.encoder, texture, rows, staging)
        return self._mapped(staging, rows.byte_count)

    def compiled(self, program: Program) -> tuple[Code, Route]:
        return choose_code(program, self.capabilities, self._vetting)

    def make_pipeline(self, program: Program, code: Code, serial: int) -> WgpuPipeline:
        layout = layout_of(program, code.format, self._vetting)
        with Work(program.name, "driver"):
            native, group_layout = wgpu_pipelines.create_pipeline(
                self.native, code, program.name, layout
            )
        page_bytes = self._aligned(layout.words_bytes)
        ahead = functools.partial(run_ahead, code, program.name, self._vetting, layout)
        return WgpuPipeline(program, native, serial, group_layout, page_bytes, ahead)

    def warm_up(self, pipelines: Iterable[Pipeline]) -> None:
        fresh = [p for p in pipelines if isinstance(p, WgpuPipeline) and p.run_ahead]
        runs = [pipeline.run_ahead for pipeline in fresh if pipeline.run_ahead is not None]
        if len(runs) > 1:  # a single one compiles in the host as fast as in a child process
            names = [pipeline.program.name for pipeline in fresh]
            begun = [background().begin(*pair) for pair in zip(runs, names, strict=True)]
            with let_through():
                for run in begun:
                    run.result()
        for pipeline in fresh:
            pipeline.run_ahead = None

    def new_clock(self) -> WgpuClock | None:
        return WgpuClock(self.native) if FEATURE in self.native.features else None

    def new_commands(self) -> WgpuCommands:
        return WgpuCommands(self._group_of, self._empty_group, WORDS_PAGE_BYTES)

    def record_commands(self, commands: WgpuCommands, serials: Sequence[int]) -> None:
        for section in commands.sections:
            recording = self._recording
            if recording is None or section.page_bytes:
                recording = self._recorded(section.page_bytes)
            for offset, words, page_bytes in section.paged_words:
                offset[0] = start = recording.words_used
                self._words[start : start + len(words)] = words
                recording.words_used = start + page_bytes
            recording.touched.append(serials)
            if self.clock is not None and section.dispatches:
                recording.record_timed(section, self.clock.next_pass())
            else:
                recording.record(section)

    def _group_of(
        self, pipeline: WgpuPipeline, resources: Sequence[Bound], ranges: Ranges | None
    ) -> Any:
        """The bind group of a dispatch, kept unless it binds a window."""
        if ranges is not None:  # which takes far longer than to bind it
            return self._bind_group(pipeline, resources, ranges)
        key = (pipeline.serial, *[resource.serial for resource in resources])
        group = self.bindings.find(key)
        if group is None:
            group = self._bind_group(pipeline, resources)
            self.bindings.keep(key, group)
        return group

    def _empty_group(self) -> Any:
        return self._empty[1]

    def _bind_group(
        self,
        pipeline: WgpuPipeline,
        resources: Sequence[Bound],
        ranges: Ranges | None = None,
    ) -> Any:
        entries: list[dict[str, Any]] = []
        for binding, bound in zip(pipeline.storage_bindings, resources, strict=True):
            self.check_bound(pipeline.program.name, binding, bound)
            resource = self._resource(binding, bound, ranges or _WHOLE)
            entries.append({"binding": binding.slot, "resource": resource})
        if pipeline.page_bytes:
            size = uniform_bytes(pipeline.program)
            page = {"buffer": self._words_buffer, "offset": 0, "size": size}
            entries.append({"binding": pipeline.uniform_slot, "resource": page})
        return self.native.create_bind_group(layout=pipeline.layout, entries=entries)

    def _resource(self, binding: Binding, bound: Bound, ranges: Ranges) -> Any:
        """The entry of a bind group."""
        if isinstance(bound, DeviceTexture):
            assert binding.view is not None
            return bound.native_by_view[binding.view]
        native = bound.native
        if isinstance(bound, DeviceSampler):
            return native
        start, size = ranges.get(binding.slot, (0, native.size))
        check_bytes(self.capabilities, size, self.capabilities.binding_bytes_limit)
        return {"buffer": native, "offset": start, "size": size}

    @functools.cached_property
    def _empty(self) -> tuple[Any, Any]:
        """An empty layout and an empty group, for the spaces before that of a program."""
        layout = self.native.create_bind_group_layout(entries=[])
        return layout, self.native.create_bind_group(layout=layout, entries=[])

    def _recorded(self, page_bytes: int = 0) -> Recording:
        """The open recording with room for `page_bytes` of words; submits a full one first."""
        recording = self._recording
        if recording is not None and recording.words_used + page_bytes > WORDS_PAGE_BYTES:
            self.submit()
            recording = None
        if recording is None:
            recording = self._recording = Recording(self.native.create_command_encoder())
        return recording

    def is_idle(self) -> bool:
        return is_queue_empty(self.native)

    def submit_recorded(self) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        recording.end_pass()
        commands = recording.encoder.finish()
        if recording.words_used:
            words = memoryview(self._words)[: recording.words_used]
            self._queue.write_buffer(self._words_buffer, 0, words)
        self._queue.submit([commands])
        self._submissions += 1

    @guarded
    def wait(self) -> None:
        # The owner of a wrapped device may submit to it, too.
        is_idle = self._recording is None and self._ended == self._submissions
        if not (is_idle and self.owns_device):
            self.submit()
            self._await_queue()

    def _await_queue(self) -> None:
        submissions = self._submissions
        with self.first_runs():
            self.await_device(self.is_idle)
        check_not_lost(self.native)
        self._ended = submissions

    def give_up_idle(self) -> None:
        self.submit()
        self.forget(self.pool.give_up_idle())
        self._await_queue()  # wgpu frees the buffers only then

    def drop_recorded(self) -> None:
        if self._recording is not None:
            self._recording.drop_pass()
        self._recording = None

    def release(self) -> None:
        if self.owns_device:
            self.native.destroy()
