"""A scan of rows -> kernels whose threads share each row, and keep the order of its elements.

A tile is the elements that the lanes of a row hold at a time. Each wave has adjacent elements of
it, in some steps: in each of them lanes are adjacent, and a lane has four elements where sizes
allow it. Lanes scan their own elements, then their totals are scanned: across the wave, then in
group memory. What comes before a tile is carried to it. A long row is cut into parts of whole
tiles, for which there are three kernels: the totals of parts, the scan of these totals, and the
scans of parts. So a long row is read twice and stored once. Where parts look back, one kernel
does all of that, and reads it once: see shaders/look_back.slang. This needs totals of one word that
do not depend on the order, such as those of ints.

Threads past the end of a row take its last elements again. As order is kept, no element that is
stored depends on them, so operators need no neutral element. Sizes and the launch shape decide the
association of a total, so it is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import compress

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, ops, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.costs import cost_of_operator
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, UINT, Type, Vector, byte_count
from shaderad.plan.kernels import WIDTH, PlanKernel
from shaderad.plan.nest.row_work import BLOCK, FEWEST_LOADS
from shaderad.plan.nest.scan_sharing import ScanSharing, ScanWork, scanning_team
from shaderad.plan.nest.scan_writer import ScanWriter
from shaderad.plan.nest.teams import Team
from shaderad.plan.nest.vectors import COST_LIMIT

_HELD_BYTES = 64
"""The elements that a thread holds at a time."""
_MOST_STEPS = 4
_LOOKED_BACK = 2
"""Words of group memory with what a group learns from others."""
_COMBINED_LIMIT = 24
"""The cost of an operator, in additions, beyond which its code is written for one element."""

ScanKernels = tuple[tuple[PlanKernel, ...], tuple[Value, ...]]
"""The kernels of a scan, in order, and the values that they leave to each other."""


class Scans:
    """The kernels of one scan.

    Args:
        node: The scan.
        name: The name of a kernel that computes its elements.
        reads: The values in memory that the kernels read.
        results: What they store for each element: the result of `node`, or functions of it.
        is_mirrored: True if results at an index follow from the scan at the mirrored one.
        shape: How work is laid out over threads.
    """

    def __init__(
        self,
        node: arrays.Scan,
        name: str,
        reads: Sequence[Value],
        results: Sequence[Value],
        is_mirrored: bool,
        shape: LaunchShape,
    ) -> None:
        self.node, self._name, self._is_mirrored = node, name, is_mirrored
        self.results = tuple(results)
        (self.x,) = node.operands
        self.reads = frozenset(v for v in reads if v not in {node.result, *results})
        self._row_count = sizes.product(self.x.shape[:-1])
        self._shape = shape
        self.whole = cache(self._whole)
        self.cut = cache(self._cut)
        self.looking_back = cache(self._looking_back)

    @property
    def total(self) -> Type:
        """The type of a total."""
        return self.x.element

    # -- how threads share rows ----------------------------------------------------------------

    @cached_property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four, the sizes that must be multiples of 4; none in long code."""
        return () if self._is_long else self._trial.elements.loads

    @cached_property
    def _is_long(self) -> bool:
        """True if the code of elements or of the operator is written for one at a time."""
        cost = cost_of_operator(self.node.op, self.total)
        return cost > _COMBINED_LIMIT or self._trial.elements.code_cost > COST_LIMIT

    @cached_property
    def _trial(self) -> ScanWriter:
        return ScanWriter(self._work(), ScanSharing(Team(1, 1, 1), WIDTH, 1, False))

    def binding_count(self, chosen: Sequence[bool]) -> int:
        """The most buffers of a kernel with those of `loads` that are chosen."""
        by_four, by_element = self._trial.elements.bound(chosen if chosen else ())
        return len(self.reads) + len(by_four & by_element) + len(self.results) + 1

    def _steps(self, width: int) -> int:
        """The most steps of a lane in a tile."""
        if self._is_long:
            return 1
        most = _MOST_STEPS if self._shape.rows.is_together else BLOCK // width
        return max(1, min(most, _HELD_BYTES // (width * byte_count(self.total))))

    @property
    def longest_whole(self) -> int:
        """The most elements of rows that are not cut."""
        return self._shape.rows.longest_whole

    def choice(self, known: Mapping[str, int], chosen: Sequence[bool]) -> ScanChoice:
        """The kernels at known sizes, with those of `loads` that are chosen."""
        length = sizes.evaluate(self.x.shape[-1], known)
        flags = tuple(chosen) if length % WIDTH == 0 and any(chosen) else ()
        width = WIDTH if flags else 1
        tiles, parts = (sizes.evaluate(size, known) for size in self.cut_of(width))
        if parts == 1 or length <= self.longest_whole:
            own = self.sharing(length, width)
            return ScanChoice(own, own.slots, flags, (), partial(self.whole, own, *flags))
        if self._looks_back:
            own = self.sharing_of_parts(width, is_repeated=False)
            make = partial(self.looking_back, own, *flags)
            return ScanChoice(own, own.slots + _LOOKED_BACK, flags, (_LOOKED_BACK,), make)
        own = self.sharing_of_parts(width, is_repeated=tiles > 1)
        last = self.sharing(parts, 1)
        slots, make = max(own.slots, last.slots), partial(self.cut, own, last, *flags)
        return ScanChoice(own, slots, flags, last.numbers, make)

    @property
    def _looks_back(self) -> bool:
        """True if rows in parts are scanned in one pass."""
        has_word = self.node.op == ops.ADD and self.total in (INT, UINT)
        team = self.sharing_of_parts(1, is_repeated=False).team
        has_groups = team.lanes == team.workgroup > team.wave
        return self._shape.looks_back and has_word and has_groups and not self._is_long

    def sharing(self, length: int | None, width: int) -> ScanSharing:
        """The sharing for rows of `length` elements, of which a lane takes `width` at a time.

        `length` is `None` if it is open.
        """
        team = scanning_team(length, width, self._shape, self.total)
        if length is None:
            return ScanSharing(team, width, self._steps(width), is_repeated=True)
        needed = -(-length // (width * team.lanes))
        depth = min(needed, self._steps(width))
        return ScanSharing(team, width, depth, is_repeated=needed > depth)

    def sharing_of_parts(self, width: int, *, is_repeated: bool) -> ScanSharing:
        """The sharing for parts, each of which is one tile or more."""
        longest = self._shape.workgroup * width * FEWEST_LOADS
        team = scanning_team(longest, width, self._shape, self.total)
        return ScanSharing(team, width, self._steps(width), is_repeated)

    def cut_of(self, width: int) -> tuple[Size, Size]:
        """The tiles of a part, and the parts of a row, for lanes that take `width` elements."""
        tile = self.sharing_of_parts(width, is_repeated=True).tile
        rows = sizes.maximum(1, self._row_count)
        most = sizes.maximum(1, sizes.floor_divide(self._shape.rows.chunk_limit, rows))
        length = self.x.shape[-1]
        tiles = sizes.divide_up(sizes.divide_up(length, tile), most)
        is_together, least = self._shape.rows.is_together, self._shape.rows.chunk_length
        tiles = sizes.maximum(tiles, 1 if is_together else -(-least // tile))
        return tiles, sizes.divide_up(length, sizes.multiply(tiles, tile))

    # -- kernels -------------------------------------------------------------------------------

    def _work(self) -> ScanWork:
        """A scan of whole rows, in one tile."""
        return ScanWork(
            self.node.op, self.x, self.node.result, self.results, self.reads,
            is_mirrored=self._is_mirrored,
        )  # fmt: skip

    def _fits(self, chosen: Sequence[bool]) -> frozenset[tuple[Size, ...]]:
        return frozenset(compress(self.loads, chosen))

    def _whole(self, sharing: ScanSharing, *chosen: bool) -> ScanKernels:
        """The kernel of whole rows, with those of `loads` that are chosen."""
        tiles = sizes.divide_up(self.x.shape[-1], sharing.tile) if sharing.is_repeated else 1
        work = replace(self._work(), tiles=tiles)
        kernel = ScanWriter(work, sharing).scan(f"{self._name}_scan", self._fits(chosen))
        return (kernel,), ()

    def _cut(self, own: ScanSharing, last: ScanSharing, *chosen: bool) -> ScanKernels:
        """The kernels of rows in parts.

        Args:
            own: The sharing of parts.
            last: The sharing of the totals of the parts of a row.
            chosen: Those of `loads` that are chosen.
        """
        tiles, part_count = self.cut_of(own.width)
        t = ArrayType(self.total, (self._row_count, part_count))
        totals, before, fits = Value(t), Value(t), self._fits(chosen)
        part = replace(self._work(), part_count=part_count, tiles=tiles if own.is_repeated else 1)
        last_tiles = sizes.divide_up(part_count, last.tile) if last.is_repeated else 1
        of_totals = ScanWork(
            self.node.op, totals, before, (before,), frozenset([totals]), tiles=last_tiles
        )
        works = (
            ScanWriter(replace(part, results=()), own).totals(f"{self._name}_totals", totals, fits),
            ScanWriter(of_totals, last).scan(f"{self._name}_of_totals", ()),
            ScanWriter(replace(part, start=before), own).scan(f"{self._name}_scan", fits),
        )
        return works, (totals, before)

    def _looking_back(self, own: ScanSharing, *chosen: bool) -> ScanKernels:
        """The kernel of rows in parts that look back, with those of `loads` that are chosen."""
        part_count = sizes.divide_up(self.x.shape[-1], own.tile)
        states = Value(ArrayType(Vector(UINT, 2), (self._row_count, part_count)))
        work = replace(self._work(), part_count=part_count, states=states)
        kernel = ScanWriter(work, own).scan(f"{self._name}_scan", self._fits(chosen))
        return (kernel,), (states,)


@dataclass(frozen=True, slots=True)
class ScanChoice:
    """The kernels at some sizes.

    Attributes:
        sharing: How threads share rows or parts.
        slots: Totals in group memory.
        chosen: Flags for `Scans.loads`; none if threads take one element at a time.
        of_parts: Numbers that tell how parts learn what is before them, if there are any.
        make: Writes the kernels.
    """

    sharing: ScanSharing
    slots: int
    chosen: tuple[bool, ...]
    of_parts: tuple[int, ...]
    make: Callable[[], ScanKernels]
