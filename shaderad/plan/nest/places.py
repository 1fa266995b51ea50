"""The places of a nest that one thread visits, and the statements that visit them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import BOOL
from shaderad.plan.nest.nest import AxisKind, Nest, NestPart
from shaderad.plan.nest.statements import counted, guarded
from shaderad.plan.positions import Indices, Position, Positions, add, constant, times


def places(nest: Nest, own: Iterable[Position]) -> Iterator[Indices]:
    """The places of a thread whose code is written, in row-major order.

    `own`: the thread's position in each other part, in the order of axes.
    """
    rest = iter(own)
    along = [[*_along(parts, rest)] for parts in nest.axes]
    return product(*along)


def _along(parts: Sequence[NestPart], own: Iterator[Position]) -> Iterator[Position]:
    """A thread's positions along an axis."""
    choices = [
        [constant(k) for k in range(_number(part.extent))] if part.is_written_out else [next(own)]
        for part in parts
    ]
    for numbers in product(*choices):
        position = Position()
        for part, number in zip(parts, numbers, strict=True):
            position = add(times(position, part.extent), number)
        yield position


def _number(extent: Size) -> int:
    assert isinstance(extent, int)
    return extent


@dataclass(frozen=True, slots=True)
class Visit:
    """The visit of a thread of a workgroup at its places in a nest.

    Attributes:
        positions: Of the kernel.
        nest: How threads share places: in turns, or by tiles of places whose code is written.
        shape: The places along each axis, at most those of the nest.
        thread: The number of the thread, as an expression.
        threads: The number of threads.
        own: The thread's position in each part for threads, in the order of axes.
        counter: Counts turns, or positions if the number of turns is open; `None` for tiles.
    """

    positions: Positions
    nest: Nest
    shape: Shape
    thread: Expr
    threads: Size
    own: Sequence[Position]
    counter: nodes.Var | None

    @property
    def turns(self) -> Size:
        """The number of turns."""
        return self.nest.count(AxisKind.LOOP)

    @property
    def turn(self) -> Position:
        """The number of the turn; 0 if there is one."""
        if self.counter is None or self.turns in (0, 1):
            return Position()
        return self.positions.of(self.counter)

    def places(self) -> Iterator[tuple[Indices, Expr | None]]:
        """The places that have code, and the test that they are inside of `shape`, if needed."""
        if not isinstance(self.turns, int):
            yield (self.turn,), None
            return
        turns = (self.turn for _ in self.nest.extents(AxisKind.LOOP))
        for at in places(self.nest, (*turns, *self.own)):
            along = zip(at, self.shape, self.nest.axes, self.own, strict=True)
            tests = [test for axis in along for test in self._tests(*axis)]
            if not any(c.number_of(test) is False for test in tests):
                yield at, c.all_hold(tests)

    def _tests(
        self, at: Position, extent: Size, parts: Sequence[NestPart], own: Position
    ) -> Iterator[Expr]:
        """Tests that a position along an axis is inside of the extent."""
        outer, inner = (_number(part.extent) for part in parts)
        extent = _number(extent)
        if not parts[-1].is_written_out:
            if outer * inner != extent:
                yield _below(self.positions.expr(at), extent)
            return
        # The tiles that have this place, of which the thread's own must be one.
        tiles = (extent - 1 - _number(at.constant)) // inner + 1
        if tiles <= 0:
            yield c.truth(BOOL, False)
        elif outer > 1:
            self.positions.limit(own, 0, min(tiles, outer) - 1)
            if tiles < outer:
                yield _below(self.positions.expr(own), tiles)

    def statements(self, body: Sequence[Stmt]) -> Sequence[Stmt]:
        """Does `body`, the code of all places, in each turn."""
        if self.counter is None:
            count = self.nest.count(AxisKind.THREAD)
            is_all = count == self.threads
            return guarded(None if is_all else _below(self.thread, _number(count)), body)
        if not isinstance(self.turns, int):
            (extent,) = self.shape
            stop, step = self.positions.size(extent), self.positions.size(self.threads)
            return [counted(self.counter, self.thread, stop, body, step)]
        if self.turns <= 1:
            return body
        return [counted(self.counter, c.whole(0), c.whole(self.turns), body)]


def _below(value: Expr, limit: int) -> Expr:
    return c.apply(ops.LT, value, c.whole(limit))
