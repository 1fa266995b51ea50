"""Sizes and a device -> the tile of results that a thread computes of a sum.

A tile should make the most of what is loaded: the cost of its loads and additions, for each addend,
is the least of all tiles whose sums fit in registers. Nothing else decides it, so a product, a
convolution, its derivatives, and sums of columns have no rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import sizes
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, INT, UINT
from shaderad.plan.kernels import WIDTH
from shaderad.plan.nest.sums.work import SumRead, SumWork
from shaderad.plan.nest.vectors import comes_by_four

_MOST_SUMS = 64
"""The most results of a thread."""
_MOST_REGISTERS = 96
"""The sums and loaded elements of a thread, beyond which its cost grows with them."""
_MOST_ADDENDS = 256
"""The most addends that are written out."""
_LONGEST_WRITTEN = 8
"""The most places of an axis that are written out, if they are not a power of two."""
_LONGEST_WINDOW = 16
"""The longest window whose extent is a number in the kernel."""
_DEPTHS = (16, 8, 4)
"""The elements of a sum that a workgroup loads at a time, the best first."""
_HELD_IN_GROUPS = (8, 4)
"""The rows and columns of a thread of a workgroup that shares loads."""
_MANY_BLOCKS = 128
"""Blocks of results that keep a device busy."""
_LOAD_COST, _FOUR_COST = 8, 16
"""The costs of a load, and of a load of four, in additions of a product."""
_APART_FACTOR = 1.5
"""The factor of the cost of loads by adjacent threads that do not access adjacent elements."""
_STEP_COST = 8
"""The cost of a step of a loop, in additions of a product."""
_IDLE_WEIGHT = 0.125
"""The power of the share of idle threads by which the cost of a tile grows."""
SHORTEST_PART = 256
"""The addends of a part of a sum."""
_FULL = 0.8
"""The least part of the threads of teams that must have results."""


@dataclass(frozen=True, slots=True)
class SumTile:
    """How threads share a sum.

    Attributes:
        held: For each axis of results, the adjacent ones of a thread.
        steps: For each axis that is summed, the adjacent elements that a thread adds at a time.
        are_whole: For each axis that is summed, true if `steps` are all its elements.
        are_even: For each axis of results, true if whole tiles cover it.
        by_four: For each axis of results, true if tiles start at multiples of 4.
        threads: For each axis of results, the threads of a workgroup that shares loads in group
            memory; empty for none.
        team: The adjacent threads of a wave that load for each other; 1 for none.
        team_axis: The axis of results along which the threads of a team are adjacent.
        shared_axis: The axis of results along which they load; -1 for none.
        fits: True if no axis has fewer results than a thread.
        windows: For each axis that is summed, its extent if that is a number in the kernel, else 0.
        known: The symbols of these extents, and their numbers.
        part_count: The number of parts into which sums are cut.
        run_axis: The summed axis along which sums are cut into runs, each of which is added to 0
            before its sum is added to others: so rounding errors grow with the number of runs.
        run_steps: The steps of a run along that axis; 0 if a sum, or its part, is one run.
        lanes: The lanes of a wave that take the steps of a part in turn, and fold their sums; 1 for
            none. Only if there are parts, and no threads share loads.
    """

    held: tuple[int, ...]
    steps: tuple[int, ...]
    are_whole: tuple[bool, ...]
    are_even: tuple[bool, ...]
    by_four: tuple[bool, ...]
    threads: tuple[int, ...] = ()
    team: int = 1
    team_axis: int = -1
    shared_axis: int = -1
    fits: bool = True
    windows: tuple[int, ...] = ()
    known: tuple[tuple[str, int], ...] = ()
    part_count: Size = 1
    run_axis: int = -1
    run_steps: int = 0
    lanes: int = 1

    @property
    def is_grouped(self) -> bool:
        """True if the threads of a workgroup share loads in group memory."""
        return bool(self.threads)

    def block(self, axis: int) -> int:
        """The results along an axis of a thread, or of a workgroup that shares loads."""
        return self.held[axis] * (self.threads[axis] if self.threads else 1)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that tell it from others on the same device."""
        flags = (self.fits, self.is_grouped, *self.are_whole, *self.are_even, *self.by_four)
        bits = sum(1 << k for k, flag in enumerate(flags) if flag)
        has_parts = self.part_count != 1
        sharing = *self.threads, self.team, self.team_axis, self.shared_axis
        known = *self.windows, *(number for _, number in self.known)
        runs = has_parts, self.run_axis, self.run_steps, self.lanes
        return *self.held, *self.steps, bits, *sharing, *runs, *known


