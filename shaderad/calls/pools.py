"""The targets of the pointers of a launch -> one array for each path of pointers, a *pool*.

The targets of the pointers of one path lie in their pool, array after array, and a pointer is its
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

import numpy as np

from shaderad.arguments.array import as_element
from shaderad.arguments.kinds import kind_of
from shaderad.arguments.struct import at_path
from shaderad.arrays.arrays import Array, copied, uploaded, zeros
from shaderad.arrays.containers import items_of
from shaderad.arrays.numbers import HostNumber
from shaderad.arrays.pointers import HostPointer, pointer_struct
from shaderad.arrays.tape import Values, trace_of
from shaderad.diagnostics import error
from shaderad.execute.convert import field_offset
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

    def __init__(self, facts: KernelFacts, argument_by_name: Mapping[str, Any]) -> None:
        self.by_name: dict[str, Pool[A]] = {}
        """By buffer of the kernel."""
        self._structs: dict[tuple[str, ...], Sequence[Any]] = {}
        """Structs that hold pointers, by the path at which they lie."""
        for b in facts.pooled:
            self.by_name[b.name] = self._pool(b, argument_by_name)

    @abstractmethod
    def bound(self, target: Any, b: Buffer) -> A:
        """The target of a pointer into `b`, as an array with one axis."""

    @abstractmethod
    def length(self, array: A) -> Size:
        """The number of elements of `array`, which has one axis."""

    def _pool(self, b: Buffer, argument_by_name: Mapping[str, Any]) -> Pool[A]:
        element = b.type.element
        if b.is_pointed:
            pointers = [
                _as_pointer(value, b) for value in self._values(b.path[:-1], argument_by_name)
            ]
        else:
            pointers = [HostPointer(at_path(argument_by_name, b.path))]
        if holds_pointers(element):
            lists = [_checked_structs(p.target, b) for p in pointers]
            structs = [item for items in lists for item in items]
            self._structs[b.path] = structs
            return Pool(element, pointers, structs, [], _regions([len(s) for s in lists], 1))
        arrays = [self.bound(p.target, b) for p in pointers]
        regions = _regions([*map(self.length, arrays)], region_step(element))
        return Pool(element, pointers, [], arrays, regions)

    def _values(self, path: tuple[str, ...], argument_by_name: Mapping[str, Any]) -> list[Any]:
        """The pointers at `path`: one, or one for each struct that holds them."""
        for end in range(len(path) - 1, 0, -1):
            if path[:end] in self._structs:
                return [reduce(getattr, path[end:], outer) for outer in self._structs[path[:end]]]
        return [at_path(argument_by_name, path)]


class LaunchPools(Pools[Array]):
    """The pools of a launch."""

    def __init__(
        self, facts: KernelFacts, argument_by_name: Mapping[str, Any], device: Device
    ) -> None:
        self.device = device
        super().__init__(facts, argument_by_name)

    def bound(self, target: Any, b: Buffer) -> Array:
        return kind_of(b.type).bound(target, b.type, b.shown_name, self.device)

    def length(self, array: Array) -> int:
        return len(array)

    def array(self, name: str) -> Array:
        """The array that the kernel binds for a pool, which a tape follows."""
        pool = self.by_name[name]
        if holds_pointers(pool.element):
            return self._packed(pool)
        if len(pool.arrays) == 1:
            return pool.arrays[0]
        size = types.byte_count(pool.element)
        regions = cast("list[tuple[int, int]]", pool.regions)
        parts = [
            ArrayAt(x, first * size) for x, (first, _) in zip(pool.arrays, regions, strict=True)
        ]
        count = max([first + count for first, count in regions], default=0)
        whole = _in_one_buffer(parts, pool.element, count)
        if whole is None:
            whole = _laid(parts, self.device, pool.element, (count,))
        return _recorded(parts, whole)

    def words(self, t: types.Pointer) -> bytes:
        """The constant-buffer words of a pointer that is a parameter or a field of one."""
        return _POINTER.pack(*self.by_name[t.target].regions[0])

    def _packed(self, pool: Pool[Array]) -> Array:
        """Structs as a device array, their pointers as numbers."""
        t = pool.element
        assert isinstance(t, types.Struct)
        parts: list[ArrayAt] = []
        size = types.byte_count(t)
        rows = [self._row(x, t, k, k * size, parts) for k, x in enumerate(pool.structs)]
        storage, shape = buffers.to_storage(rows, t, t.name)
        whole = uploaded(self.device, t, storage, shape)
        for part in parts:
            if not isinstance(part.array, HostNumber):
                copied(part.array, part.within(whole))
        return _recorded(parts, whole)

    def _row(
        self, value: Any, t: types.Struct, number: int, offset: int, parts: list[ArrayAt]
    ) -> dict[str, Any]:
        """Struct `number` of a pool, `offset` bytes behind its start; notes arrays in fields."""
        row: dict[str, Any] = {}
        for name, field in t.fields:
            content, start = getattr(value, name), offset + field_offset(t, name)
            if isinstance(field, types.Pointer):
                content = self.by_name[field.target].regions[number]
            elif isinstance(field, types.Struct) and holds_pointers(field):
                content = self._row(content, field, number, start, parts)
            elif isinstance(content, Array):
                x = as_element(content, field, name)
                parts.append(ArrayAt(x, start))
                blank = np.zeros(buffers.element_axes(field), buffers.host_dtype(field))
                content = x.content if isinstance(x, HostNumber) else blank
            row[name] = content
        return row


@dataclass(frozen=True, slots=True)
class ArrayAt:
    """An array that lies in another one, after so many bytes."""

    array: Array
    offset: int

    def within(self, whole: Array) -> Array:
        """Its elements in an array like the one in which it lies."""
        return whole.viewed(self.array.element, self.array.shape, self.offset)


def _in_one_buffer(parts: Sequence[ArrayAt], element: types.Type, count: int) -> Array | None:
    """The parts as one array, if they already lie in this order; nothing if they do not."""
    filled = [part for part in parts if part.array.size]
    if not filled:
        return None
    start = filled[0].array
    for part in filled:
        x = part.array
        if x.buffer is not start.buffer or x.offset != start.offset + part.offset:
            return None
    return start.viewed(element, (count,))


def _laid(
    parts: Sequence[ArrayAt], device: Device, element: types.Type, shape: tuple[int, ...]
) -> Array:
    """An array that holds `parts`, and zeros elsewhere."""
    whole = zeros(device, element, shape)
    for part in parts:
        copied(part.array, part.within(whole))
    return whole


def _recorded(parts: Sequence[ArrayAt], whole: Array) -> Array:
    trace = trace_of([part.array for part in parts])
    if trace is not None:
        trace.record(LayStep(parts, whole))
    return whole


@dataclass(eq=False)
class LayStep:
    """Arrays laid into one: its cotangent is cut, and their tangents are laid out."""

    parts: Sequence[ArrayAt]
    whole: Array

    @property
    def operands(self) -> list[Array]:
        return [part.array for part in self.parts]

    @property
    def results(self) -> list[Array]:
        return [self.whole]

    @property
    def kernels(self) -> Sequence[Kernel]:
        return ()

    def pull(self, cotangents: Values, wanted: set[int]) -> None:
        cotangent = cotangents.of(self.whole)
        for part in self.parts:
            if cotangent is not None and id(part.array) in wanted:
                cotangents.add(part.array, part.within(cotangent))

    def push(self, tangents: Values) -> None:
        dots = [(tangents.of(part.array), part.offset) for part in self.parts]
        moved = [ArrayAt(dot, offset) for dot, offset in dots if dot is not None]
        whole = self.whole
        tangents.add(whole, _laid(moved, whole.device, whole.element, whole.shape))


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


def _checked_structs(value: Any, b: Buffer) -> Sequence[Any]:
    """Structs of the class that `b` holds.

    Raises:
        ShapeError: SR0391 for anything else.
    """
    wanted = without_targets(b.type.element)
    items = items_of(value)
    if items is None or any(pointer_struct(item) != wanted for item in items):
        raise error("SR0391", name=b.shown_name, type=wanted, found=type(value).__name__)
    return items
