"""Numbers that say how threads share rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir.types import Type
from shaderad.plan.nest.exchange import AT_ONCE, crosses_waves

FEWEST_LOADS = 2
"""The loads of each lane, unless a row is shorter."""


@dataclass(frozen=True, slots=True)
class RowSharing:
    """How threads share rows.

    Attributes:
        lanes: Threads of a row or part, a power of two.
        width: Elements that a lane takes at a time, 1 or 4.
        wave: Lanes that fold across the wave, a power of two; 1 for none.
        workgroup: Threads of a workgroup, a multiple of `lanes`.
    """

    lanes: int
    width: int
    wave: int
    workgroup: int

    @property
    def slots(self) -> int:
        """Totals in group memory; 0 if the lanes of a row are of one wave."""
        return self.workgroup // self.wave if self.lanes > self.wave else 0


def sharing_of(length: int, width: int, shape: LaunchShape, total: Type) -> RowSharing:
    """The sharing for rows of `length` elements, whose totals have the type `total`."""
    loads = max(1, length // (width * FEWEST_LOADS))
    most = shape.workgroup & -shape.workgroup
    lanes = min(most, 1 << (loads.bit_length() - 1))
    wave = min(lanes, max(shape.lane_teams, default=1)) if crosses_waves(total) else 1
    return RowSharing(lanes, width, wave, shape.workgroup)


@dataclass(frozen=True, slots=True)
class Level:
    """Teams of a row whose totals are scanned at once in group memory."""

    threads: int
    """The threads of a team."""
    count: int
    """The teams that are scanned at once, a power of two."""
    first: int
    """The place of the first total in group memory."""


@dataclass(frozen=True, slots=True)
class ScanSharing:
    """How threads share the tiles of a row.

    Attributes:
        threads: How they share rows.
        depth: The steps in which a lane takes its elements of a tile.
        is_repeated: True if a row or part may have several tiles.
    """

    threads: RowSharing
    depth: int
    is_repeated: bool

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.threads.lanes * self.threads.width * self.depth

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that tell it from others on the same device."""
        return self.threads.lanes, self.threads.width, self.depth, self.is_repeated

    def levels(self) -> Iterator[Level]:
        """The levels of a scan across the waves of a row, from single waves on."""
        threads, first = self.threads.wave, 0
        while threads < self.threads.lanes:
            count = min(AT_ONCE, self.threads.lanes // threads)
            yield Level(threads, count, first)
            first += self.threads.workgroup // threads
            threads *= count

    @property
    def slots(self) -> int:
        """Totals in group memory."""
        return sum(self.threads.workgroup // level.threads for level in self.levels())