def run_of(strides: Sequence[int | None], extents: Sequence[int]) -> tuple[tuple[int, int], int]:
    """The distinct elements that a block of addends reads, in runs.

    Args:
        strides: The distance of elements along each axis; `None` where it is not known.
        extents: Those of the block.

    Returns:
        The distance of elements in a run and their number, and the number of runs.
    """
    apart = prod(e for s, e in zip(strides, extents, strict=True) if s is None)
    runs: list[tuple[int, int]] = []
    """Steps, and the number of elements that lie one step apart."""
    for stride, extent in sorted(
        (abs(stride), extent)
        for stride, extent in zip(strides, extents, strict=True)
        if stride and extent > 1
    ):
        step, length = runs[-1] if runs else (stride, 0)
        if runs and stride % step == 0 and stride <= step * length:
            runs[-1] = step, length + stride // step * (extent - 1)
        else:
            runs.append((stride, extent))
    run, *outer = runs or [(0, 1)]
    return run, apart * prod(count for _, count in outer)


@dataclass(frozen=True)
class _KnownRead:
    """A read at known sizes: see `SumRead`."""

    axes: frozenset[int]
    strides: tuple[int | None, ...]
    may_load_four: bool
    may_share: bool

    def loaded(self, extents: Sequence[int]) -> tuple[float, int]:
        """The cost of its loads for a block of addends, and the number of loaded elements."""
        (step, length), apart = run_of(self.strides, extents)
        cost = length * _LOAD_COST
        if self.may_load_four and step == 1:
            fours, rest = divmod(length, WIDTH)
            cost = min(cost, fours * _FOUR_COST + min(rest * _LOAD_COST, _FOUR_COST))
        return apart * cost, apart * length

    def is_shared(self, team_axis: int, axis: int) -> bool:
        """True if the threads of a team, adjacent along `team_axis`, can load it along `axis`."""
        is_strided = bool(self.strides[axis])
        return self.may_share and is_strided and team_axis not in self.axes


