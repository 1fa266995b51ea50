"""Buffers that nobody holds any more, kept to serve the next allocation of their size.

A training step makes the same arrays again and again, and new memory is dear: a driver maps and
clears it page by page, which for a few megabytes takes as long as a kernel over them. Commands run
in the order in which they were recorded, so a buffer may serve again before the device has
finished with it. Invariant: idle buffers hold at most `SPARE_BYTES` more than those in use; the
longest idle is freed first.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast
from weakref import ref

SPARE_BYTES = 48 << 20
"""How much more idle buffers may hold than those in use."""
BOOKKEEPING_BYTES = 4 << 10
"""Of memory that a native buffer costs besides its content."""
IDLE_COUNT = 256
"""How many of one size wait."""

Kept = TypeVar("Kept")


class IdleBuffers(Generic[Kept]):
    """Buffers by their exact size in bytes."""

    def __init__(self) -> None:
        self._by_size: defaultdict[int, deque[tuple[int, Kept]]] = defaultdict(deque)
        """With a number each, in the order in which they came."""
        self._size_by_number: OrderedDict[int, int] = OrderedDict()
        self._next_number = 0
        self.byte_count = 0

    def keep(self, size: int, buffer: Kept, room: int) -> list[Kept]:
        """Keeps a buffer; gives those that `room` bytes do not hold any more, itself perhaps."""
        self._by_size[size].append((self._next_number, buffer))
        self._size_by_number[self._next_number] = size
        self._next_number += 1
        self.byte_count += size + BOOKKEEPING_BYTES
        given_up = [self._oldest(size)] if len(self._by_size[size]) > IDLE_COUNT else []
        while self.byte_count > room:
            given_up.append(self._oldest(next(iter(self._size_by_number.values()))))
        return given_up

    def take(self, size: int) -> Kept | None:
        """The last buffer of exactly `size` bytes, with any content."""
        idle = self._by_size.get(size)
        return self._removed(size, *idle.pop()) if idle else None

    def clear(self) -> list[Kept]:
        """Gives all of them up."""
        found = [buffer for idle in self._by_size.values() for _, buffer in idle]
        self._by_size.clear()
        self._size_by_number.clear()
        self.byte_count = 0
        return found

    def _oldest(self, size: int) -> Kept:
        return self._removed(size, *self._by_size[size].popleft())

    def _removed(self, size: int, number: int, buffer: Kept) -> Kept:
        if not self._by_size[size]:
            del self._by_size[size]
        del self._size_by_number[number]
        self.byte_count -= size + BOOKKEEPING_BYTES
        return buffer


class NativeBuffer:
    """A storage buffer of a runtime, which hears of it when Python drops it."""

    __slots__ = ("__weakref__", "_pool", "byte_count", "native", "serial")

    def __init__(self, byte_count: int, native: Any, serial: int, pool: BufferPool) -> None:
        self.byte_count = byte_count
        self.native = native
        self.serial = serial
        self._pool = pool

    def shared(self) -> Any:
        self._pool.share(self.serial)
        return self.native


class _Owner(ref[NativeBuffer]):
    """Lives longer than the buffer that it refers to, and holds the native one until then."""

    __slots__ = ("native", "serial", "size")

    native: Any
    """`None` where somebody else may hold it, so that it serves nothing else."""
    serial: int
    size: int


class BufferPool:
    """The buffers of one runtime by their serials: those that Python holds, and idle ones."""

    def __init__(self) -> None:
        self._idle = IdleBuffers[tuple[int, Any]]()
        # They hold the native buffers, too: what the garbage collector finds together with its
        # wrapper it finalises, and wgpu-py's finaliser ends the native buffer.
        self._owner_by_serial: dict[int, _Owner] = {}
        self._dropped: deque[_Owner] = deque()
        # Called at any moment, also in the middle of the pool's own work. As a built-in function
        # it only leaves a note, and lets no interrupt through, which would be lost there.
        self._note = cast("Callable[[ref[NativeBuffer]], None]", self._dropped.append)
        self._used_bytes = 0
        self._next_serial = 0

    def hold(self, byte_count: int, native: Any, *, is_own: bool) -> NativeBuffer:
        """A new buffer for Python to hold; where it `is_own`, it will serve again."""
        self._next_serial += 1
        return self._held(byte_count, native, self._next_serial, is_own=is_own)

    def reuse(self, byte_count: int, size: int) -> NativeBuffer | None:
        """An idle buffer of exactly `size` bytes, for Python to hold; any content."""
        found = self._idle.take(size)
        return None if found is None else self._held(byte_count, found[1], found[0], is_own=True)

    def share(self, serial: int) -> None:
        """Notes that somebody else may hold a native buffer."""
        owner = self._owner_by_serial[serial]
        if owner.native is not None:
            self._used_bytes -= owner.size
            owner.native = None

    def settle(self) -> list[int]:
        """Makes dropped buffers idle as long as there is room; the serials of those that end."""
        ended: list[int] = []
        while self._dropped:
            owner = self._dropped.popleft()
            del self._owner_by_serial[owner.serial]
            if owner.native is None:
                ended.append(owner.serial)
                continue
            self._used_bytes -= owner.size
            room = self._used_bytes + SPARE_BYTES
            idle = (owner.serial, owner.native)
            ended += [serial for serial, _ in self._idle.keep(owner.size, idle, room)]
        return ended

    def give_up_idle(self) -> list[int]:
        """Frees the idle buffers; their serials."""
        return self.settle() + [serial for serial, _ in self._idle.clear()]

    def _held(self, byte_count: int, native: Any, serial: int, *, is_own: bool) -> NativeBuffer:
        made = NativeBuffer(byte_count, native, serial, self)
        owner = _Owner(made, self._note)
        owner.native = native if is_own else None
        owner.serial, owner.size = serial, int(native.size)
        self._owner_by_serial[serial] = owner
        self._used_bytes += owner.size if is_own else 0
        return made
