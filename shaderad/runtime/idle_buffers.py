"""A pool of released buffers for later allocations of the same size.

A training step allocates the same arrays repeatedly, and new memory is expensive: a driver maps and
clears it page by page, which for a few megabytes takes as long as a kernel on them. Commands run
in the order in which they were recorded, so a buffer can be reused before the device has finished
with it. Invariant: idle buffers hold at most `SPARE_BYTES` more than those in use; the buffer that
has been idle longest is freed first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, cast
from weakref import ref

SPARE_BYTES = 48 << 20
"""Memory that idle buffers may hold in excess of those in use."""
BOOKKEEPING_BYTES = 4 << 10
"""Memory of a native buffer besides its content."""
IDLE_COUNT = 256
"""The maximum number of idle buffers of one size."""

BufferT = TypeVar("BufferT")


class IdleBuffers(Generic[BufferT]):
    """Idle buffers by their exact size in bytes, the longest idle first."""

    def __init__(self) -> None:
        self._by_size: dict[int, deque[tuple[int, BufferT]]] = {}
        """Each with the time at which it became idle. A deque may be empty; it is kept because the
        next buffer of that size will be idle soon."""
        self._time = 0
        self.byte_count = 0

    def keep(self, size: int, buffer: BufferT, room: int) -> Sequence[BufferT]:
        """Adds a buffer; evicts the oldest ones that exceed `room` bytes, and returns them."""
        self._time += 1
        same_size = self._by_size.get(size)
        if same_size is None:
            same_size = self._by_size[size] = deque()
        same_size.append((self._time, buffer))
        self.byte_count += size + BOOKKEEPING_BYTES
        if self.byte_count <= room and len(same_size) <= IDLE_COUNT:
            return ()
        given_up = [self._oldest_of(size)] if len(same_size) > IDLE_COUNT else []
        while self.byte_count > room:
            self._by_size = {size: idle for size, idle in self._by_size.items() if idle}
            given_up.append(self._oldest_of(min(self._by_size, key=self._idle_since)))
        return given_up

    def take(self, size: int) -> BufferT | None:
        """Removes the newest buffer of exactly `size` bytes; its content is arbitrary."""
        same_size = self._by_size.get(size)
        if not same_size:
            return None
        self.byte_count -= size + BOOKKEEPING_BYTES
        return same_size.pop()[1]

    def clear(self) -> list[BufferT]:
        """Removes and returns all buffers."""
        idle = [buffer for same_size in self._by_size.values() for _, buffer in same_size]
        self._by_size.clear()
        self.byte_count = 0
        return idle

    def _idle_since(self, size: int) -> int:
        return self._by_size[size][0][0]

    def _oldest_of(self, size: int) -> BufferT:
        self.byte_count -= size + BOOKKEEPING_BYTES
        return self._by_size[size].popleft()[1]


class DeviceBuffer:
    """Device memory; the pool of its runtime is notified when Python drops it.

    Attributes:
        byte_count: The size that was asked for.
        native: The buffer object of the runtime, which may be larger.
        serial: The number of `native` in its runtime.
    """

    __slots__ = ("__weakref__", "_pool", "byte_count", "native", "serial")

    def __init__(self, byte_count: int, native: Any, serial: int, pool: BufferPool) -> None:
        self.byte_count = byte_count
        self.native = native
        self.serial = serial
        self._pool = pool

    def shared(self) -> Any:
        """`native`, which others may hold from now on, so its memory is not reused."""
        self._pool.share(self.serial)
        return self.native


class _Owner(ref[Any]):
    """A weak reference to a `DeviceBuffer`, or a texture, that keeps its native buffer alive."""

    __slots__ = ("byte_count", "native", "serial")

    native: Any
    """`None` for a texture, or if others may hold the native buffer: it is never reused."""
    serial: int
    byte_count: int


class BufferPool:
    """All buffers of one runtime: those that Python holds, and idle ones."""

    def __init__(self) -> None:
        self._idle = IdleBuffers[_Owner]()
        # Owners hold the native buffers: a native buffer that the garbage collector frees together
        # with its wrapper is finalised, and the finaliser of wgpu-py destroys it.
        self._owner_by_serial: dict[int, _Owner] = {}
        self.dropped: deque[_Owner] = deque()
        """Owners of buffers that Python dropped since the last `settle`."""
        # May be called at any moment, even while the pool is at work. A built-in function only
        # appends, and admits no interrupt, which would be lost in a callback.
        self._note = cast("Callable[[ref[DeviceBuffer]], None]", self.dropped.append)
        self._used_bytes = 0
        self._next_serial = 0

    def hold(self, byte_count: int, native: Any, *, is_own: bool) -> DeviceBuffer:
        """Wraps a new native buffer for Python; it is reused later if `is_own`."""
        buffer = DeviceBuffer(byte_count, native, self.next_serial(), self)
        self._own(buffer, buffer.serial, native if is_own else None, byte_count)
        return buffer

    def reuse(self, byte_count: int) -> DeviceBuffer | None:
        """Wraps an idle buffer of exactly `byte_count` bytes; its content is arbitrary."""
        idle = self._idle.take(byte_count)
        if idle is None:
            return None
        buffer = DeviceBuffer(byte_count, idle.native, idle.serial, self)
        self._own(buffer, idle.serial, idle.native, byte_count)
        return buffer

    def share(self, serial: int) -> None:
        """Records that others may hold the native buffer."""
        owner = self._owner_by_serial[serial]
        if owner.native is not None:
            self._used_bytes -= owner.byte_count
            owner.native = None

    def next_serial(self) -> int:
        """A number that no buffer, texture or sampler of the runtime has."""
        self._next_serial += 1
        return self._next_serial

    def watch(self, texture: Any) -> None:
        """Makes `settle` return the `serial` of a texture after Python has dropped it."""
        self._own(texture, texture.serial, None, 0)

    def settle(self) -> list[int]:
        """Makes dropped buffers idle while there is room; returns the serials of freed ones."""
        ended: list[int] = []
        while self.dropped:
            owner = self.dropped.popleft()
            if owner.native is None:
                ended += self._freed([owner])
                continue
            byte_count = owner.byte_count
            self._used_bytes -= byte_count
            given_up = self._idle.keep(byte_count, owner, self._used_bytes + SPARE_BYTES)
            if given_up:
                ended += self._freed(given_up)
        return ended

    def give_up_idle(self) -> list[int]:
        """Frees the idle buffers and returns their serials."""
        return self.settle() + self._freed(self._idle.clear())

    def _own(self, resource: Any, serial: int, native: Any, byte_count: int) -> None:
        owner = _Owner(resource, self._note)
        owner.native, owner.serial, owner.byte_count = native, serial, byte_count
        self._owner_by_serial[serial] = owner
        if native is not None:
            self._used_bytes += byte_count

    def _freed(self, owners: Iterable[_Owner]) -> list[int]:
        """Makes `owners` drop their native buffers, and returns their serials."""
        return [self._owner_by_serial.pop(owner.serial).serial for owner in owners]
