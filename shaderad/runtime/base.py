"""The interface of runtimes, and the part of it that depends on neither wgpu nor slangpy.

Commands run in the order of the calls that recorded them, and a dispatch never sees a
`write` that was recorded after it.

Invariants: a program has one pipeline at a time, and each new pipeline adds one route to `routes`.
Compilers run in the child process, outside of the lock of the runtime. Invalid commands, some of
which would make wgpu or slangpy abort the process, are refused before they are recorded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import accumulate, count
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from shaderad.compiler.artifact import BindingAccess, Code, Program
from shaderad.compiler.background import Pending, background
from shaderad.diagnostics import error
from shaderad.diagnostics.progress import Work
from shaderad.runtime.capabilities import (
    WORD_BYTES,
    Capabilities,
    check_bytes,
    check_program,
    padded,
    words_bytes,
)
from shaderad.runtime.clocks.observing import RecordedDispatch, Spending
from shaderad.runtime.command_runs import (
    KEPT_RUNS,
    CommandRun,
    Frame,
    KeptBindings,
    LateWord,
    NativeCommands,
    Ranges,
    Recordable,
    check_range,
)
from shaderad.runtime.guard import guarded
from shaderad.runtime.idle_buffers import BufferPool, DeviceBuffer
from shaderad.runtime.kept_pipelines import KeptPipelines
from shaderad.runtime.process import let_through, turn
from shaderad.runtime.routes import Route
from shaderad.runtime.texture_store import Bound, TextureStore

SMALLEST_ALLOCATION = 16
"""In bytes. Binding a buffer of size 0 ends the process in wgpu-native."""

LARGE_SPACING = (8 << 10) + 256
"""Bytes behind buffers that are larger than a binding. Arrays of 1 GiB that follow each other in
memory map to the same sets of a processor's caches: elementwise work took 2.5 times as long."""

STAGING_KEPT_BYTES = 1 << 20
"""Read-backs up to this size share staging buffers; larger ones make their own."""

STAGING_LIMIT_BYTES = 256 << 20
"""Larger read-backs are split; it is WebGPU's default for the maximum buffer size."""

DISPATCHES_PER_SUBMISSION = 64
"""Dispatches that are submitted together, because a submission costs more than a dispatch."""

DISPATCHES_PER_POLL = 8
"""Dispatches between two polls of a device that is still busy."""

WAITING_LIMIT = 512
"""The most dispatches that are held back while the device is busy; then they are submitted."""

P = ParamSpec("P")
R = TypeVar("R")

Compilation = Pending[tuple[Code, Route]]
"""A compilation in the background."""


class Pipeline:
    """A program that is ready to be dispatched, and the bindings that its dispatches need."""

    __slots__ = ("__weakref__", "native", "program", "serial", "storage_bindings", "storage_slots",
                 "uniform_slot", "words_bytes")  # fmt: skip

    def __init__(self, program: Program, native: Any, serial: int) -> None:
        self.program = program
        self.native = native
        self.serial = serial
        """Its number in the runtime."""
        uniforms = [b.slot for b in program.bindings if b.access is BindingAccess.UNIFORM]
        self.uniform_slot = uniforms[0] if uniforms else None
        self.storage_bindings = [
            b for b in program.bindings if b.access is not BindingAccess.UNIFORM
        ]
        """Buffers, textures and samplers, in the order in which dispatches get them."""
        self.storage_slots = [b.slot for b in self.storage_bindings]
        self.words_bytes = words_bytes(program)


