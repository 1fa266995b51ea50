"""Programs on wgpu: SPIR-V or WGSL pipelines, one command encoder per submission.

Invariants: the words of a constant buffer reach the device before the submission that reads them,
and are not overwritten during it (each submission owns the whole words page while it is recorded,
and queue writes are ordered with submissions); no buffer is smaller than 16 bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import wgpu

from shaderad.compiler.artifact import Access, Code, Program
from shaderad.compiler.compile import VettingDevice
from shaderad.diagnostics import error
from shaderad.diagnostics.progress import Work
from shaderad.runtime import checks
from shaderad.runtime.bind_groups import BindGroups
from shaderad.runtime.guard import guarded
from shaderad.runtime.idle_buffers import BufferPool, NativeBuffer
from shaderad.runtime.pipelines import PipelineKeeper
from shaderad.runtime.protocol import SMALLEST_ALLOCATION, Capabilities, Route
from shaderad.runtime.routes import choose_code
from shaderad.runtime.wgpu_modules import create_module

STORAGE_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING_USAGE = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST

WORDS_PAGE_BYTES = 256 * 1024
"""Constant buffers of one submission: 1024 dispatches at the common alignment of 256 bytes."""

UNIFORM_ALIGNMENT = 16
"""The size of a uniform struct is a multiple of this in every layout."""

STAGING_KEPT_BYTES = 1 << 20
"""Read-backs up to this size share one staging buffer; larger ones make their own."""

STAGING_LIMIT_BYTES = 256 << 20
"""Larger read-backs are split; it is WebGPU's default for the maximum buffer size."""


class WgpuPipeline:
    """A compute pipeline, its bind group layout, and the needs of its dispatches."""

    __slots__ = ("layout", "native", "needs", "program", "serial", "space", "uniform_bytes")

    def __init__(self, program: Program, layout: Any, native: Any, serial: int) -> None:
        self.program = program
        self.layout = layout
        self.native = native
        self.serial = serial
        self.space = program.space
        self.needs = checks.needs_of(program)
        self.uniform_bytes = uniform_bytes(self.needs)


class _Recording:
    """The commands since the last submission."""

    __slots__ = ("compute", "encoder", "pipeline", "touched", "words_used")

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.compute: Any = None
        self.pipeline: WgpuPipeline | None = None
        """The pipeline that is set in the open pass."""
        self.touched: set[int] = set()
        self.words_used = 0

    def compute_pass(self) -> Any:
        """The open compute pass, which consecutive dispatches share."""
        if self.compute is None:
            self.compute = self.encoder.begin_compute_pass()
        return self.compute

    def end_pass(self) -> Any:
        """Ends the open pass; returns the encoder for copies and clears."""
        if self.compute is not None:
            compute, self.compute, self.pipeline = self.compute, None, None
            compute.end()
        return self.encoder


