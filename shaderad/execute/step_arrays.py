"""The arrays that the programs of a kernel bind: types, counts, places in shared buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.execute.schedule import aligned, storage_bytes
from shaderad.ir import sizes, types
from shaderad.lower.bindings import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shaderad.ir.sizes import Shape, Size
    from shaderad.lower.bindings import Lowered, Resource

ARENA_ALIGN = 16
"""Bytes; a multiple of every storage word."""


@dataclass
class StepArrays:
    """The arrays of one step, by their names in the kernel."""

    element_types: Mapping[str, types.Type]
    shapes: dict[str, Shape]
    """As the kernel indexes them."""

    def thread_count(self, lowered: Lowered, dim: Shape) -> Size:
        """The threads of a program of a launch over `dim`."""
        name = lowered.threads_of
        if not name:
            return sizes.product(dim)
        t = self.element_types[name]
        words = types.byte_count(t) // types.word_bytes(t)
        return sizes.multiply(sizes.product(self.shapes[name]), words)

    def layout(self, resource: Resource) -> tuple[list[Size], Size]:
        """Byte offsets of members that lie one after the other, and the bytes of all."""
        starts: list[Size] = []
        size: Size = 0
        for k in range(len(resource.members)):
            size = aligned(size, ARENA_ALIGN)
            starts.append(size)
            count = self.count(resource, k)
            size = sizes.add(size, storage_bytes(self.type_of(resource, k), count))
        return starts, size

    def type_of(self, resource: Resource, k: int) -> types.Type:
        """The type of the elements of member `k`."""
        if ROLES[resource.role].words_per_word:
            return types.UINT
        return resource.types[k] if resource.types else self.element_types[resource.members[k]]

    def count(self, resource: Resource, k: int) -> Size:
        """The number of elements of member `k`."""
        name = resource.members[k]
        count = sizes.product(self.shapes.get(name, ()))
        words_per_word = ROLES[resource.role].words_per_word
        if words_per_word:
            t = self.element_types[name]
            words = types.byte_count(t) // types.word_bytes(t)
            return sizes.multiply(count, words * words_per_word)
        return count
