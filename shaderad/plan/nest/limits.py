"""Sizes and a device, by which nests are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.ir.sizes import Size
from shaderad.plan.kernels import WIDTH


@dataclass(frozen=True, slots=True)
class NestLimits:
    """Sizes and a device, as far as they are known.

    Attributes:
        known: The sizes, by name.
        group_bytes: The memory of a workgroup.
        shape: How work is laid out over threads.
        buffer_limit: The number of buffers that a kernel should bind.
        is_windowed: True if kernels run by windows of large arrays.
    """

    known: Mapping[str, int]
    group_bytes: int
    shape: LaunchShape
    buffer_limit: int
    is_windowed: bool = False

    @property
    def is_together(self) -> bool:
        """True if threads may share rows."""
        return self.shape.rows.is_together

    @property
    def shape_alone(self) -> LaunchShape:
        """The shape for threads that take rows by themselves."""
        if not self.is_together:
            return self.shape
        return replace(self.shape, rows=self.shape.rows_of_large_elements)

    def value(self, size: Size) -> int:
        """A size that is a number."""
        return sizes.evaluate(size, self.known)

    def is_known(self, size: Size) -> bool:
        """True if a size is a number."""
        return sizes.symbols(size) <= self.known.keys()

    def are_multiples(self, extents: Iterable[Size]) -> bool:
        """True if sizes are known as multiples of 4, whatever the number of an iteration is."""
        return all(
            sizes.is_multiple(sizes.substituted(size, self.known), WIDTH) for size in extents
        )

    def fitting(self, loads: Iterable[Iterable[Size]]) -> tuple[bool, ...]:
        """For each load of four, true if its sizes are multiples; empty if none is possible."""
        chosen = tuple(map(self.are_multiples, loads))
        return chosen if any(chosen) else ()

    def binds_few(self, count: int) -> bool:
        """True if a kernel may bind so many buffers, besides that of its report."""
        return count < self.buffer_limit


def bits(flags: Sequence[bool]) -> int:
    """The number with these bits."""
    return sum(1 << k for k, flag in enumerate(flags) if flag)


def is_more(size: Size, limit: int) -> Size:
    """1 if a size is more than `limit`, else 0."""
    return sizes.minimum(1, sizes.maximum(0, sizes.subtract(size, limit)))
