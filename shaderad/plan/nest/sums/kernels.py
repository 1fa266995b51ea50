"""Sums over tiles: which sums have them, and the kernels of one of them at some sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from math import prod
from typing import NamedTuple

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Expr, If, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access
from shaderad.plan.kernels import WIDTH, IsStored, PlanKernel, Writer, write_kernel
from shaderad.plan.nest.statements import counted, plus, store, zeroed
from shaderad.plan.nest.sums.tiles import SHORTEST_PART, SumTile, SumTiles
from shaderad.plan.nest.sums.work import NoSharingError, SumWork, is_sum_of_numbers
from shaderad.plan.nest.sums.writer import (
    COLUMN_SUM,
    RESULT,
    SumWriter,
    fold_of_lanes,
)
from shaderad.plan.nest.teams import crosses_waves
from shaderad.plan.positions import Indices, Position

_MOST_PARTS = 256
"""A thread adds them one after the other."""
_RUN = 64
"""The addends of a run."""
_LANES = 8
"""The most lanes of a wave that share a part of a sum: each then reads whole sectors of memory."""
_RUN_IN_GROUPS, _LONGEST_IN_GROUPS = 1024, 4096
"""The addends of a run where threads share loads, and the longest sum that is one run there: two
sums of each result need twice the registers."""


class SumKernels(NamedTuple):
    """The kernels of a sum."""

    tile: SumTile
    tiles: PlanKernel
    """Computes the sums of tiles, or of their parts."""
    parts: Value | None
    """The sums of parts; `None` if there is one part, which the first kernel finishes."""
    added: PlanKernel | None
    """Adds the parts."""


class Sums:
    """The kernels of one sum.

    Args:
        work: The sum, for which `has_tiles` holds.
        shape: How work is laid out over threads.
    """

    def __init__(self, work: SumWork, shape: LaunchShape) -> None:
        self.work, self._shape = work, shape
        self.tile_at = cache(self._tile_at)
        self.writer = cache(self._writer)
        self.kernels = cache(self._kernels)

    # -- sizes ---------------------------------------------------------------------------------

    @property
    def sizes(self) -> Iterator[Size]:
        """The sizes on which tiles depend."""
        yield from (*self.work.rows, *self.work.summed)
        for read in self.work.reads:
            yield from (stride for stride in read.strides if stride is not None)

    @property
    def open_tile(self) -> SumTile:
        """The tile for sizes that are open."""
        work = self.work
        counts = dict.fromkeys(range(work.rank), 1)
        axes = work.axes
        counts.update(zip(axes, (self._shape.tile_rows, WIDTH)[-len(axes) :], strict=True))
        held = tuple(
            max(1, min(counts[axis], extent)) if isinstance(extent, int) else counts[axis]
            for axis, extent in enumerate(work.rows)
        )
        steps = (1,) * len(work.summed)
        none = (False,) * work.rank
        tile = SumTile(
            held, steps, (False,) * len(steps), none, none,
            fits=False, run_axis=len(steps) - 1, run_steps=_RUN,
        )  # fmt: skip
        return replace(tile, part_count=self._part_count(tile))

    @cached_property
    def open_kernels(self) -> SumKernels:
        """The kernels for all sizes."""
        return self.kernels(self.open_tile, (), False)

    def _tile_at(self, sizes_by_name: tuple[tuple[str, int], ...], group_bytes: int) -> SumTile:
        """The best tile at some sizes, for so much group memory."""
        known = dict(sizes_by_name)
        tiles = SumTiles(self.work, known, self._shape)
        for tile in tiles.grouped():
            finished = self._with_parts(tile, known)
            if self.writer(finished).group_bytes <= group_bytes:
                return finished
        tile = self._with_parts(tiles.best(), known)
        lanes = min(self._shape.wave, _LANES)
        may_fold = self._shape.is_parallel and crosses_waves(self.work.addends.element)
        if tile.part_count == 1 or not may_fold:
            return tile
        # Few results: each of few threads would wait for memory at every step.
        return self._with_parts(tiles.best(has_teams=False), known, lanes)

    def _with_parts(self, tile: SumTile, known: Mapping[str, int], lanes: int = 1) -> SumTile:
        part_count = self._part_count(tile)
        parts = sizes.evaluate(part_count, known)
        if parts > 1:
            tile = replace(tile, part_count=part_count, lanes=lanes)
        else:
            tile = replace(tile, part_count=1)
        loops = [k for k, is_whole in enumerate(tile.are_whole) if not is_whole]
        counts = [
            sizes.evaluate(extent, known) // count
            for extent, count in zip(self.work.summed, tile.steps, strict=True)
        ]
        inner = prod(tile.steps)
        longest = -(-prod(counts) // (parts * tile.lanes)) * inner
        if longest <= (_LONGEST_IN_GROUPS if tile.is_grouped else _RUN):
            return tile
        run = _RUN_IN_GROUPS if tile.is_grouped else _RUN
        axis = loops.pop()
        while loops and inner * counts[axis] <= run:
            inner *= counts[axis]
            axis = loops.pop()
        return replace(tile, run_axis=axis, run_steps=max(1, run // inner))

    def _part_count(self, tile: SumTile) -> Size:
        """The number of parts into which sums are cut."""
        work, shape = self.work, self._shape
        cut = next((k for k, is_whole in enumerate(tile.are_whole) if not is_whole), None)
        if cut is None:
            return 1
        tiles = sizes.product(
            tuple(
                sizes.divide_up(extent, count)
                for extent, count in zip(work.rows, tile.held, strict=True)
            )
        )
        length = sizes.product(work.summed)
        busy = sizes.floor_divide(shape.enough_threads, sizes.maximum(1, tiles))
        wanted = sizes.minimum(busy, sizes.floor_divide(length, SHORTEST_PART))
        if not work.is_shared:
            # Memory limits these sums.
            elements = sizes.multiply(sizes.product(work.rows), length)
            streams = sizes.floor_divide(elements, shape.stream)
            streams = sizes.minimum(streams, sizes.floor_divide(length, shape.shortest_stream))
            wanted = sizes.maximum(wanted, streams)
        steps = sizes.floor_divide(work.summed[cut], tile.steps[cut])
        wanted = sizes.minimum(sizes.minimum(wanted, steps), _MOST_PARTS)
        return sizes.maximum(1, wanted)

    # -- kernels -------------------------------------------------------------------------------

    def binding_count(self, tile: SumTile, chosen: Sequence[bool]) -> int:
        """The number of buffers of the kernel with those loads that are chosen."""
        outputs = 1 if tile.part_count != 1 or self.work.column_sum is None else 2
        writer = self.writer(tile)
        return writer.read_count + writer.bound_twice(chosen) + outputs

    def _writer(self, tile: SumTile) -> SumWriter:
        return SumWriter(self.work, tile, self._parts(tile))

    def _parts(self, tile: SumTile) -> Value | None:
        if tile.part_count == 1:
            return None
        rows = self.work.rows
        first = rows[0] if self.work.column_sum is None else sizes.add(rows[0], 1)
        return Value(ArrayType(self.work.addends.element, (tile.part_count, first, *rows[1:])))

    def _kernels(self, tile: SumTile, chosen: tuple[bool, ...], by_four: bool) -> SumKernels:
        parts = self._parts(tile)
        writer = SumWriter(self.work, tile, parts)
        kernel = writer.kernel("sums", chosen, by_four=by_four)
        if parts is None:
            return SumKernels(tile, kernel, None, None)
        return SumKernels(tile, kernel, parts, _AddedParts(self.work, tile, parts).kernel())


class _AddedParts:
    """The kernel that adds the sums of parts."""

    def __init__(self, work: SumWork, tile: SumTile, parts: Value) -> None:
        self._work, self._tile, self._parts = work, tile, parts

    def kernel(self) -> PlanKernel:
        """The kernel; each of its threads stores a result."""
        work, lanes = self._work, self._tile.lanes
        shape = self._parts.shape[1:] + ((lanes,) if lanes > 1 else ())
        outputs = [(RESULT, work.result, Access.OUT)]
        if work.column_sum is not None:
            outputs.append((COLUMN_SUM, work.column_sum.result, Access.OUT))

        def has_memory(value: Value) -> bool:
            return value is self._parts or work.has_memory(value)

        return write_kernel("sum_of_parts", shape, has_memory, self._body, outputs)

    def _body(self, writer: Writer) -> list[Stmt]:
        work, lanes = self._work, self._tile.lanes
        own, lane = (writer.own[:-1], writer.own[-1]) if lanes > 1 else (writer.own, Position())
        total, step = writer.local("total", work.addends.element), writer.local("step", INT)
        (value,) = writer.values([self._parts], (writer.positions.of(step), *own))
        count = writer.positions.size(self._tile.part_count)
        start = writer.positions.expr(lane)
        loop = counted(step, start, count, [plus(total, value)], lanes)
        body = [zeroed(total), *self._over_parts(writer, own, start, total, step, [loop])]
        stored = self._stores(writer, own, total)
        if lanes == 1:
            return [*body, *stored]
        fold = fold_of_lanes(writer, lanes, [total], lane)
        return [*body, *fold.statements(for_all=False), fold.first(stored)]

    def _stores(self, writer: Writer, own: Indices, total: nodes.Var) -> list[Stmt]:
        """Stores a result, or the sum along a column."""
        work = self._work
        writer.bind(work.node.result, lambda _, __: total)
        written = writer.written(writer.values([work.result], own), "t")
        indices = writer.indices_in(work.result, own)
        stored = [*written.body, store(RESULT, indices, written.values[0])]
        if work.column_sum is None:
            return stored
        row, column = own
        rows = writer.positions.size(work.rows[0])
        behind = store(COLUMN_SUM, writer.indices_in(work.column_sum.result, (column,)), total)
        is_row = c.apply(ops.LT, writer.positions.expr(row), rows)
        return [If(condition=is_row, then=tuple(stored), otherwise=(behind,))]

    def _over_parts(
        self,
        writer: Writer,
        own: Indices,
        start: Expr,
        total: nodes.Var,
        step: nodes.Var,
        parts: Sequence[Stmt],
    ) -> Sequence[Stmt]:
        """Adds parts from `start` on.

        Without rows there are none, and the sums along columns are added here.
        """
        if self._work.column_sum is None:
            return parts
        (y,) = self._work.column_sum.operands
        at = own[-1], writer.positions.of(step)
        element = writer.written(writer.values([y], at), "u")
        body = [*element.body, plus(total, element.values[0])]
        extent = writer.positions.size(self._work.summed[0])
        whole = counted(step, start, extent, body, self._tile.lanes)
        has_rows = c.apply(ops.GT, writer.positions.size(self._work.rows[0]), c.whole(0))
        return [If(condition=has_rows, then=tuple(parts), otherwise=(whole,))]


# -- sums that have tiles -------------------------------------------------------------------------


def has_tiles(node: arrays.Reduce, is_stored: IsStored) -> bool:
    """True if `node` is a sum of cheap numbers that share reads, or lie in columns."""
    return sums_of(node, node.result, is_stored) is not None


def sums_of(
    node: arrays.Reduce,
    result: Value,
    is_stored: IsStored,
    column_sum: arrays.Reduce | None = None,
) -> SumWork | None:
    """The sum `node` by tiles that store `result`, it or an elementwise function of it.

    They also store `column_sum`, for which `has_column_sum` holds. `None` if there are no tiles.
    """
    if not is_sum_of_numbers(node):
        return None
    work = SumWork(node, result, is_stored, column_sum)
    try:
        return work if work.axes else None
    except NoSharingError:
        return None


def has_column_sum(node: arrays.Reduce, other: arrays.Reduce, is_stored: IsStored) -> bool:
    """True if `other` is a sum along the columns of the tiles of `node` of what these read."""
    (x,), (y, *init) = node.operands, other.operands
    is_alike = not init and other.op == ops.ADD and y.element == x.element
    if not is_alike or len(x.shape) != 3 or y.shape != x.shape[1:]:
        return False
    work = sums_of(node, node.result, is_stored)
    own = SumWork(other, other.result, is_stored)
    if work is None or len(work.addends.shape) != 3 or work.axes != (0, 1):
        return False
    try:
        found = {(read.value, read.strides[1:]) for read in work.reads if 0 not in read.axes}
        others = {(read.value, read.strides) for read in own.reads}
    except NoSharingError:
        return False
    return bool(others) and others <= found
