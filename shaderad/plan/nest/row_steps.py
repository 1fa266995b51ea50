"""The steps that the lane of a row visits, as loops of the kernel IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import ops, sizes
from shaderad.ir.nodes import Assign, Expr, For, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT
from shaderad.plan.kernels import Writer
from shaderad.plan.nest.row_elements import STEP
from shaderad.plan.nest.row_work import RowSharing
from shaderad.plan.nest.statements import counted, guarded
from shaderad.plan.positions import Position, add, constant, times

REGISTER = "register"
"""The local variable with the number of the step among those whose elements a lane holds."""
_STEP = c.variable(STEP, INT)
_BLOCK = "block"
"""The local variable with the first step of a block."""
_REST = "rest"
"""The local variable with the first step after whole blocks."""


@dataclass(frozen=True)
class LaneSteps:
    """The steps of a row, or of one of its parts, among lanes.

    Attributes:
        writer: Of the kernel.
        sharing: How threads share rows.
        count: The steps of a row.
        longest: The most steps of a part.
        part: The part; `None` for whole rows.
        is_ordered: True if a lane takes adjacent steps.
    """

    writer: Writer
    sharing: RowSharing
    count: Size
    longest: Size
    part: Position | None
    is_ordered: bool

    @property
    def distance(self) -> int:
        """The distance of the steps of a lane."""
        return 1 if self.is_ordered else self.sharing.team.lanes

    @property
    def are_unrolled(self) -> bool:
        """True if the code of all elements of a block is written."""
        return self.sharing.blocks.count > 1 and not self.sharing.blocks.is_rolled

    @property
    def block(self) -> Sequence[int]:
        """The steps of a block whose code is written, relative to the first."""
        return range(0, self._length if self.are_unrolled else 1, self.distance)

    @property
    def _length(self) -> int:
        """The distance of blocks."""
        return self.sharing.blocks.count * self.distance

    @property
    def _begin(self) -> Position:
        """The first step of the part."""
        return Position() if self.part is None else times(self.part, self.longest)

    @property
    def _run(self) -> Size:
        """The most steps of a lane."""
        return self.sharing.registers or sizes.divide_up(self.longest, self.sharing.team.lanes)

    def first(self, lane: Position) -> Position:
        """The first step of a lane."""
        return add(self._begin, times(lane, self._run) if self.is_ordered else lane)

    def _end(self) -> Expr:
        """The step after the last one of the part."""
        positions = self.writer.positions
        end = positions.size(self.count)
        if self.part is None:
            return end
        return c.apply(ops.MIN, positions.expr(add(self._begin, constant(self.longest))), end)

    def has_elements(self, lane: Position) -> Expr:
        """True if a lane, or one behind it, takes elements."""
        return c.apply(ops.LT, self.writer.positions.expr(self.first(lane)), self._end())

    def _local(self, name: str) -> Position:
        return self.writer.positions.of(self.writer.local(name, INT))

    def held(self, lane: Position, body: Sequence[Stmt]) -> Stmt:
        """Does `body` for each step of a lane that holds their elements."""
        positions = self.writer.positions
        register, _ = self._local(REGISTER), self._local(STEP)
        at = positions.expr(add(self.first(lane), times(register, self.distance)))
        is_inside = c.apply(ops.LT, c.variable(STEP, INT), self._end())
        return For(
            variable=REGISTER,
            start=c.whole(0),
            stop=c.whole(self.sharing.registers),
            step=c.whole(1),
            is_unrolled=True,
            is_in_registers=True,
            body=(
                Assign(name=STEP, value=at),
                *guarded(None if self.sharing.is_even else is_inside, body),
            ),
        )

    @property
    def has_rest(self) -> bool:
        """True if a lane takes steps by themselves."""
        return not self.are_unrolled or not self.sharing.is_even

    def unrolled(self, lane: Position, body: Sequence[Stmt]) -> Iterator[Stmt]:
        """Does `body` for each block of steps of a lane; `rest` has the steps after them."""
        positions, length = self.writer.positions, self._length
        step = self._local(STEP)
        stop = c.apply(ops.SUB, self._end_of(lane), c.whole(length - self.distance))
        first = positions.expr(self.first(lane))
        if not self.has_rest:
            yield counted(_STEP, first, stop, body, length)
            return
        self._local(_REST)
        after = Assign(name=_REST, value=positions.expr(add(step, constant(length))))
        yield Assign(name=_REST, value=first)
        yield counted(_STEP, first, stop, [*body, after], length)

    def rest(self, lane: Position, body: Sequence[Stmt]) -> Stmt:
        """Does `body` for each step of a lane, or for those after its blocks."""
        self._local(STEP)
        first = self.writer.positions.expr(self.first(lane))
        if self.are_unrolled:
            # The greater of both bounds the range of indices for whoever looks for it.
            first = c.apply(ops.MAX, self.writer.positions.expr(self._local(_REST)), first)
        return counted(_STEP, first, self._end_of(lane), body, self.distance)

    def rolled(
        self,
        lane: Position,
        before: Sequence[Stmt],
        body: Sequence[Stmt],
        after: Sequence[Stmt],
    ) -> Stmt:
        """Does `body` for each step of a lane, by blocks between `before` and `after`."""
        positions, end = self.writer.positions, self._end_of(lane)
        block = self._local(_BLOCK)
        self._local(STEP)
        first = positions.expr(block)
        stop = c.apply(ops.MIN, positions.expr(add(block, constant(self._length))), end)
        inner = counted(_STEP, first, stop, body, self.distance)
        start, whole = positions.expr(self.first(lane)), [*before, inner, *after]
        return counted(c.variable(_BLOCK, INT), start, end, whole, self._length)

    def _end_of(self, lane: Position) -> Expr:
        """The step after the last one of a lane."""
        end = self._end()
        if not self.is_ordered or self.sharing.team.lanes == 1:
            return end
        last = self.writer.positions.expr(add(self.first(lane), constant(self._run)))
        return c.apply(ops.MIN, last, end)