class SumTiles:
    """The tiles of one sum at known sizes.

    Args:
        work: The sum.
        known: The sizes, by name.
        shape: How work is laid out over threads.
    """

    def __init__(self, work: SumWork, known: Mapping[str, int], shape: LaunchShape) -> None:
        self._work, self._known, self._shape = work, known, shape
        self._rows = [sizes.evaluate(extent, known) for extent in work.rows]
        self._summed = [sizes.evaluate(extent, known) for extent in work.summed]
        self._last = max(
            (k for k, n in enumerate(self._rows) if n > 1), default=len(self._rows) - 1
        )
        self._reads = [self._at_sizes(read) for read in work.reads]

    def _at_sizes(self, read: SumRead) -> _KnownRead:
        known = self._known.keys()
        strides = tuple(
            None
            if stride is None or not sizes.symbols(stride) <= known
            else sizes.evaluate(stride, self._known)
            for stride in read.strides
        )
        t = read.value.element
        return _KnownRead(read.axes, strides, comes_by_four(t), t in (FLOAT, INT, UINT))

    def grouped(self) -> Iterator[SumTile]:
        """The tiles whose threads share loads in group memory, the largest first."""
        work, shape = self._work, self._shape
        axes = work.rows_and_columns
        if not shape.shares_in_groups or not axes or self._has_windows or work.has_choice:
            return
        if work.addends.element not in (FLOAT, INT, UINT):
            return
        count = self._summed[-1]
        depth = next((n for n in _DEPTHS if count % n == 0 < count), 0)
        side = 1 << (shape.workgroup.bit_length() - 1) // 2
        for held in _HELD_IN_GROUPS if side * side == shape.workgroup and depth else ():
            extents = [self._rows[axis] for axis in axes]
            blocks = prod(-(-extent // (held * side)) for extent in extents)
            is_full = blocks * (held * side) ** 2 * _FULL <= prod(extents)
            if is_full and (held == _HELD_IN_GROUPS[-1] or blocks >= _MANY_BLOCKS):
                yield self._grouped(axes, held, side, depth)

    def _grouped(self, axes: Sequence[int], held: int, side: int, depth: int) -> SumTile:
        rows = range(len(self._rows))
        return SumTile(
            tuple(held if axis in axes else 1 for axis in rows),
            (*(1 for _ in self._summed[1:]), depth),
            (*(n == 1 for n in self._summed[:-1]), False),
            tuple(axis not in axes or self._rows[axis] % (held * side) == 0 for axis in rows),
            tuple(self._rows[axis] % WIDTH == 0 for axis in rows),
            threads=tuple(side if axis in axes else 1 for axis in rows),
        )

    def best(self, *, has_teams: bool = True) -> SumTile:
        """The tile with the least cost for each addend, without teams if `has_teams` is false."""
        held_by_axis = [[*self._options(axis, extent)] for axis, extent in enumerate(self._rows)]
        steps_by_axis = [*map(self._steps, range(len(self._summed)))]
        best, least = None, float("inf")
        for held in product(*held_by_axis):
            if prod(held) > _MOST_SUMS:
                continue
            for steps in product(*steps_by_axis):
                if prod(held) * prod(steps) > _MOST_ADDENDS:
                    continue
                loads = [self._loaded(read, held, steps) for read in self._reads]
                for team, axis in self._teams(held) if has_teams else ((1, -1),):
                    teams = [team if axis in read.axes else 1 for read in self._reads]
                    cost = self._cost(held, steps, loads, teams)
                    if cost < least:
                        best, least = (held, steps, team, axis), cost
        assert best is not None
        return self._tile(*best)

    def _loaded(
        self, read: _KnownRead, held: Sequence[int], steps: Sequence[int]
    ) -> tuple[float, int]:
        """The cost of the loads of a read for a block of addends, and their elements."""
        cost, count = read.loaded((*held, *steps))
        are_apart = held[self._last] > WIDTH and read.strides[self._last] in (-1, 1)
        return cost * _APART_FACTOR if are_apart else cost, count

    def _options(self, axis: int, extent: int) -> Iterator[int]:
        """The places of an axis of results that a thread may have."""
        yield 1
        if not self._is_shared_along(axis):
            return
        count = 2
        while count <= min(extent, 2 * _LONGEST_WRITTEN):
            yield count
            count *= 2
        if extent <= _LONGEST_WRITTEN and extent & (extent - 1):
            yield extent

    def _is_shared_along(self, axis: int) -> bool:
        """True if results that are adjacent along an axis may use the same loads."""
        if any(read.strides[axis] in (-1, 0, 1) for read in self._reads):
            return True
        return self._work.overlaps(axis)

    def _steps(self, axis: int) -> list[int]:
        """The elements of a summed axis that a thread may add at a time."""
        extent = self._summed[axis]
        options = {1}
        if 1 < extent <= _LONGEST_WRITTEN:
            options.add(extent)
        place = len(self._rows) + axis
        if extent % WIDTH == 0 and any(read.strides[place] in (-1, 1) for read in self._reads):
            options.add(WIDTH)
        return sorted(options)

    def _teams(self, held: Sequence[int]) -> Iterator[tuple[int, int]]:
        """The teams that may share loads, each with the axis along which they load."""
        yield 1, -1
        tiles = -(-self._rows[self._last] // held[self._last])
        for team in self._shape.lane_teams:
            if tiles < _FULL * -(-tiles // team) * team:
                continue
            for axis, count in enumerate(held):
                if axis != self._last and count % team == 0 and self._may_share(axis):
                    yield team, axis

    def _may_share(self, axis: int) -> bool:
        """True if a team can load all that depends on an axis."""
        if self._work.has_choice:
            return False
        return all(read.is_shared(self._last, axis) for read in self._reads if axis in read.axes)

    def _cost(
        self,
        held: Sequence[int],
        steps: Sequence[int],
        loads: Sequence[tuple[float, int]],
        teams: Sequence[int],
    ) -> float:
        """The cost of loads and additions for each addend that is needed.

        Args:
            held: The results of a thread along each axis.
            steps: The elements that it adds at a time along each summed axis.
            loads: For each read, the cost of what a block of addends loads, and its elements.
            teams: For each read, the threads that share its loads.
        """
        block, cost = prod(held) * prod(steps), float(_STEP_COST)
        registers = prod(held)
        for (load_cost, count), team in zip(loads, teams, strict=True):
            cost += load_cost / team
            registers += -(-count // team)
        cost = (cost + block) * max(1.0, registers / _MOST_REGISTERS)
        tiles = [-(-extent // count) for extent, count in zip(self._rows, held, strict=True)]
        waste = prod(tiles) * prod(held) / max(1, prod(self._rows))
        threads = prod(tiles) * max(1, prod(self._summed) // SHORTEST_PART)
        idle = max(1.0, self._shape.enough_threads / max(1, threads)) ** _IDLE_WEIGHT
        return cost * waste * idle / block

    def _tile(self, held: tuple[int, ...], steps: tuple[int, ...], team: int, axis: int) -> SumTile:
        rows = [*zip(self._rows, held, strict=True)]
        last = [team if k == self._last else 1 for k in range(len(rows))]
        return SumTile(
            held,
            steps,
            tuple(n == count for n, count in zip(self._summed, steps, strict=True)),
            tuple(n % (count * t) == 0 for (n, count), t in zip(rows, last, strict=True)),
            tuple(n % WIDTH == 0 == count % WIDTH for n, count in rows),
            team=team,
            team_axis=self._last,
            shared_axis=axis,
            windows=self._windows,
            known=(*self._symbols_of_windows(),),
        )

    @property
    def _has_windows(self) -> bool:
        """True if results beside each other add elements that overlap."""
        return any(map(self._work.overlaps, range(self._work.rank)))

    @property
    def _windows(self) -> tuple[int, ...]:
        """The extents of short summed axes, 0 for others, if windows overlap."""
        if not self._has_windows:
            return ()
        return tuple(count if count <= _LONGEST_WINDOW else 0 for count in self._summed)

    def _symbols_of_windows(self) -> Iterator[tuple[str, int]]:
        """The symbols in extents of windows, and their numbers."""
        extents = zip(self._work.summed, self._windows, strict=False)
        names = {name for extent, count in extents if count for name in sizes.symbols(extent)}
        yield from ((name, self._known[name]) for name in sorted(names))
