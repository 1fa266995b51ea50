"""The work of a scan of rows, as data, and how threads share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir.arrays import Reducer, Value
from shaderad.ir.sizes import Size
from shaderad.ir.types import Type
from shaderad.plan.nest.row_work import fewest_lanes, most_lanes, team_along
from shaderad.plan.nest.teams import Team

AT_ONCE = 8
"""Totals that one thread combines between two barriers."""


@dataclass(frozen=True, slots=True)
class ScanWork:
    """The scan of one kernel.

    Attributes:
        op: The operator.
        x: The elements; rows lie along the last axis.
        scanned: The value that the scan of `x` is.
        results: The values that are stored: `scanned`, or functions of it.
        reads: The values in memory that the kernel reads, besides `start`.
        part_count: The parts of a row.
        tiles: The tiles of a part, or of a row.
        start: The scan of the totals of parts, if another kernel left it.
        states: The states of parts, by which groups scan in one pass, if they do.
        is_mirrored: True if results at an index follow from the scan at the mirrored one.
    """

    op: Reducer
    x: Value
    scanned: Value
    results: tuple[Value, ...]
    reads: frozenset[Value]
    part_count: Size = 1
    tiles: Size = 1
    start: Value | None = None
    states: Value | None = None
    is_mirrored: bool = False

    @property
    def is_of_parts(self) -> bool:
        """True if the kernel scans parts of rows, with what comes before them."""
        return self.start is not None or self.states is not None


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
        team: The threads of a row or part.
        width: Adjacent elements that a lane takes at a time, 1 or 4.
        depth: The steps in which a lane takes its elements of a tile.
        is_repeated: True if a row or part may have several tiles.
        is_chosen: 1 if the kernel runs; 0 if another one does.
    """

    team: Team
    width: int
    depth: int
    is_repeated: bool
    is_chosen: Size = 1

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.team.lanes * self.width * self.depth

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that tell it from others on the same device."""
        return self.team.lanes, self.width, self.depth, self.is_repeated

    def levels(self) -> Iterator[Level]:
        """The levels of a scan across the waves of a row, from single waves on."""
        threads, first = self.team.wave, 0
        while threads < self.team.lanes:
            count = min(AT_ONCE, self.team.lanes // threads)
            yield Level(threads, count, first)
            first += self.team.workgroup // threads
            threads *= count

    @property
    def slots(self) -> int:
        """Totals in group memory."""
        return sum(self.team.workgroup // level.threads for level in self.levels())


def scanning_team(length: int | None, width: int, shape: LaunchShape, total: Type) -> Team:
    """The threads of rows of `length` elements, of which each takes `width` at a time.

    `length` is `None` if it is open.
    """
    most = most_lanes(shape)
    lanes = most if length is None else fewest_lanes(length // width, most)
    return team_along(lanes, shape, [total])