class Runtime(TextureStore):
    """One opened device. All methods may be called from any thread; one lock serialises them.

    Failures of the library below raise `DeviceError`, or `CompileError` from `pipeline`. A failure
    while recording drops all commands since the last submission. Once the device is lost, every
    call raises.

    Attributes:
        native: `wgpu.GPUDevice` or `slangpy.Device`.
        native_buffer: The class of buffers in the library below.
        zeroes_new_buffers: True if the library fills new buffers with zeros itself.
    """

    native_buffer: type
    zeroes_new_buffers = False

    def __init__(self, device: Any, capabilities: Capabilities, *, owns_device: bool) -> None:
        super().__init__(capabilities)
        self.native = device
        self.owns_device = owns_device
        self.pool = BufferPool()
        self.bindings: KeptBindings[Any] = KeptBindings()
        self.runs: KeptBindings[Any] = KeptBindings(KEPT_RUNS)
        """The native commands of runs."""
        self._run_serials = count(1)
        self.pipelines: KeptPipelines[Pipeline] = KeptPipelines()
        self._compilations: WeakValueDictionary[Program, Compilation] = WeakValueDictionary()
        """Compilations that were begun and that a caller still holds."""
        self._routes: list[Route] = []
        self._first_runs: list[str] = []
        """Programs whose pipelines were made since the last wait."""
        self._recorded_count = 0
        """Dispatches since the last submission."""
        self._next_poll = DISPATCHES_PER_SUBMISSION
        """The count at which `recorded` polls the device next."""
        self._plain_bytes = min(capabilities.binding_bytes_limit, capabilities.buffer_bytes_limit)
        """Buffers up to this size need no check against the limits of the device."""
        self.has_large_buffers = False
        """True once a buffer was larger than a binding."""

    # -- programs ----------------------------------------------------------------------------------

    @guarded
    def begin(self, program: Program) -> Compilation | None:
        """Starts to compile `program` in the background, without using the device.

        Returns:
            The compilation, which the caller holds until it asks for the pipeline; `None` if the
            pipeline exists already.
        """
        if self._cached(program) is not None:
            return None
        begun = self._compilations.get(program)
        if begun is None or begun.has_failed:
            begun = background().begin(partial(self.compiled, program), program.name)
            self._compilations[program] = begun
        return begun

    def pipeline(self, program: Program) -> Pipeline:
        """The pipeline of `program`, compiled (disk cache), vetted if needed, and cached."""
        pipeline = self._cached(program)
        if pipeline is None:
            with self.spending(Spending.COMPILE):
                begun = self._compilations.get(program)
                # Without the lock: compilation takes long and must be interruptible.
                with let_through():
                    code, route = self.compiled(program) if begun is None else begun.result()
                pipeline = self._added(program, code, route)
        return pipeline

    def routes(self) -> tuple[Route, ...]:
        """The routes of all programs so far, oldest first."""
        return tuple(self._routes)

    @guarded
    def _cached(self, program: Program) -> Pipeline | None:
        pipeline = self.pipelines.find(program)
        if pipeline is None:
            check_program(self.capabilities, program)
        return pipeline

    @guarded
    def _added(self, program: Program, code: Code, route: Route) -> Pipeline:
        pipeline = self.pipelines.find(program)  # another thread may have been faster
        if pipeline is None:
            pipeline = self.make_pipeline(program, code, self.pipelines.count)
            ended = self.pipelines.keep(program, pipeline)
            self.bindings.forget_pipelines(ended)
            if ended:
                self.runs.clear()
            self._routes.append(route)
            self._first_runs.append(program.name)
        return pipeline

    @abstractmethod
    def compiled(self, program: Program) -> tuple[Code, Route]:
        """The code that the child process compiled from a checked program, and its route.

        Does not use the device.
        """

    @abstractmethod
    def make_pipeline(self, program: Program, code: Code, serial: int) -> Pipeline:
        """Creates the pipeline of a checked program; `serial` is its number."""

    def warm_up(self, pipelines: Iterable[Pipeline]) -> None:
        """Lets drivers that compile at the first dispatch compile several programs side by side."""
        del pipelines

    @contextmanager
    def first_runs(self) -> Generator[None]:
        """Shows progress during a wait: drivers may compile at the first dispatch."""
        names, self._first_runs = self._first_runs, []
        with Work(names[0], "first run") if names else nullcontext():
            yield

    # -- buffers -----------------------------------------------------------------------------------

    @guarded
    def allocate(self, byte_count: int, *, zeroed: bool = True) -> DeviceBuffer:
        """Creates a buffer of `byte_count` bytes, zero-filled unless `zeroed` is false."""
        self.settle_pool()
        reused = self.pool.reuse(byte_count)
        buffer = reused or self._new(byte_count)
        if zeroed and (reused or not self.zeroes_new_buffers):
            self._zero(buffer, 0, max(SMALLEST_ALLOCATION, padded(byte_count)))
        return buffer

    def allocate_unset(self, byte_counts: Sequence[int]) -> list[DeviceBuffer]:
        """Creates buffers with arbitrary content. Called inside `together`."""
        self.settle_pool()
        reuse = self.pool.reuse
        return [reuse(byte_count) or self._new(byte_count) for byte_count in byte_counts]

    def settle_pool(self) -> None:
        """Makes dropped buffers idle, and forgets the bindings of freed ones."""
        if self.pool.dropped and (ended := self.pool.settle()):
            self.forget(ended)

    def forget(self, ended: Sequence[int]) -> None:
        """Drops the bindings of the buffers and textures with these serials."""
        self.bindings.forget(ended)
        self.runs.forget(ended)

    def _new(self, byte_count: int) -> DeviceBuffer:
        """A new buffer; raises SR0606 or SR0605 if the device has no room for it."""
        size = max(SMALLEST_ALLOCATION, padded(byte_count))
        if byte_count > self._plain_bytes:
            limit = self.capabilities.buffer_bytes_limit
            check_bytes(self.capabilities, byte_count, limit)
            self.has_large_buffers = True
            size = max(size, min(size + LARGE_SPACING, limit // WORD_BYTES * WORD_BYTES))
        native = self.allocated(lambda: self.new_native(size), byte_count)
        return self.pool.hold(byte_count, native, is_own=True)

    @guarded
    def wrap(self, native: Any) -> DeviceBuffer:
        """Wraps a buffer object of the runtime; the caller synchronises its content."""
        if not isinstance(native, self.native_buffer):
            class_name = type(native).__qualname__
            runtime = self.capabilities.runtime
            wanted = f"{runtime}.{self.native_buffer.__name__}"
            raise error("SR0619", runtime=runtime, wanted=wanted, found=class_name)
        size = int(native.size)
        self.has_large_buffers |= size > self.capabilities.binding_bytes_limit
        return self.pool.hold(size, native, is_own=False)

    @guarded
    def write(self, buffer: DeviceBuffer, offset: int, data: bytes | memoryview) -> None:
        """Copies `data` to byte `offset` after all recorded commands; both are multiples of 4."""
        content = memoryview(data).cast("B")
        check_range(buffer, offset, content.nbytes)
        if content.nbytes:
            with self.spending(Spending.UPLOAD):
                self.record_write(buffer, offset, content)

    @guarded
    def read(self, requests: Sequence[tuple[DeviceBuffer, int, int]]) -> list[memoryview]:
        """Submits, waits, and returns the bytes of each (buffer, offset, byte count).

        Offsets and counts are multiples of 4. Several requests cost one round trip.
        """
        for buffer, offset, byte_count in requests:
            check_range(buffer, offset, byte_count)
        sizes = [padded(byte_count) for _, _, byte_count in requests]
        total = sum(sizes)
        if total > STAGING_LIMIT_BYTES and len(requests) > 1:
            middle = len(requests) // 2
            return self.read(requests[:middle]) + self.read(requests[middle:])
        if total > STAGING_LIMIT_BYTES:
            return [self._read_in_parts(*requests[0])]
        if not total:
            self.wait()
            return [memoryview(b"") for _ in requests]
        parts = [(r[0].native, r[1], size) for r, size in zip(requests, sizes, strict=True) if size]
        content = self.read_back(parts, total)
        starts = accumulate(sizes, initial=0)
        return [content[start : start + r[2]] for start, r in zip(starts, requests, strict=False)]

    def _read_in_parts(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> memoryview:
        """The bytes of a long read-back, which uses several staging buffers of limited size."""
        content = memoryview(bytearray(byte_count))
        for start in range(0, byte_count, STAGING_LIMIT_BYTES):
            part = content[start : start + STAGING_LIMIT_BYTES]
            part[:] = self.read([(buffer, offset + start, part.nbytes)])[0]
        return content

    @guarded
    def zero(self, buffer: DeviceBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        """Records zero-filling; without `byte_count`, up to the end."""
        commands = self.new_commands()
        commands.zero(buffer, offset, byte_count)
        self.record_commands(commands, (buffer.serial,))

    def _zero(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
        commands = self.new_commands()
        commands.add_zero(buffer, offset, byte_count)
        self.record_commands(commands, (buffer.serial,))

    @guarded
    def copy(
        self,
        source: DeviceBuffer,
        source_offset: int,
        destination: DeviceBuffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        """Records a copy; the buffers differ, offsets and count are multiples of 4."""
        commands = self.new_commands()
        commands.copy(source, source_offset, destination, destination_offset, byte_count)
        self.record_commands(commands, (source.serial, destination.serial))

    @abstractmethod
    def new_native(self, size: int) -> Any:
        """Creates a storage buffer of `size` bytes in the library below."""

    @abstractmethod
    def record_write(self, buffer: DeviceBuffer, offset: int, content: memoryview) -> None: ...

    @abstractmethod
    def read_back(self, parts: Sequence[tuple[Any, int, int]], total: int) -> memoryview:
        """Submits, waits, and returns the bytes of `parts`, one after the other.

        Args:
            parts: Native buffer, offset in it, and byte count in whole words.
            total: The sum of the byte counts.
        """

    # -- commands ----------------------------------------------------------------------------------

    @guarded
    def together(self, record: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls `record`, whose commands are recorded together or not at all.

        `record` must not compile, because other threads would wait for it.
        """
        return record(*args, **kwargs)

    @guarded
    def dispatch(
        self,
        pipeline: Pipeline,
        bound: Mapping[int, Bound],
        words: bytes,
        groups: tuple[int, int, int],
        ranges: Ranges | None = None,
    ) -> None:
        """Checks and records one dispatch.

        Args:
            pipeline: A pipeline of this runtime.
            bound: The buffer, texture or sampler of each binding except the constant buffer, by
                slot.
            words: The constant buffer: `program.parameter_words` in order, 4 bytes each.
            groups: Workgroups along x, y, z, each at most `workgroup_count_limit`; a 0 records
                nothing.
            ranges: The parts of buffers that are bound; without it they are bound whole.

        Raises:
            DeviceError: SR0611, SR0614 or SR0615, if it lacks a resource or words, or is too large;
                SR0629 or SR0630, if a texture does not fit its binding.
        """
        self.check_dispatch(pipeline, bound, words, groups)
        if 0 not in groups:
            resources = [bound[slot] for slot in pipeline.storage_slots]
            self.record_dispatch(pipeline, resources, words, groups, ranges)

    def check_dispatch(
        self, pipeline: Pipeline, slots: Container[int], words: bytes, groups: tuple[int, int, int]
    ) -> None:
        """Raises SR0611, SR0614 or SR0615 as `dispatch` does; `slots` holds the bound slots."""
        program, capabilities = pipeline.program.name, self.capabilities
        limit = capabilities.workgroup_count_limit
        if max(groups) > limit:
            shown, adapter = " x ".join(map(str, groups)), capabilities.adapter
            raise error("SR0611", program=program, groups=shown, adapter=adapter, limit=limit)
        if len(words) != pipeline.words_bytes:
            raise error("SR0615", program=program, expected=pipeline.words_bytes, found=len(words))
        for slot in pipeline.storage_slots:
            if slot not in slots:
                raise error("SR0614", slot=slot, program=program)

    def record_dispatch(
        self,
        pipeline: Any,
        resources: Sequence[Bound],
        words: bytes | bytearray,
        groups: tuple[int, int, int],
        ranges: Ranges | None,
    ) -> None:
        """Records a checked dispatch; see `Recorder`. Called inside `together`."""
        commands = self.new_commands()
        commands.record_dispatch(pipeline, resources, words, groups, ranges)
        self.record_commands(commands, [resource.serial for resource in resources])
        if self.observer is not None:
            bytes_of = partial(_bound_bytes, ranges or {})
            bound_bytes = tuple(map(bytes_of, pipeline.storage_slots, resources))
            self.note(RecordedDispatch(pipeline.program, bytes(words), groups, bound_bytes))

    def new_run(
        self, commands: Sequence[Recordable], late: Sequence[tuple[bytearray, LateWord]]
    ) -> CommandRun:
        """A run of checked commands for `record_run`."""
        return CommandRun(commands, late, next(self._run_serials))

    def record_run(self, run: CommandRun, frame: Frame) -> None:
        """Records the commands of `run` over `frame`. Called inside `together`."""
        run.update_words(frame)
        if self.observer is not None:
            run.record_each(self, frame)
            return
        buffers = frame.buffers
        serials = [buffers[k].serial for k in run.numbers]
        key = (run.serial, *serials)
        commands = self.runs.find(key)
        if commands is None:
            commands = self.new_commands()
            run.record_each(commands, frame)
            self.runs.keep(key, commands)
        self.record_commands(commands, serials)

    @abstractmethod
    def new_commands(self) -> NativeCommands:
        """An empty list of commands for `record_commands`."""

    @abstractmethod
    def record_commands(self, commands: Any, serials: Sequence[int]) -> None:
        """Records commands that use the resources with these serials and no others."""

    def recorded(self, count: int) -> None:
        """Counts dispatches, and submits them once there are enough and the device is idle.

        A busy device gains nothing from a submission. Libraries may even wait in it for the
        previous submission and free the resources of that one.
        """
        self._recorded_count += count
        if self._recorded_count < self._next_poll:
            return
        if self._recorded_count >= WAITING_LIMIT or self.is_idle():
            self.submit()
        else:
            self._next_poll = self._recorded_count + DISPATCHES_PER_POLL

    @abstractmethod
    def is_idle(self) -> bool:
        """True if the device has finished all submissions; does not wait."""

    @guarded
    def submit(self) -> None:
        """Hands all recorded commands to the device as one submission."""
        self._recorded_count, self._next_poll = 0, DISPATCHES_PER_SUBMISSION
        self.submit_recorded()
        self.settle_pool()

    @abstractmethod
    def submit_recorded(self) -> None:
        """Submits the recorded commands, if there are any."""

    @abstractmethod
    def wait(self) -> None:
        """Submits and waits until the device has finished."""

    def close(self) -> None:
        """Drops recorded commands, and closes the device unless it was passed in; idempotent."""
        with turn(self.lock):
            if self.is_closed:
                return
            self.settle()
            self.is_closed, self.is_sound = True, False
            if not self.is_out_of_reach:
                self.drop_recorded()
                self.pipelines.clear()
                self.bindings.clear()
                self.runs.clear()
                self.samplers.clear()
                self.pool.give_up_idle()
                self.release()

    @abstractmethod
    def release(self) -> None:
        """Drops the remaining native objects, and closes the device if the runtime owns it."""


def _bound_bytes(ranges: Ranges, slot: int, bound: Bound) -> int:
    """The bytes of the bound part of a buffer; 0 for textures and samplers."""
    whole = bound.byte_count if isinstance(bound, DeviceBuffer) else 0
    return ranges[slot][1] if slot in ranges else whole
