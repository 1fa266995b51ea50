"""Commands that are recorded again and again over frames of buffers.

A runtime translates the commands of a run into calls of the library below once for each combination
of buffers, and repeats the calls. Only the words of dispatches may change between two recordings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from shaderad.diagnostics import error
from shaderad.runtime.capabilities import WORD_BYTES, padded
from shaderad.runtime.idle_buffers import DeviceBuffer
from shaderad.runtime.texture_store import Bound

LONGEST_RUN = 128
"""Commands; a submission may precede each run."""
KEPT_RUNS = 256
"""The most combinations of a run and its buffers that a runtime keeps."""

Ranges = Mapping[int, tuple[int, int]]
"""The first byte and byte count of the bound part of a buffer, by slot."""

BINDING_LIMIT = 4096
"""The most bindings that are kept. One of slangpy's takes 8 KB."""

BoundT = TypeVar("BoundT")

Key = tuple[int, ...]
"""The serial of a pipeline or run, and the serials of its buffers."""


@dataclass(slots=True)
class Frame:
    """The buffers that commands use, and the values that differ between recordings."""

    buffers: list[DeviceBuffer]
    """The inputs, then the buffers that a run makes, then those of the device."""
    starts: Sequence[int]
    """The bytes before each input in its buffer."""
    is_shifted: bool
    """True if an input does not start at its buffer's first byte."""
    uniforms: Mapping[str, bytes]
    """The numbers that the host passes, as words."""

    def start(self, number: int) -> int:
        """The bytes before the content of a buffer."""
        return self.starts[number] if 0 <= number < len(self.starts) else 0


LateWord = tuple[int, Callable[[Frame], bytes]]
"""Words that are computed at each recording: their first byte in the constant buffer, and their
content."""


class Recorder(Protocol):
    """Records commands: a runtime at once, `NativeCommands` for later."""

    def record_dispatch(
        self,
        pipeline: Any,
        resources: Sequence[Bound],
        words: bytes | bytearray,
        groups: tuple[int, int, int],
        ranges: Ranges | None,
    ) -> None:
        """Records a checked dispatch of at least one group.

        Args:
            pipeline: A pipeline of the runtime.
            resources: In the order of ``pipeline.storage_slots``.
            words: The constant buffer.
            groups: Workgroups along x, y, z.
            ranges: The parts of buffers that are bound; without it they are bound whole.
        """

    def copy(
        self,
        source: DeviceBuffer,
        source_offset: int,
        destination: DeviceBuffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        """Records a copy; the buffers differ, offsets and count are multiples of 4."""

    def zero(self, buffer: DeviceBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        """Records zero-filling; without `byte_count`, up to the end."""


class Recordable(Protocol):
    """A command over the buffers of a frame."""

    @property
    def numbers(self) -> Sequence[int]:
        """The positions of its buffers in the frame."""
        ...

    def record(self, recorder: Recorder, frame: Frame) -> None: ...


class CommandRun:
    """Commands that follow each other, recorded as one."""

    __slots__ = ("commands", "late", "numbers", "serial")

    def __init__(
        self,
        commands: Sequence[Recordable],
        late: Sequence[tuple[bytearray, LateWord]],
        serial: int,
    ) -> None:
        self.commands = commands
        self.late = late
        """The words of a dispatch, and a part of them that each recording computes."""
        self.serial = serial
        """Its number in the runtime."""
        self.numbers = sorted({k for command in commands for k in command.numbers})

    def update_words(self, frame: Frame) -> None:
        """Computes the late words of the next recording."""
        for words, (start, content) in self.late:
            value = content(frame)
            words[start : start + len(value)] = value

    def record(self, recorder: Any, frame: Frame) -> None:
        recorder.record_run(self, frame)

    def record_each(self, recorder: Recorder, frame: Frame) -> None:
        """Records the commands one by one."""
        for command in self.commands:
            command.record(recorder, frame)


class NativeCommands(ABC):
    """Commands as calls of the library below, which may be repeated.

    They read the words of a dispatch, a `bytearray`, when they are repeated.
    """

    @abstractmethod
    def record_dispatch(
        self,
        pipeline: Any,
        resources: Sequence[Bound],
        words: bytes | bytearray,
        groups: tuple[int, int, int],
        ranges: Ranges | None,
    ) -> None: ...

    def copy(
        self,
        source: DeviceBuffer,
        source_offset: int,
        destination: DeviceBuffer,
        destination_offset: int,
        byte_count: int,
    ) -> None:
        check_range(source, source_offset, byte_count)
        check_range(destination, destination_offset, byte_count)
        if byte_count:
            places = (source, source_offset), (destination, destination_offset)
            self.add_copy(*places, padded(byte_count))

    def zero(self, buffer: DeviceBuffer, offset: int = 0, byte_count: int | None = None) -> None:
        size = buffer.byte_count - offset if byte_count is None else byte_count
        check_range(buffer, offset, size)
        if size:
            self.add_zero(buffer, offset, padded(size))

    @abstractmethod
    def add_copy(
        self,
        source: tuple[DeviceBuffer, int],
        destination: tuple[DeviceBuffer, int],
        byte_count: int,
    ) -> None:
        """Adds a checked copy between two places, each a buffer and an offset in bytes."""

    @abstractmethod
    def add_zero(self, buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
        """Adds checked zero-filling."""


class KeptBindings(Generic[BoundT]):
    """Bind groups, or the equivalent of the library below, the oldest first.

    Creating one costs more than the rest of a dispatch. Each holds the memory of its buffers, so it
    is dropped when one of them is freed. Idle buffers keep their bindings.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._bound_by_key: dict[Key, BoundT] = {}
        self._keys_by_buffer: dict[int, set[Key]] = {}
        self.find: Callable[[Key], BoundT | None] = self._bound_by_key.get
        """Looks up the binding of a key; a bound method, because every dispatch calls it."""

    def keep(self, key: Key, bound: BoundT) -> None:
        """Adds a binding; drops the oldest one if there are too many."""
        if len(self._bound_by_key) >= (self._limit or BINDING_LIMIT):
            self._drop(next(iter(self._bound_by_key)))
        self._bound_by_key[key] = bound
        for serial in key[1:]:
            self._keys_by_buffer.setdefault(serial, set()).add(key)

    def count_of(self, serial: int) -> int:
        """The number of bindings of a buffer, texture or sampler."""
        return len(self._keys_by_buffer.get(serial, ()))

    def forget(self, ended: Iterable[int]) -> None:
        """Drops the bindings of the buffers with these serials."""
        for serial in ended:
            for key in self._keys_by_buffer.pop(serial, ()):
                self._drop(key)

    def forget_pipelines(self, ended: Collection[int]) -> None:
        """Drops the bindings of the pipelines with these serials."""
        if ended:
            for key in [key for key in self._bound_by_key if key[0] in ended]:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        self._bound_by_key.pop(key, None)
        for serial in key[1:]:
            self._keys_by_buffer.get(serial, set()).discard(key)

    def clear(self) -> None:
        self._bound_by_key.clear()
        self._keys_by_buffer.clear()


def check_range(buffer: DeviceBuffer, offset: int, byte_count: int) -> None:
    """Raises SR0618 unless the range is inside the buffer and aligned to words or to its end."""
    end, size = offset + byte_count, buffer.byte_count
    is_aligned = offset % WORD_BYTES == 0 and (end % WORD_BYTES == 0 or end == size)
    if not (0 <= offset <= end <= size and is_aligned):
        raise error("SR0618", start=offset, end=end, byte_count=size)
