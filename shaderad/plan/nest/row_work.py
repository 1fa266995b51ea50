"""The work of threads that share rows, as data, and how they share them.

Work is done in phases: one for each reduction, then one for what depends on the last total. In each
phase a thread visits its elements of the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import nodes, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import WORD_BYTES, Type, byte_count
from shaderad.plan.kernels import WIDTH
from shaderad.plan.nest.teams import Team, crosses_waves
from shaderad.plan.reductions import Reduction, ops_of

FEWEST_LOADS = 2
"""The loads of each lane, unless a row is shorter."""
MOST_HELD = 32
"""The most elements of a row that a lane holds: the code of each is written out."""
MOST_SPAN = 64
"""The most threads with adjacent rows; the others of a workgroup are lanes of these."""
FEWEST_ADJACENT = 8
"""The fewest adjacent numbers that adjacent threads should access."""
_STATE_LIMIT = 64
"""The most bytes of a total: group memory holds one for each team of a workgroup."""


@dataclass(frozen=True, eq=False)
class RowWork:
    """The values that are computed of each row.

    Attributes:
        name: The name of a kernel that computes the elements of the first reduction.
        folds: Reductions of rows of one number and length, for each of which `has_rows` holds.
            Elements of one may depend on the totals before it.
        results: The values that are stored for each row: totals, or functions of them.
        elements: For each phase, values in the order of elements that are computed in it.
        stored: Those of `elements` that are stored.
        reads: The values in memory that the kernel reads.
        first_phase: Values in the order of elements that a later phase needs again, and the phase
            in which a thread gets them.
    """

    name: str
    folds: tuple[Reduction, ...]
    results: tuple[Value, ...]
    elements: tuple[tuple[Value, ...], ...]
    stored: frozenset[Value]
    reads: frozenset[Value]
    first_phase: dict[Value, int] = field(default_factory=dict[Value, int])

    @property
    def places(self) -> Shape:
        """The shape of the elements."""
        return self.folds[0].operands[0].shape

    @property
    def row_count(self) -> Size:
        """The number of rows."""
        return sizes.product(self.places[:-1])

    @property
    def length(self) -> Size:
        """The number of elements of a row."""
        return self.places[-1]

    @property
    def writes(self) -> tuple[Value, ...]:
        """The values that it stores."""
        inner = (v for values in self.elements for v in values if v in self.stored)
        return (*self.results, *inner)

    @property
    def held_words(self) -> int:
        """Words that a thread holds for each of its elements."""
        return sum(-(-byte_count(v.element) // WORD_BYTES) for v in self.first_phase)

    @property
    def is_ordered(self) -> bool:
        """True if elements must be folded in their order."""
        return not all(map(_commutes, self.folds))


def has_rows(node: Reduction) -> bool:
    """True if threads can share the rows of `node`: totals have few bytes."""
    return byte_count(node.results[0].element) <= _STATE_LIMIT


def _commutes(node: Reduction) -> bool:
    return all(not isinstance(op, nodes.Function) or op.commutes for op in ops_of(node))


@dataclass(frozen=True, slots=True)
class RowSharing:
    """How threads share rows.

    Attributes:
        team: The threads of a row or part.
        width: Adjacent elements of a row that a lane takes at a time, 1 or 4.
        rows: Adjacent rows of which a lane takes an element at a time, 1 or 4.
        is_across: True if adjacent threads have adjacent rows; else they are lanes of one row.
        registers: Steps of a lane whose elements it holds; 0 if it holds none.
        is_even: True if all lanes take as many steps as there are registers.
    """

    team: Team
    width: int = 1
    rows: int = 1
    is_across: bool = False
    registers: int = 0
    is_even: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that tell it from others on the same device."""
        kind, count = -3 if self.is_across else -2, max(self.width, self.rows)
        return kind, self.team.lanes, self.team.span, count, self.registers, self.is_even


ALONG = RowSharing(Team(1, 1, 1), width=WIDTH)
"""A lane that takes four elements of a row."""
ACROSS = RowSharing(Team(1, 1, 1), rows=WIDTH, is_across=True)
"""A lane that takes elements of four rows."""


