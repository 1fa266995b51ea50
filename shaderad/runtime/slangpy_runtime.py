"""Programs on slangpy, which compiles the Slang text itself for Vulkan, D3D12, Metal or CUDA.

Invariants: text reaches slangpy's in-process compiler only after the child process has compiled
it, because a crash in process would end the user's program; host writes are recorded like other
commands, so they keep their order without waits.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import slangpy as spy

from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.compile import library_path, modules_of
from shaderad.diagnostics import Error, error
from shaderad.diagnostics.progress import Work
from shaderad.runtime import checks
from shaderad.runtime.forks import keep_for_ever
from shaderad.runtime.guard import guarded, shortened
from shaderad.runtime.idle_buffers import BufferPool, NativeBuffer
from shaderad.runtime.pipelines import PipelineKeeper
from shaderad.runtime.protocol import SMALLEST_ALLOCATION, Capabilities, Route
from shaderad.runtime.routes import check_compiles

STORAGE_USAGE = (
    spy.BufferUsage.shader_resource
    | spy.BufferUsage.unordered_access
    | spy.BufferUsage.copy_source
    | spy.BufferUsage.copy_destination
)

SMALLEST_STAGING_BYTES = 256
STAGING_KEPT_BYTES = 1 << 20
"""Read-backs up to this size share a buffer for each power of two; larger ones make their own."""


class SlangpyPipeline:
    """A compute pipeline and the positions of its bindings among the fields of the root object."""

    __slots__ = ("native", "needs", "program", "storage_fields", "words_field")

    def __init__(self, program: Program, linked: Any, native: Any, device: Any) -> None:
        self.program = program
        self.native = native
        self.needs = checks.needs_of(program)
        root = spy.ShaderCursor(device.create_root_shader_object(linked))
        field = {b.slot: root.find_field_index(b.name) for b in program.bindings}
        self.storage_fields = [(slot, field[slot]) for slot in self.needs.storage_slots]
        uniform = self.needs.uniform_slot
        self.words_field = None if uniform is None else field[uniform]


class SlangpyRuntime(PipelineKeeper[SlangpyPipeline]):
    """The `Runtime` protocol over one `slangpy.Device`."""

    foreign_errors = (RuntimeError, spy.SlangCompileError, MemoryError)

    def __init__(
        self,
        device: Any,
        make_session: Callable[[Sequence[Path]], Any],
        capabilities: Capabilities,
        *,
        owns_device: bool = True,
    ) -> None:
        super().__init__(capabilities)
        self.native = device
        self._make_session = make_session
        self._sessions: dict[tuple[Path | None, tuple[str, ...]], Any] = {}
        self._owns_device = owns_device
        self._encoder: Any = None
        self._compute: Any = None
        self._last_submission: int | None = None
        self._staging: dict[int, Any] = {}
        self._pool = BufferPool()

    @guarded
    def allocate(self, byte_count: int, *, zeroed: bool = True) -> NativeBuffer:
        checks.check_bytes(self.capabilities, byte_count, self.capabilities.binding_bytes_limit)
        size = max(SMALLEST_ALLOCATION, checks.padded(byte_count))
        self._pool.settle()
        buffer = self._pool.reuse(byte_count, size)
        if buffer is None:
            native = self.allocated(
                lambda: self.native.create_buffer(size=size, usage=STORAGE_USAGE), byte_count
            )
            buffer = self._pool.hold(byte_count, native, is_own=True)
        if zeroed:
            self._commands().clear_buffer(buffer.native)
        return buffer

    def translate(self, failure: Exception, byte_count: int = 0) -> Error:
        # slang-rhi reports only "failed" when memory is short; the call has no other failure.
        if "createBuffer" in str(failure):
            failure = MemoryError(shortened(str(failure)))
        return super().translate(failure, byte_count)

    @guarded
    def wrap(self, native: Any) -> NativeBuffer:
        if not isinstance(native, spy.Buffer):
            raise error("SR0619", runtime="slangpy", found=type(native).__qualname__)
        return self._pool.hold(int(native.size), native, is_own=False)

    @guarded
    def write(self, buffer: NativeBuffer, offset: int, data: bytes | memoryview) -> None:
        content = _writable(data)
        checks.check_range(buffer.byte_count, offset, content.nbytes)
        if content.nbytes:
            self._commands().upload_buffer_data(buffer.native, offset, content)

    @guarded
    def read(self, requests: Sequence[tuple[NativeBuffer, int, int]]) -> list[memoryview]:
        for buffer, offset, byte_count in requests:
            checks.check_range(buffer.byte_count, offset, byte_count)
        sizes = [checks.padded(byte_count) for _, _, byte_count in requests]
        total = sum(sizes)
        if not total:
            self.wait()
            return [memoryview(b"") for _ in requests]
        staging = self._staging_buffer(total)
        encoder = self._commands()
        start = 0
        for (buffer, offset, _), size in zip(requests, sizes, strict=True):
            if size:
                encoder.copy_buffer(staging, start, buffer.native, offset, size)
            start += size
        self.wait()
        content = memoryview(staging.to_numpy()).cast("B")
        return checks.split(content, [count for _, _, count in requests])

    def _staging_buffer(self, byte_count: int) -> Any:
        # `to_numpy` copies the whole buffer, so small reports need a small one.
        size = max(SMALLEST_STAGING_BYTES, 1 << (byte_count - 1).bit_length())
        if size > STAGING_KEPT_BYTES:
            return self._new_staging(byte_count)
        if size not in self._staging:
            self._staging[size] = self._new_staging(size)
        return self._staging[size]

    def _new_staging(self, size: int) -> Any:
        return self.native.create_buffer(
            size=size,
            memory_type=spy.MemoryType.read_back,
            usage=spy.BufferUsage.copy_destination,
        )

    @guarded
    def zero(self, buffer: NativeBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        count = buffer.byte_count - offset if byte_count is None else byte_count
        checks.check_range(buffer.byte_count, offset, count)
        if count == buffer.byte_count:
            self._commands().clear_buffer(buffer.native)
        elif count:
            # `BufferRange` cannot be set from Python (0.43), so zeros are copied.
            self.copy(self.allocate(count), 0, buffer, offset, count)

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
        if byte_count:
            self._commands().copy_buffer(
                destination.native,
                destination_offset,
                source.native,
                source_offset,
                checks.padded(byte_count),
            )

    def compiled(self, program: Program) -> tuple[Code, Route]:
        return check_compiles(program, self.capabilities)

    def make_pipeline(self, program: Program, code: Code) -> SlangpyPipeline:
        del code  # slangpy compiles the text again.
        # Modules of a session need unique names, and two programs may share a kernel's name.
        name = f"{program.name}_{hashlib.sha256(program.slang.encode()).hexdigest()[:16]}"
        try:
            with Work(program.name, "Slang and driver, in slangpy", blocks_python=True):
                session = self._session(program)
                module = session.load_module_from_source(name, _in_first_space(program.slang))
                entry_point = module.entry_point(program.name)
                linked = session.link_program([module], [entry_point])
                native = self.native.create_compute_pipeline(linked)
        except self.foreign_errors as failure:
            raise error("SR0617", program=program.name, reason=shortened(str(failure))) from None
        return SlangpyPipeline(program, linked, native, self.native)

    def _session(self, program: Program) -> Any:
        """The Slang session for the library modules that the program imports."""
        key = (program.library, modules_of(program))
        if key not in self._sessions:
            library, modules = key
            self._sessions[key] = self._make_session(library_path(library=library, modules=modules))
        return self._sessions[key]

    @guarded
    def dispatch(
        self,
        pipeline: SlangpyPipeline,
        buffers: Mapping[int, NativeBuffer],
        words: bytes,
        groups: tuple[int, int, int],
    ) -> None:
        checks.check_dispatch(
            self.capabilities, pipeline.program, pipeline.needs, buffers, len(words), groups
        )
        if 0 in groups:
            return
        if self._compute is None:
            self._compute = self._commands().begin_compute_pass()
        # A new root object per dispatch: rewriting one would change earlier dispatches.
        root = spy.ShaderCursor(self._compute.bind_pipeline(pipeline.native))
        for slot, field in pipeline.storage_fields:
            root.get_field_by_index(field).write(buffers[slot].native)
        if pipeline.words_field is not None and words:
            block = root.get_field_by_index(pipeline.words_field).dereference()
            block.set_data(_writable(words))  # pyright: ignore[reportUnknownMemberType]
        self._compute.dispatch_compute(spy.uint3(*groups))

    def _commands(self) -> Any:
        """The command encoder, after the end of the open pass."""
        if self._compute is not None:
            compute, self._compute = self._compute, None
            compute.end()
        if self._encoder is None:
            self._encoder = self.native.create_command_encoder()
        return self._encoder

    @guarded
    def submit(self) -> None:
        if self._encoder is not None:
            encoder = self._commands()
            self._encoder = None
            self._last_submission = self.native.submit_command_buffer(encoder.finish())
        self._pool.settle()

    @guarded
    def wait(self) -> None:
        self.submit()
        if self._last_submission is not None:
            # slangpy's own wait holds the GIL: no thread runs and no interrupt arrives.
            with self.first_runs():
                submission = self._last_submission
                self.await_device(partial(self.native.is_submit_finished, submission))
        self.native.wait()

    def give_up_idle(self) -> None:
        self.wait()
        self._pool.give_up_idle()
        self.native.wait()  # slang-rhi frees released buffers only now.

    def drop_recorded(self) -> None:
        self._compute = None
        self._encoder = None

    def leave(self) -> None:
        super().leave()
        if self.is_out_of_reach:
            _forget_closing()

    def release(self) -> None:
        self._staging = {}
        self._pool.give_up_idle()
        if self._owns_device:
            self.native.close()


def _forget_closing() -> None:
    """Prevents slangpy from closing its devices at the end of the process, which waits for each.

    slangpy closes them in an exit function, which has no name, and when its module is finalised.
    """
    keep_for_ever(sys.modules["slangpy.slangpy_ext"])
    for function in gc.get_objects():
        if type(function).__name__ == "nb_func" and not function.__name__:
            atexit.unregister(function)


def _writable(data: bytes | memoryview) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes as a writable array: slangpy refuses read-only arrays even as input."""
    content = np.frombuffer(data, np.uint8)
    return content if content.flags.writeable else content.copy()


def _in_first_space(slang: str) -> str:
    """`slang` with all resources in set 0: slang-rhi ends the process for other sets.

    Resources are bound by name, so the set does not matter.
    """
    slang = re.sub(r"(\[\[vk::binding\(\d+), \d+\)", r"\1, 0)", slang)
    return re.sub(r"( : register\(\w+), space\d+\)", r"\1, space0)", slang)
