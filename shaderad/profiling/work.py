"""The memory that a dispatch accesses, and its operations, by its program and constant buffer."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from shaderad.compiler.artifact import BindingAccess
from shaderad.ir.types import byte_count
from shaderad.lower.bindings import Lowered, Resource, Role, Word, WordKind
from shaderad.profiling.operations import OperationCounter, UncountableError
from shaderad.runtime.clocks.observing import RecordedDispatch

_NO_ARRAYS = (Role.REPORT, Role.PRINT, Role.SAMPLER, Role.SAMPLED)


def without_number(dispatch: RecordedDispatch, lowered: Lowered) -> RecordedDispatch:
    """A dispatch without its number on the device, so that repeated dispatches are equal."""
    words = bytearray(dispatch.words)
    for k, word in enumerate(lowered.words):
        if word.kind is WordKind.LAUNCH:
            words[4 * k : 4 * k + 4] = bytes(4)
    return replace(dispatch, words=bytes(words))


class DispatchWork:
    """The work of one dispatch.

    Args:
        dispatch: As it was recorded.
        lowered: Its program with what hosts know of it; `None` if it comes from a build.
    """

    def __init__(self, dispatch: RecordedDispatch, lowered: Lowered | None) -> None:
        self._dispatch = dispatch
        self._lowered = lowered

    @cached_property
    def _numbers(self) -> Mapping[tuple[WordKind, str, int], int]:
        """The words of the constant buffer, as whole numbers."""
        words: Sequence[Word] = () if self._lowered is None else self._lowered.words
        numbers = struct.unpack(f"<{len(self._dispatch.words) // 4}i", self._dispatch.words)
        pairs = zip(words, numbers, strict=False)
        return {(word.kind, word.name, word.index): number for word, number in pairs}

    # -- memory --------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """The bytes of the arrays that it binds, each once."""
        resources = () if self._lowered is None else self._lowered.resources
        resource_by_slot = {resource.slot: resource for resource in resources}
        bindings = self._dispatch.program.bindings
        slots = [b.slot for b in bindings if b.access is not BindingAccess.UNIFORM]
        pairs = zip(map(resource_by_slot.get, slots), self._dispatch.bound_bytes, strict=True)
        return sum(self._bytes_of(resource, bound) for resource, bound in pairs)

    def _bytes_of(self, resource: Resource | None, bound: int) -> int:
        """The bytes of the arrays in a binding, which may be longer: buffers serve again.

        A binding without a resource is an array of a loaded build, or of the library.
        """
        if resource is None:
            return bound
        if resource.role in _NO_ARRAYS:
            return 0
        counts = [*map(self._count_of, resource.members)]
        if None in counts or len(resource.types) != len(counts):
            return bound
        pairs = zip(counts, resource.types, strict=True)
        return min(bound, sum(byte_count(t) * count for count, t in pairs if count is not None))

    def _count_of(self, name: str) -> int | None:
        """The elements of an array; `None` if it is not known."""
        count = self._numbers.get((WordKind.COUNT, name, 0))
        if count is not None:
            return count
        shape = [
            number
            for (kind, array, _), number in self._numbers.items()
            if kind is WordKind.SHAPE and array == name
        ]
        return math.prod(shape) if shape else None

    # -- operations ----------------------------------------------------------------------------

    @property
    def operations(self) -> float | None:
        """The operations of floats at all indices; `None` if they depend on data, or are unread."""
        if self._lowered is None or self._lowered.body is None:
            return None
        first, end = self._span
        numbers = {**self._uniforms, **self._middle(self._lowered.index_names)}
        try:
            own = OperationCounter(self._lowered.body, self._length).count(numbers)
        except UncountableError:
            return None
        return own * (end - first)

    @property
    def _uniforms(self) -> Mapping[str, int]:
        names = {n for (kind, n, _) in self._numbers if kind is WordKind.UNIFORM}
        single = {n for n in names if (WordKind.UNIFORM, n, 1) not in self._numbers}
        return {n: self._numbers[WordKind.UNIFORM, n, 0] for n in single}

    def _length(self, array: str, axis: int) -> int | None:
        count = self._numbers.get((WordKind.COUNT, array, 0))
        return self._numbers.get((WordKind.SHAPE, array, axis), count)

    @property
    def _span(self) -> tuple[int, int]:
        """The numbers of the first index for which the body runs, and after the last one."""
        threads = math.prod(self._dispatch.groups) * math.prod(self._dispatch.program.workgroup)
        first = self._numbers.get((WordKind.FIRST_ITEM, "", 0), 0)
        return first, self._numbers.get((WordKind.THREAD_COUNT, "", 0), threads)

    def _middle(self, names: Sequence[str]) -> Mapping[str, int]:
        """The index that stands for all: in the middle of each axis, and so inside of borders."""
        inner = [self._numbers.get((WordKind.DIM, "", axis), 1) for axis in range(1, len(names))]
        first, end = self._span
        places = [(first + end - 1) // 2 // math.prod(inner), *[(n - 1) // 2 for n in inner]]
        return dict(zip(names, places, strict=False))