class WgpuRuntime(PipelineKeeper[WgpuPipeline]):
    """The `Runtime` protocol over one `wgpu.GPUDevice`."""

    foreign_errors = (wgpu.GPUError, RuntimeError, MemoryError)

    def __init__(
        self,
        device: Any,
        capabilities: Capabilities,
        vetting: VettingDevice,
        *,
        owns_device: bool = True,
    ) -> None:
        super().__init__(capabilities)
        self.native = device
        self._vetting = vetting
        self._owns_device = owns_device
        self._queue = device.queue
        self._pipeline_count = 0
        self._recording: _Recording | None = None
        self._submissions = self._ended = 0
        """The number of submissions, and the number of those that are known to have ended."""
        self._bind_groups = BindGroups()
        self._pool = BufferPool()
        self._alignment = max(
            UNIFORM_ALIGNMENT, int(device.limits["min-uniform-buffer-offset-alignment"])
        )
        self._words = bytearray(WORDS_PAGE_BYTES)
        self._words_buffer = device.create_buffer(
            size=WORDS_PAGE_BYTES, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
        )
        # Allocated here because waits need it even when memory is short.
        self._staging: Any = self._new_staging(STAGING_KEPT_BYTES)

    @guarded
    def allocate(self, byte_count: int, *, zeroed: bool = True) -> NativeBuffer:
        checks.check_bytes(self.capabilities, byte_count, self.capabilities.binding_bytes_limit)
        size = max(SMALLEST_ALLOCATION, checks.padded(byte_count))
        self._bind_groups.forget(self._pool.settle())
        reused = self._pool.reuse(byte_count, size)
        if reused is not None:
            if zeroed:  # WebGPU zeroes new buffers itself
                self.zero(reused)
            return reused
        native = self.allocated(
            lambda: self.native.create_buffer(size=size, usage=STORAGE_USAGE), byte_count
        )
        return self._pool.hold(byte_count, native, is_own=True)

    @guarded
    def wrap(self, native: Any) -> NativeBuffer:
        if not isinstance(native, wgpu.GPUBuffer):
            raise error("SR0619", runtime="wgpu", found=type(native).__qualname__)
        return self._pool.hold(int(native.size), native, is_own=False)

    @guarded
    def write(self, buffer: NativeBuffer, offset: int, data: bytes | memoryview) -> None:
        content = memoryview(data).cast("B")
        checks.check_range(buffer.byte_count, offset, content.nbytes)
        if not content.nbytes:
            return
        if self._recording is not None and buffer.serial in self._recording.touched:
            # A queue write would overtake recorded commands.
            self.submit()
        spare = checks.padded(content.nbytes) - content.nbytes
        self._queue.write_buffer(
            buffer.native, offset, bytes(content) + bytes(spare) if spare else content
        )

    @guarded
    def read(self, requests: Sequence[tuple[NativeBuffer, int, int]]) -> list[memoryview]:
        for buffer, offset, byte_count in requests:
            checks.check_range(buffer.byte_count, offset, byte_count)
        total = sum(checks.padded(byte_count) for _, _, byte_count in requests)
        if total > STAGING_LIMIT_BYTES and len(requests) > 1:
            middle = len(requests) // 2
            return self.read(requests[:middle]) + self.read(requests[middle:])
        if not total:
            self.wait()
            return [memoryview(b"") for _ in requests]
        staging = self._staging_buffer(total)
        encoder = self._recorded().end_pass()
        start = 0
        for buffer, offset, byte_count in requests:
            size = checks.padded(byte_count)
            if size:
                encoder.copy_buffer_to_buffer(buffer.native, offset, staging, start, size)
            start += size
        return checks.split(self._mapped(staging, total), [count for _, _, count in requests])

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
        # READ_NOSYNC: wgpu-py would submit again before mapping.
        promise = staging.map_async("READ_NOSYNC", 0, byte_count)
        with self.first_runs():
            self.await_device(functools.partial(self._is_settled, promise))
        content = staging.read_mapped(0, byte_count)
        staging.unmap()
        self._staging, self._ended = kept, submissions
        return content

    def _is_settled(self, promise: Any) -> bool:
        # The polling thread of wgpu-py does not report a lost device.
        self.native._poll()  # pyright: ignore[reportPrivateUsage]
        if promise._state == "pending":  # pyright: ignore[reportPrivateUsage]
            return False
        promise.sync_wait()  # raises failures, and breaks a reference cycle around the buffer
        return True

    @guarded
    def zero(self, buffer: NativeBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        count = buffer.byte_count - offset if byte_count is None else byte_count
        checks.check_range(buffer.byte_count, offset, count)
        if count:
            recording = self._recorded()
            recording.touched.add(buffer.serial)
            recording.end_pass().clear_buffer(buffer.native, offset, checks.padded(count))

    @guarded
    def copy(
        self,
        source: NativeBuffer,
        source_offset: int,
        destination: NativeBuffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        checks.check_range(source.byte_count, source_offset, byte_count)
        checks.check_range(destination.byte_count, destination_offset, byte_count)
        if not byte_count:
            return
        recording = self._recorded()
        recording.touched |= {source.serial, destination.serial}
        recording.end_pass().copy_buffer_to_buffer(
            source.native,
            source_offset,
            destination.native,
            destination_offset,
            checks.padded(byte_count),
        )

    def compiled(self, program: Program) -> tuple[Code, Route]:
        return choose_code(program, self.capabilities, self._vetting)

    def make_pipeline(self, program: Program, code: Code) -> WgpuPipeline:
        device = self.native
        needs = checks.needs_of(program)
        layout = device.create_bind_group_layout(
            entries=[
                {
                    "binding": binding.slot,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": _layout_of(binding.access, uniform_bytes(needs)),
                }
                for binding in program.bindings
            ]
        )
        text = code.content if code.target == "spirv" else code.content.decode()
        with Work(program.name, "driver"):
            native = device.create_compute_pipeline(
                layout=device.create_pipeline_layout(
                    bind_group_layouts=[
                        *(self._empty[0] for _ in range(program.space)),
                        layout,
                    ]
                ),
                compute={
                    "module": create_module(device, text),
                    "entry_point": program.name,
                },
            )
        self._pipeline_count += 1
        return WgpuPipeline(program, layout, native, self._pipeline_count)

    @guarded
    def dispatch(
        self,
        pipeline: WgpuPipeline,
        buffers: Mapping[int, NativeBuffer],
        words: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        needs = pipeline.needs
        checks.check_dispatch(
            self.capabilities, pipeline.program, needs, buffers, len(words), groups
        )
        if 0 in groups:
            return
        serials = [buffers[slot].serial for slot in needs.storage_slots]
        key = (pipeline.serial, *serials)
        group = self._bind_groups.find(key) or self._bind_group(pipeline, buffers, key)
        offsets = () if needs.uniform_slot is None else (self._place(words),)
        recording = self._recorded()
        recording.touched.update(serials)
        compute = recording.compute_pass()
        if recording.pipeline is not pipeline:
            compute.set_pipeline(pipeline.native)
            recording.pipeline = pipeline
        for index in range(pipeline.space):
            compute.set_bind_group(index, self._empty[1])
        compute.set_bind_group(pipeline.space, group, offsets)
        compute.dispatch_workgroups(*groups)

    def _place(self, words: bytes) -> int:
        """Copies `words` into the page and returns their offset; submits a full page first."""
        recording = self._recorded()
        if recording.words_used + max(len(words), UNIFORM_ALIGNMENT) > WORDS_PAGE_BYTES:
            self.submit()
            recording = self._recorded()
        start = recording.words_used
        self._words[start : start + len(words)] = words
        step = self._alignment
        recording.words_used = (start + len(words) + step - 1) // step * step
        return start

    def _bind_group(
        self, pipeline: WgpuPipeline, buffers: Mapping[int, NativeBuffer], key: tuple[int, ...]
    ) -> Any:
        needs = pipeline.needs
        entries: list[dict[str, Any]] = []
        for slot in needs.storage_slots:
            native = buffers[slot].native
            resource = {"buffer": native, "offset": 0, "size": native.size}
            entries.append({"binding": slot, "resource": resource})
        if needs.uniform_slot is not None:
            page = {"buffer": self._words_buffer, "offset": 0, "size": pipeline.uniform_bytes}
            entries.append({"binding": needs.uniform_slot, "resource": page})
        group = self.native.create_bind_group(layout=pipeline.layout, entries=entries)
        self._bind_groups.keep(key, group)
        return group

    @functools.cached_property
    def _empty(self) -> tuple[Any, Any]:
        """An empty layout and an empty group, for the spaces before that of a program."""
        layout = self.native.create_bind_group_layout(entries=[])
        return layout, self.native.create_bind_group(layout=layout, entries=[])

    def _recorded(self) -> _Recording:
        if self._recording is None:
            self._recording = _Recording(self.native.create_command_encoder())
        return self._recording

    @guarded
    def submit(self) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        commands = recording.end_pass().finish()
        if recording.words_used:
            used = min(recording.words_used, WORDS_PAGE_BYTES)
            self._queue.write_buffer(self._words_buffer, 0, memoryview(self._words)[:used])
        self._queue.submit([commands])
        self._submissions += 1
        self._bind_groups.forget(self._pool.settle())

    @guarded
    def wait(self) -> None:
        # The owner of a wrapped device may submit to it as well.
        is_idle = self._recording is None and self._ended == self._submissions
        if not (is_idle and self._owns_device):
            self._make_round_trip()

    def _make_round_trip(self) -> None:
        # wgpu-py has no public wait that works (`on_submitted_work_done_sync` is broken in 0.32).
        staging = self._staging_buffer(checks.WORD_BYTES)
        self._recorded().end_pass().clear_buffer(staging, 0, checks.WORD_BYTES)
        self._mapped(staging, checks.WORD_BYTES)

    def give_up_idle(self) -> None:
        self.submit()
        self._bind_groups.forget(self._pool.give_up_idle())
        self._make_round_trip()  # wgpu frees the buffers only then

    def drop_recorded(self) -> None:
        self._recording = None

    def release(self) -> None:
        self._bind_groups = BindGroups()
        self._pool.give_up_idle()
        if self._owns_device:
            self.native.destroy()


def uniform_bytes(needs: checks.Needs) -> int:
    """The size of the constant buffer binding."""
    return max(1, -(-needs.words_bytes // UNIFORM_ALIGNMENT)) * UNIFORM_ALIGNMENT


def _layout_of(access: Access, uniform_size: int) -> dict[str, Any]:
    if access is Access.UNIFORM:
        return {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": uniform_size}
    return {"type": "read-only-storage" if access is Access.READ else "storage"}
