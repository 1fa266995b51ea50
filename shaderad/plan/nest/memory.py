"""Arrays of one kernel, in the memory of a thread, of a workgroup, or of the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from shaderad.diagnostics import Span
from shaderad.ir import composing as c
from shaderad.ir import nodes, sizes
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import (
    INT,
    WORD_BYTES,
    Access,
    BufferType,
    LocalArray,
    Type,
    byte_count,
    word_bytes,
)
from shaderad.plan.kernels import Writer
from shaderad.plan.positions import Position, Positions


class MemoryKind(Enum):
    """A kind of memory."""

    THREAD = "thread"
    GROUP = "group"
    BUFFER = "buffer"


class ThreadArray:
    """An array of a thread, for the kernel of `writer`: `count` elements of type `t`.

    It is in registers if the compiler knows each index.
    """

    def __init__(self, writer: Writer, name: str, t: Type, count: int) -> None:
        self._positions, self._type, self._count = writer.positions, t, count
        self._variable = c.variable(name, t if count == 1 else LocalArray(t, count))
        writer.local_types[name] = self._variable.type

    def put(self, at: Position, value: Expr) -> Stmt:
        """Sets an element."""
        path = tuple(nodes.ElementStep(index=index) for index in self._indices(at))
        return Assign(name=self._variable.name, path=path, value=value)

    def get(self, at: Position) -> Expr:
        """An element."""
        element: Expr = self._variable
        for index in self._indices(at):
            element = nodes.Element(type=self._type, value=element, index=index)
        return element

    def zeroed(self) -> Stmt:
        """Sets all elements to 0."""
        return Assign(name=self._variable.name, value=nodes.Zero(type=self._variable.type))

    def _indices(self, at: Position) -> Sequence[Expr]:
        if self._count == 1:
            return []
        index = self._positions.expr(at)
        return [_inside(index) if c.number_of(index) is None else index]


def shared_array(
    writer: Writer, name: str, t: Type, *shape: Size, memory: MemoryKind = MemoryKind.GROUP
) -> SharedArray:
    """A new array that the threads of a workgroup share, for the kernel of `writer`.

    Args:
        writer: Of the kernel.
        name: Its name.
        t: The type of its elements.
        shape: Its extents; their product is a number in group memory.
        memory: Where it lies.
    """
    is_in_group, count = memory is MemoryKind.GROUP, sizes.product(shape)
    kind = BufferType(Access.GROUP if is_in_group else Access.SCRATCH, t, len(shape))
    known = count if is_in_group and isinstance(count, int) else 0
    writer.add_scratch(nodes.Buffer(name=name, path=(name,), type=kind, count=known), shape)
    return SharedArray(writer.positions, name, t)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array of a kernel that its threads access.

    Attributes:
        positions: Of the kernel.
        name: Its name.
        t: The type of its elements.
    """

    positions: Positions
    name: str
    t: Type

    def put(self, at: Position, value: Expr) -> Stmt:
        """Stores an element, which no other thread does between two barriers."""
        return nodes.Store(buffer=self.name, indices=self._index(at), value=value, is_unique=True)

    def get(self, at: Position) -> Expr:
        """The element that a thread stored before the latest barrier."""
        return nodes.Load(type=self.t, buffer=self.name, indices=self._index(at))

    def add_to(self, at: Position, value: Expr) -> Stmt:
        """Adds to an element, as other threads may do."""
        return nodes.Accumulate(buffer=self.name, indices=self._index(at), value=value)

    def get_checked(self, at: Sequence[Position], span: Span) -> Expr:
        """An element by its position along each axis, which is reported if it is out of range."""
        indices = tuple(map(self.positions.expr, at))
        return nodes.Load(type=self.t, buffer=self.name, indices=indices, span=span)

    def _index(self, at: Position) -> tuple[Expr, ...]:
        return (_inside(self.positions.expr(at)),)


def _inside(index: Expr) -> Expr:
    """An index that is in range."""
    return nodes.KnownNumber(type=INT, number=index, is_inside=True)


def shared_bytes(t: Type) -> int:
    """The bytes of an element in group memory, where a half takes a word."""
    return byte_count(t) // word_bytes(t) * WORD_BYTES
