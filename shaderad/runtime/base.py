"""The base of runtimes: pipelines, buffers and closing, without wgpu or slangpy.

Invariants: each program has one pipeline, made at its first use, and one reported route; compilers
run in the child process, outside of the lock of the runtime; a command whose range is outside of
its buffer, or off its words, is refused before it is recorded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import accumulate
from typing import Any, Generic, TypeVar

from shaderad.compiler.artifact import Code, Program
from shaderad.diagnostics import error
from shaderad.diagnostics.progress import Work
from shaderad.runtime import checks
from shaderad.runtime.guard import Guarded, guarded
from shaderad.runtime.idle_buffers import BufferPool, DeviceBuffer
from shaderad.runtime.process import let_through, turn
from shaderad.runtime.protocol import Capabilities, Route

SMALLEST_ALLOCATION = 16
"""In bytes. Binding a buffer of size 0 ends the process in wgpu-native."""

STAGING_KEPT_BYTES = 1 << 20
"""Read-backs up to this size share staging buffers; larger ones make their own."""

STAGING_LIMIT_BYTES = 256 << 20
"""Larger read-backs are split; it is WebGPU's default for the maximum buffer size."""

P = TypeVar("P")


class RuntimeBase(Guarded, Generic[P]):
    """The parts of the `Runtime` protocol that all runtimes share.

    Attributes:
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
        self._pipelines: dict[Program, P] = {}
        self._routes: list[Route] = []
        self._first_runs: list[str] = []
        """Programs whose pipelines were made since the last wait."""

    # -- pipelines ---------------------------------------------------------------------------------

    def pipeline(self, program: Program) -> P:
        pipeline = self._cached(program)
        if pipeline is None:
            # Without the lock: compilation takes long and must be interruptible.
            with let_through():
                code, route = self.compiled(program)
            pipeline = self._added(program, code, route)
        return pipeline

    def prepare(self, program: Program) -> None:
        checks.check_program(self.capabilities, program)
        self.compiled(program)

    @guarded
    def _cached(self, program: Program) -> P | None:
        if program not in self._pipelines:
            checks.check_program(self.capabilities, program)
        return self._pipelines.get(program)

    @guarded
    def _added(self, program: Program, code: Code, route: Route) -> P:
        if program not in self._pipelines:  # else another thread was faster
            self._pipelines[program] = self.make_pipeline(program, code)
            self._routes.append(route)
            self._first_runs.append(program.name)
        return self._pipelines[program]

    @abstractmethod
    def compiled(self, program: Program) -> tuple[Code, Route]:
        """The code that the child process made of a checked program, and its route.

        Does not use the device.
        """

    @abstractmethod
    def make_pipeline(self, program: Program, code: Code) -> P:
        """Creates the pipeline of a checked program."""

    @contextmanager
    def first_runs(self) -> Generator[None]:
        """Shows progress during a wait: drivers may compile at the first dispatch."""
        names, self._first_runs = self._first_runs, []
        with Work(names[0], "first run") if names else nullcontext():
            yield

    def routes(self) -> tuple[Route, ...]:
        return tuple(self._routes)

    # -- buffers -----------------------------------------------------------------------------------

    @guarded
    def allocate(self, byte_count: int, *, zeroed: bool = True) -> DeviceBuffer:
        checks.check_bytes(self.capabilities, byte_count, self.capabilities.binding_bytes_limit)
        size = max(SMALLEST_ALLOCATION, checks.padded(byte_count))
        self.settle_pool()
        buffer = self.pool.reuse(byte_count, size)
        is_zero = buffer is None and self.zeroes_new_buffers
        if buffer is None:
            native = self.allocated(lambda: self.new_native(size), byte_count)
            buffer = self.pool.hold(byte_count, native, is_own=True)
        if zeroed and not is_zero:
            self.record_zero(buffer, 0, size)
        return buffer

    @guarded
    def wrap(self, native: Any) -> DeviceBuffer:
        if not isinstance(native, self.native_buffer):
            found = type(native).__qualname__
            raise error("SR0619", runtime=self.capabilities.runtime, found=found)
        return self.pool.hold(int(native.size), native, is_own=False)

    @guarded
    def zero(self, buffer: DeviceBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        count = buffer.byte_count - offset if byte_count is None else byte_count
        checks.check_range(buffer.byte_count, offset, count)
        if count:
            self.record_zero(buffer, offset, checks.padded(count))

    @guarded
    def read(self, requests: Sequence[tuple[DeviceBuffer, int, int]]) -> list[memoryview]:
        for buffer, offset, byte_count in requests:
            checks.check_range(buffer.byte_count, offset, byte_count)
        sizes = [checks.padded(byte_count) for _, _, byte_count in requests]
        total = sum(sizes)
        if total > STAGING_LIMIT_BYTES and len(requests) > 1:
            middle = len(requests) // 2
            return self.read(requests[:middle]) + self.read(requests[middle:])
        if not total:
            self.wait()
            return [memoryview(b"") for _ in requests]
        parts = [(r[0].native, r[1], size) for r, size in zip(requests, sizes, strict=True) if size]
        content = self.read_back(parts, total)
        ends = accumulate(sizes)
        starts = [end - size for end, size in zip(ends, sizes, strict=True)]
        return [content[at : at + r[2]] for at, r in zip(starts, requests, strict=True)]

    @abstractmethod
    def settle_pool(self) -> None:
        """Makes dropped buffers idle, and forgets what is kept for freed ones."""

    @abstractmethod
    def new_native(self, size: int) -> Any:
        """Creates a storage buffer of `size` bytes in the library below."""

    @abstractmethod
    def record_zero(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
        """Records zero-filling of whole words."""

    @abstractmethod
    def read_back(self, parts: Sequence[tuple[Any, int, int]], total: int) -> memoryview:
        """Submits, waits, and returns the bytes of `parts`, one after the other.

        Args:
            parts: Native buffer, offset in it, and byte count.
            total: The sum of the byte counts.
        """

    @abstractmethod
    def wait(self) -> None:
        """Submits and waits until the device has finished."""

    # -- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        with turn(self.lock):
            if self.is_closed:
                return
            self.settle()
            self.is_closed, self.is_sound = True, False
            if not self.is_out_of_reach:
                self.drop_recorded()
                self._pipelines.clear()
                self.pool.give_up_idle()
                self.release()

    @abstractmethod
    def release(self) -> None:
        """Drops the remaining native objects, and closes the device if the runtime owns it."""
