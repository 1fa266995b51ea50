"""The targets of the pointers of a launch -> one array for each path of pointers, a *pool*.

What the pointers of one path lead to lies in their pool, array after array, and a pointer is its
first element there with a count. A pool of one array is that array, and slices that follow each
other in one array are a pool as they are; anything else is copied together at each launch.
Invariant: the pointer in element k of one pool is pointer k of the next, so two pointers have
regions, and gradients, of their own even where they lead to the same array.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from shaderad.arrays.arguments import at_path, bind_array
from shaderad.arrays.arrays import Array, copied, uploaded, zeros
from shaderad.arrays.tape import Values, trace_of
from shaderad.arrays.trees import HostPointer, pointer_struct, structs_of
from shaderad.diagnostics import error
from shaderad.ir import sizes, types
from shaderad.ir.pointers import holds_pointers, without_targets
from shaderad.runtime import buffers

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.device.stages import KernelFacts
    from shaderad.ir.nodes import Buffer, Kernel
    from shaderad.ir.sizes import Size

_POINTER = struct.Struct("<II")

A = TypeVar("A", bound=Array)
"""Arrays of a launch, or of a trace."""


@dataclass(eq=False)
class Pool(Generic[A]):
    """The elements behind the pointers of one path."""

    element: types.Type
    pointers: list[HostPointer]
    """One for each element of the pool, or the parameter, that holds the pointers."""
    structs: list[Any]
    """The elements, where they hold pointers themselves."""
    arrays: list[A]
    """The target of each pointer, where the elements are plain values."""
    regions: list[tuple[Size, Size]]
    """First element and count of each pointer."""


class Pools(ABC, Generic[A]):
    """The pools of one call of a kernel, and its arrays of structs that hold pointers."""

    def __init__(self, facts: KernelFacts, given: Mapping[str, Any]) -> None:
        self.by_name: dict[str, Pool[A]] = {}
        """By buffer of the kernel."""
        self._structs: dict[tuple[str, ...], Sequence[Any]] = {}
        """Structs that hold pointers, by the path at which they lie."""
        for b in facts.pooled:
            self.by_name[b.name] = self._pool(b, given)

    @abstractmethod
    def bound(self, target: Any, b: Buffer) -> A:
        """The target of a pointer into `b`, as an array with one axis."""

    @abstractmethod
    def length(self, array: A) -> Size:
        """The number of elements of `array`, which has one axis."""

    def _pool(self, b: Buffer, given: Mapping[str, Any]) -> Pool[A]:
        element = b.type.element
        if b.is_pointed:
            pointers = [_as_pointer(value, b) for value in self._values(b.path[:-1], given)]
        else:
            pointers = [HostPointer(at_path(given, b.path))]
        if holds_pointers(element):
            lists = [_checked_structs(p.target, b) for p in pointers]
            structs = [one for part in lists for one in part]
            self._structs[b.path] = structs
            return Pool(element, pointers, structs, [], _regions([len(s) for s in lists], 1))
        arrays = [self.bound(p.target, b) for p in pointers]
        regions = _regions([*map(self.length, arrays)], region_step(element))
        return Pool(element, pointers, [], arrays, regions)

    def _values(self, path: tuple[str, ...], given: Mapping[str, Any]) -> list[Any]:
        """The pointers at `path`: one, or one for each struct that holds them."""
        for end in range(len(path) - 1, 0, -1):
            if path[:end] in self._structs:
                return [reduce(getattr, path[end:], one) for one in self._structs[path[:end]]]
        return [at_path(given, path)]


class LaunchPools(Pools[Array]):
    """The pools of a launch."""

    def __init__(self, facts: KernelFacts, given: Mapping[str, Any], device: Device) -> None:
        self.device = device
        super().__init__(facts, given)

    def bound(self, target: Any, b: Buffer) -> Array:
        return bind_array(target, b.type, b.shown_name, self.device)

    def length(self, array: Array) -> int:
        return len(array)

    def array(self, name: str) -> Array:
        """The array that the kernel binds for a pool, which a tape follows."""
        pool = self.by_name[name]
        if holds_pointers(pool.element):
            return self._packed(pool)
        if len(pool.arrays) == 1:
            return pool.arrays[0]
        whole = _laid(pool, self.device)
        trace = trace_of(pool.arrays)
        if trace is not None:
            trace.record(PoolStep(pool, whole))
        return whole

    def words(self, t: types.Pointer) -> bytes:
        """The constant-buffer words of a pointer that is a parameter or a field of one."""
        return _POINTER.pack(*self.by_name[t.target].regions[0])

    def _packed(self, pool: Pool[Array]) -> Array:
        """Structs as a device array, their pointers as numbers."""
        t = pool.element
        assert isinstance(t, types.Struct)
        rows = [self._row(one, t, number) for number, one in enumerate(pool.structs)]
        storage, shape = buffers.to_storage(rows, t, t.name)
        return uploaded(self.device, t, storage, shape)

    def _row(self, value: Any, t: types.Struct, number: int) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name, field in t.fields:
            part = getattr(value, name)
            if isinstance(field, types.Pointer):
                part = self.by_name[field.target].regions[number]
            elif isinstance(field, types.Struct) and holds_pointers(field):
                part = self._row(part, field, number)
            row[name] = part
        return row


def _laid(pool: Pool[Array], device: Device) -> Array:
    """The pool as one array. What lies in this order already is shared, else all is copied."""
    held = [
        (a, first) for a, (first, _) in zip(pool.arrays, numbers_of(pool), strict=True) if a.size
    ]
    size = types.byte_count(pool.element)
    for one, first in held:
        start = held[0][0]
        if one.buffer is not start.buffer or one.offset != start.offset + first * size:
            return joined(pool, pool.arrays, device)
    if not held:
        return zeros(device, pool.element, (0,))
    return held[0][0].viewed(pool.element, (_size(pool),))


def joined(pool: Pool[Array], parts: Sequence[Array | None], device: Device) -> Array:
    """An array like the pool's of `parts`, one a pointer; zeros for `None`."""
    whole = zeros(device, pool.element, (_size(pool),))
    for number, part in enumerate(parts):
        if part is not None:
            copied(part, part_of(pool, whole, number))
    return whole


