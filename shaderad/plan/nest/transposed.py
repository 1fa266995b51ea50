"""Values of one shape that read others along another axis -> a kernel with tiles in group memory.

A transpose stores adjacent elements that it reads a whole row apart. Here a workgroup first loads a
tile of what it reads, such that adjacent threads read adjacent elements, and then takes elements of
the tile in the order in which it stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.dags import substitute, variables
from shaderad.ir.nodes import Assign, Expr, For, If, Stmt, Store
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, Access
from shaderad.plan.elements import Elements
from shaderad.plan.kernels import PlanKernel, number_writer
from shaderad.plan.nest.memory import SharedArray, shared_array, shared_bytes
from shaderad.plan.nest.vectors import Read, ThreadReads
from shaderad.plan.positions import Indices, Position, add, times

TILE = 32
"""The extent of a tile along each of its axes."""
_PITCH = TILE + 1
"""Elements between rows of a tile, so that the threads of a wave access different banks."""
_ROW, _COLUMN, _TURN = "row", "column", "turn"


def has_whole_turns(workgroup: int) -> bool:
    """True if so many threads visit the lines of a tile in turns without a rest."""
    return workgroup % TILE == 0 and TILE * TILE % workgroup == 0


class TransposedElements:
    """The kernel with tiles that can take the place of `work`.

    Args:
        work: The kernel that computes one element of each of `values` per thread.
        values: What it stores.
    """

    def __init__(self, work: PlanKernel, values: Sequence[Value]) -> None:
        self._work, self.values = work, tuple(values)
        self._reads = frozenset(value for _, value in work.reads)

    @cached_property
    def axis(self) -> int | None:
        """The axis along which what is read in tiles lies side by side; `None` without such."""
        shape = self.values[0].shape
        *long, last = [axis for axis, extent in enumerate(shape) if _may_fill_tiles(extent)] or [-1]
        if self._work.bounds != "unchecked" or last != len(shape) - 1:
            return None
        counts = {axis: len(self._tiled(axis)) for axis in long}
        best = max(counts, key=lambda axis: counts[axis], default=None)
        return best if best is not None and counts[best] else None

    def _tiled(self, axis: int) -> Sequence[Value]:
        return [value for value, *_ in _TileWriter(self.values, self._reads, axis, 1).tiled]

    @property
    def extents(self) -> tuple[Size, Size]:
        """The extents of the axes of a tile."""
        assert self.axis is not None
        shape = self.values[0].shape
        return shape[self.axis], shape[-1]

    @property
    def group_bytes(self) -> int:
        """The memory of a workgroup that tiles take."""
        assert self.axis is not None
        return sum(TILE * _PITCH * shared_bytes(v.element) for v in self._tiled(self.axis))

    def write(self, workgroup: int) -> PlanKernel:
        """The kernel for workgroups of so many threads: see `has_whole_turns`."""
        assert self.axis is not None
        lines = workgroup // TILE
        writer = _TileWriter(self.values, self._reads, self.axis, lines)
        return writer.kernel(self._work.kernel.name)


def _may_fill_tiles(extent: Size) -> bool:
    """True for extents of a tile or more, and for open ones."""
    return not isinstance(extent, int) or extent >= TILE


class _TileWriter:
    """Writes one kernel.

    Args:
        values: What it stores.
        reads: The values in memory that it reads.
        axis: Of the rows of a tile; columns are those of the last axis.
        lines: Rows or columns of a tile that the workgroup visits in a turn, a divisor of `TILE`.
    """

    def __init__(
        self, values: Sequence[Value], reads: frozenset[Value], axis: int, lines: int
    ) -> None:
        self._values, self._axis = values, axis
        shape = values[0].shape
        tiles = [sizes.divide_up(shape[k], TILE) for k in (axis, -1)]
        outer = (*shape[:axis], *shape[axis + 1 : -1])
        self._writer = writer = number_writer((*outer, *tiles, lines, TILE), reads.__contains__)
        *self._outer, row, column, line, self._lane = writer.own
        self._first = times(row, TILE), times(column, TILE)
        self._own = {name: writer.positions.of(c.variable(name, INT)) for name in (_ROW, _COLUMN)}
        turn = writer.positions.of(c.variable(_TURN, INT))
        self._turns = TILE // lines
        self._line = add(line, times(turn, lines))
        """The line of the tile that the thread visits."""
        writer.local_types |= dict.fromkeys((_ROW, _COLUMN, _TURN), INT)
        self._reads = ThreadReads(writer)
        elements = Elements(writer.positions, reads.__contains__, self._reads.read)
        self._elements = [elements.at(value, self._places) for value in values]
        self._tiles: list[SharedArray] = []
        self.tiled = [*self._tiled()]
        """The elements that come from tiles, by their numbers in the arrays that are read."""

    @property
    def _places(self) -> Indices:
        """The indices of the thread's element in each value."""
        own = [*self._outer]
        own.insert(self._axis, self._own[_ROW])
        return (*own, self._own[_COLUMN])

    def _tiled(self) -> Iterator[Read]:
        row, column = (self._own[name].terms[0][0] for name in (_ROW, _COLUMN))
        for read in self._reads.outside_of_choices(self._elements):
            at, factors = read.at, dict(read.at.terms)
            is_turned = factors.get(column, 0) not in (-1, 0, 1)
            used = variables(self._writer.positions.expr(at))
            is_known = not used & self._reads.names
            if is_turned and is_known and factors.get(row) in (-1, 1):
                yield read

    def kernel(self, name: str) -> PlanKernel:
        """The kernel."""
        names = [f"y{k}" for k in range(len(self._values))]
        body = [self._loads(), nodes.Barrier(), self._stores(names)]
        outputs = [(n, v, Access.OUT) for n, v in zip(names, self._values, strict=True)]
        return self._writer.finish(name, body, outputs)

    # -- the two visits of a tile --------------------------------------------------------------

    def _loads(self) -> Stmt:
        """Loads the tiles: adjacent threads visit adjacent rows of results.

        A place beyond the results holds the last element in its row or column, so loads do not
        depend on tests, and a thread has those of all turns in flight.
        """
        body: list[Stmt] = [
            Assign(name=name, value=c.apply(ops.MIN, at, c.apply(ops.SUB, extent, c.whole(1))))
            for name, at, extent in self._visited(self._lane, self._line)
        ]
        place = add(times(self._line, _PITCH), self._lane)
        for k, (value, at, _) in enumerate(self.tiled):
            tile = shared_array(self._writer, f"tile{k}", value.element, TILE * _PITCH)
            self._tiles.append(tile)
            body.append(tile.put(place, self._writer.read_number(value, at)))
        return self._each_turn(body)

    def _stores(self, names: Sequence[str]) -> Stmt:
        """Computes and stores the results: adjacent threads visit adjacent columns."""
        writer = self._writer
        place = add(times(self._lane, _PITCH), self._line)
        loaded = {read: tile.get(place) for read, tile in zip(self.tiled, self._tiles, strict=True)}
        elements = self._reads.loads((), loaded)
        written = writer.written([substitute(e, elements) for e in self._elements])
        stores = (
            Store(
                buffer=name,
                indices=writer.indices_in(value, self._places),
                value=element,
                is_unique=True,
            )
            for name, value, element in zip(names, self._values, written.values, strict=True)
        )
        visited = self._visited(self._line, self._lane)
        places = [Assign(name=name, value=at) for name, at, _ in visited]
        tests = [c.apply(ops.LT, c.variable(name, INT), extent) for name, _, extent in visited]
        inside = c.all_hold(tests)
        assert inside is not None
        then = (*written.body, *stores)
        return self._each_turn([*places, If(condition=inside, then=then, otherwise=())])

    def _visited(self, row: Position, column: Position) -> Sequence[tuple[str, Expr, Expr]]:
        """The names of the row and column of results at a place of the tile, and their extents."""
        positions, shape = self._writer.positions, self._values[0].shape
        first_row, first_column = self._first
        return [
            (_ROW, positions.expr(add(first_row, row)), positions.size(shape[self._axis])),
            (_COLUMN, positions.expr(add(first_column, column)), positions.size(shape[-1])),
        ]

    def _each_turn(self, body: Sequence[Stmt]) -> Stmt:
        """Does `body` for each line of the tile that the thread visits."""
        return For(
            variable=_TURN,
            start=c.whole(0),
            stop=c.whole(self._turns),
            step=c.whole(1),
            is_unrolled=True,
            body=(*body,),
        )
