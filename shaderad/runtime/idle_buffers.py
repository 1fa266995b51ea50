"""A pool of released buffers for later allocations of the same size.

A training step allocates the same arrays repeatedly, and new memory is expensive: a driver maps and
clears it page by page, which for a few megabytes takes as long as a kernel on them. Commands run
in the order in which they were recorded, so a buffer can be reused before the device has finished
with it.

Invariants: idle buffers hold at most `IdleBuffers.spare_bytes` more than those in use; the buffer
that has been idle longest is freed first. `spare_bytes` rises by a buffer whose size is wanted
again after it was freed, so a repeated step soon makes no new buffers, whatever its scratch. A
buffer that nobody has wanted for `IDLE_SECONDS` is freed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, cast
from weakref import ref

SPARE_BYTES = 48 << 20
"""The least memory that idle buffers may hold in excess of those in use."""
BOOKKEEPING_BYTES = 4 << 10
"""Memory of a native buffer besides its content."""
IDLE_SECONDS = 10.0
"""A step that takes this long does not notice the time that its new buffers cost."""
FREED_COUNT = 256
"""The number of freed buffers whose sizes are remembered."""
SHARE_PER_FREED = 1 / 64
"""The part of a freed buffer by which `spare_bytes` falls. Where few of the freed sizes are wanted
again, `spare_bytes` therefore does not rise."""


class IdleBuffers:
    """The owners of idle buffers, by their exact size in bytes and by the time since they are idle.

    Attributes:
        byte_count: The memory that they hold.
        spare_bytes: The memory that they may hold in excess of the buffers in use.
        next_look: The earliest time at which one of them has been idle for too long.
    """

    def __init__(self) -> None:
        self._idle: dict[int, tuple[float, _Owner]] = {}
        """By serial, the longest idle first, each with the time at which it became idle."""
        self._serials_by_size: dict[int, list[int]] = {}
        """Heaps. One may be empty, because the next buffer of that size will be idle soon."""
        self._freed_sizes: deque[int] = deque(maxlen=FREED_COUNT)
        """Sizes of buffers that were freed because `spare_bytes` was too small."""
        self.byte_count = 0
        self.spare_bytes = SPARE_BYTES
        self.next_look = 0.0

    def keep(self, owner: _Owner, now: float) -> None:
        """Adds a buffer that is idle since `now`."""
        size, serial = owner.byte_count, owner.serial
        serials = self._serials_by_size.get(size)
        if serials is None:
            serials = self._serials_by_size[size] = []
        heappush(serials, serial)
        self._idle[serial] = now, owner
        self.byte_count += size + BOOKKEEPING_BYTES

    def take(self, size: int) -> _Owner | None:
        """Removes the buffer of exactly `size` bytes with the lowest serial.

        Repeated steps thereby soon use the same buffers, and the same bindings of them.
        """
        serials = self._serials_by_size.get(size)
        if not serials:
            if size in self._freed_sizes:
                self._freed_sizes.remove(size)
                self.spare_bytes += size + BOOKKEEPING_BYTES
            return None
        self.byte_count -= size + BOOKKEEPING_BYTES
        return self._idle.pop(heappop(serials))[1]

    def excess(self, used_bytes: int, now: float) -> list[_Owner]:
        """Removes and returns the buffers that are to be freed."""
        freed: list[_Owner] = []
        while self.byte_count > used_bytes + self.spare_bytes:
            owner = self._longest_idle()
            freed.append(owner)
            self._freed_sizes.append(owner.byte_count)
            self._lower(int(owner.byte_count * SHARE_PER_FREED))
        self.next_look = now + IDLE_SECONDS
        while self._idle:
            since, _ = next(iter(self._idle.values()))
            if since + IDLE_SECONDS > now:
                self.next_look = since + IDLE_SECONDS
                break
            owner = self._longest_idle()
            freed.append(owner)
            self._lower(owner.byte_count + BOOKKEEPING_BYTES)
        return freed

    def clear(self) -> list[_Owner]:
        """Removes and returns all buffers."""
        idle = [owner for _, owner in self._idle.values()]
        self._idle.clear()
        self._serials_by_size.clear()
        self.byte_count, self.spare_bytes = 0, SPARE_BYTES
        return idle

    def _longest_idle(self) -> _Owner:
        """Removes the buffer that has been idle longest."""
        serial = next(iter(self._idle))
        _, owner = self._idle.pop(serial)
        size = owner.byte_count
        serials = self._serials_by_size[size]
        serials.remove(serial)
        heapify(serials)
        if not serials:
            del self._serials_by_size[size]
        self.byte_count -= size + BOOKKEEPING_BYTES
        return owner

    def _lower(self, byte_count: int) -> None:
        self.spare_bytes = max(SPARE_BYTES, self.spare_bytes - byte_count)


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
        self.idle = IdleBuffers()
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
        idle = self.idle.take(byte_count)
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
        idle, now = self.idle, time.monotonic()
        foreign: list[_Owner] = []
        while self.dropped:
            owner = self.dropped.popleft()
            if owner.native is None:
                foreign.append(owner)
            else:
                self._used_bytes -= owner.byte_count
                idle.keep(owner, now)
        ended = self._freed(foreign) if foreign else []
        if idle.byte_count > self._used_bytes + idle.spare_bytes or now >= idle.next_look:
            ended += self._freed(idle.excess(self._used_bytes, now))
        return ended

    def give_up_idle(self) -> list[int]:
        """Frees the idle buffers and returns their serials."""
        return self.settle() + self._freed(self.idle.clear())

    def _own(self, resource: Any, serial: int, native: Any, byte_count: int) -> None:
        owner = _Owner(resource, self._note)
        owner.native, owner.serial, owner.byte_count = native, serial, byte_count
        self._owner_by_serial[serial] = owner
        if native is not None:
            self._used_bytes += byte_count

    def _freed(self, owners: Iterable[_Owner]) -> list[int]:
        """Makes `owners` drop their native buffers, and returns their serials."""
        return [self._owner_by_serial.pop(owner.serial).serial for owner in owners]