def part_of(pool: Pool[Array], whole: Array, number: int) -> Array:
    """The target of pointer `number`, in an array like the pool's."""
    first, count = numbers_of(pool)[number]
    return whole.viewed(whole.element, (count,), first * types.byte_count(whole.element))


def _size(pool: Pool[Array]) -> int:
    return max((first + count for first, count in numbers_of(pool)), default=0)


def numbers_of(pool: Pool[Array]) -> list[tuple[int, int]]:
    """The regions of a launch's pool."""
    return cast("list[tuple[int, int]]", pool.regions)


@dataclass(eq=False)
class PoolStep:
    """Arrays laid one after the other: cotangents of the pool are cut, tangents joined."""

    pool: Pool[Array]
    whole: Array

    @property
    def operands(self) -> list[Array]:
        return self.pool.arrays

    @property
    def results(self) -> list[Array]:
        return [self.whole]

    @property
    def kernels(self) -> Sequence[Kernel]:
        return ()

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        cotangent = cotangents.of(self.whole)
        for number, part in enumerate(self.pool.arrays):
            if cotangent is not None and id(part) in wanted:
                cotangents.add(part, part_of(self.pool, cotangent, number))

    def push(self, tangents: Values) -> None:
        dots = [tangents.of(part) for part in self.pool.arrays]
        tangents.add(self.whole, joined(self.pool, dots, self.whole.device))


def region_step(element: types.Type) -> int:
    """Elements between the places at which a region of a pool may begin."""
    return buffers.WORD_BYTES // gcd(buffers.WORD_BYTES, types.byte_count(element))


def _regions(counts: Sequence[Size], step: int) -> list[tuple[Size, Size]]:
    """First element and count of regions of `counts` elements that start at multiples of `step`."""
    regions: list[tuple[Size, Size]] = []
    first: Size = 0
    for count in counts:
        regions.append((first, count))
        first = sizes.add(first, sizes.multiply(sizes.divide_up(count, step), step))
    return regions


def _as_pointer(value: Any, b: Buffer) -> HostPointer:
    if isinstance(value, HostPointer):
        return value
    raise error("SR0390", name=b.shown_name, type=b.type.element, found=type(value).__name__)


def _checked_structs(given: Any, b: Buffer) -> Sequence[Any]:
    """Structs of the class that `b` holds.

    Raises:
        ShapeError: SR0391 for anything else.
    """
    wanted = without_targets(b.type.element)
    items = structs_of(given)
    if items is None or any(pointer_struct(one) != wanted for one in items):
        raise error("SR0391", name=b.shown_name, type=wanted, found=type(given).__name__)
    return items