def sharing_along(length: int, width: int, shape: LaunchShape, work: RowWork) -> RowSharing | None:
    """The sharing for rows or parts of `length` elements; `None` if registers are too few."""
    steps = length // width
    lanes, registers = _lanes(steps, width, most_lanes(shape), shape, work)
    if registers is None:
        return None
    is_even = registers > 0 and steps == registers * lanes
    team = team_along(lanes, shape, [node.results[0].element for node in work.folds])
    return RowSharing(team, width=width, registers=registers, is_even=is_even)


def sharing_across(
    length: int, columns: int, rows: int, shape: LaunchShape, work: RowWork
) -> RowSharing | None:
    """The sharing of threads for `columns` adjacent rows; `None` where `sharing_along` is better.

    Each takes an element of `rows` of them at a time.
    """
    most = most_lanes(shape)
    span = min(most, MOST_SPAN, _power_below(max(1, columns // rows)))
    lanes, registers = _lanes(length, rows, most // span, shape, work)
    if registers is None or span * rows < FEWEST_ADJACENT:
        return None
    is_even = registers > 0 and length == registers * lanes
    team = Team(lanes, 1, shape.workgroup, span)
    return RowSharing(team, rows=rows, is_across=True, registers=registers, is_even=is_even)


def _lanes(
    steps: int, count: int, most: int, shape: LaunchShape, work: RowWork
) -> tuple[int, int | None]:
    """The lanes for so many steps of `count` elements, and the steps that one of them holds.

    The latter is `None` if registers are too few.
    """
    lanes = fewest_lanes(steps, most)
    if not work.first_phase:
        return lanes, 0
    room = min(MOST_HELD, shape.held_words // work.held_words) // count
    while lanes < most and lanes * room < steps:
        lanes *= 2
    registers = -(-steps // lanes)
    return lanes, registers if registers <= room else None


def most_lanes(shape: LaunchShape) -> int:
    """The largest power of two that divides a workgroup."""
    return shape.workgroup & -shape.workgroup


def fewest_lanes(steps: int, most: int) -> int:
    """The lanes that share so many steps, if each has `FEWEST_LOADS` where there are enough."""
    return min(most, _power_below(max(1, steps // FEWEST_LOADS)))


def team_along(lanes: int, shape: LaunchShape, totals: Iterable[Type]) -> Team:
    """The team of adjacent lanes that exchange totals of these types, in waves if they can."""
    wave = min(lanes, shape.wave) if all(map(crosses_waves, totals)) else 1
    return Team(lanes, wave, shape.workgroup)


def _power_below(count: int) -> int:
    return 1 << (count.bit_length() - 1)


@dataclass(frozen=True, eq=False)
class RowParts:
    """Parts of long rows.

    Attributes:
        totals: The totals of all parts: those of a row along the last axis.
        length: The elements of a part, a multiple of 4; of the last part of a row the most.
    """

    totals: Value
    length: Size


def parts_of(work: RowWork, shape: LaunchShape, adjacent: int = 1) -> RowParts:
    """The parts of rows of one reduction; one for each row if these are short.

    A workgroup folds parts of so many `adjacent` rows.
    """
    (node,) = work.folds
    groups = sizes.maximum(1, sizes.divide_up(work.row_count, adjacent))
    least = max(WIDTH, shape.row_part * (WIDTH if adjacent > 1 else 1) // adjacent)
    wanted = sizes.divide_up(work.length, least)
    wanted = sizes.minimum(wanted, sizes.floor_divide(shape.rows.chunk_limit, groups))
    fours = sizes.divide_up(work.length, sizes.multiply(WIDTH, sizes.maximum(1, wanted)))
    length = sizes.multiply(WIDTH, sizes.maximum(1, fours))
    count = sizes.maximum(1, sizes.divide_up(work.length, length))
    return RowParts(Value(ArrayType(node.results[0].element, (work.row_count, count))), length)
