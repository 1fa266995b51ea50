"""Copies of arrays in group memory, to which threads add: chosen by sizes and a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shaderad.bodies.scattered import GroupCopy, atomic_words
from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.sizes import Shape

_LEAST_ROOM = 64
"""Elements; arrays that have fewer share a program."""


def rooms_of(
    arrays: Iterable[tuple[str, ArrayType]],
    dim: Shape,
    known: Mapping[str, int],
    shape: LaunchShape,
) -> dict[str, int]:
    """The elements of a copy for each array to which threads add; 0 if memory takes less time.

    Args:
        arrays: The arrays, by name.
        dim: The extents of the launch.
        known: The sizes that are known, by name.
        shape: How work is laid out over threads.
    """
    threads = _count(dim, known) or 0
    return {name: _room(t, threads, _count(t.shape, known), shape) for name, t in arrays}


def copies_with(rooms: Mapping[str, int]) -> tuple[GroupCopy, ...]:
    """The copies that have room."""
    return tuple(GroupCopy(name, room) for name, room in rooms.items() if room)


def _count(extents: Shape, known: Mapping[str, int]) -> int | None:
    count = sizes.product(extents)
    return sizes.evaluate(count, known) if sizes.symbols(count) <= known.keys() else None


def _room(t: ArrayType, threads: int, count: int | None, shape: LaunchShape) -> int:
    """The elements of a copy of `count` elements of type `t`."""
    size = atomic_words(t.element)
    if not (count and size) or size * count > shape.copied_words:
        return 0
    indices = max(shape.workgroup, shape.indices_per_copied_word * size * count)
    if threads < shape.fewest_copying_groups * indices:
        return 0
    room = _LEAST_ROOM
    while room < count:
        room *= 2
    return min(room, shape.copied_words // size)
