"""The work of threads that share rows, as data, and how they share them.

Work is done in phases: one for each reduction, then one for what depends on the last total. In each
phase a thread visits its elements of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import nodes, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import WORD_BYTES, Type, byte_count
from shaderad.plan.kernels import WIDTH
from shaderad.plan.nest.teams import Team, crosses_waves
from shaderad.plan.reductions import Reduction, operators_of

FEWEST_LOADS = 2
"""The loads of each lane, unless a row is shorter."""
MOST_HELD = 32
"""The most elements of a row that a lane holds: the code of each is written out."""
MOST_SPAN = 64
"""The most threads with adjacent rows; the others of a workgroup are lanes of these."""
FEWEST_ADJACENT = 8
"""The fewest adjacent numbers that adjacent threads should access."""
BLOCK = 8
"""The elements that a thread folds before it adds them to its total."""
NEIGHBOURS = 8
"""Adjacent threads that fold parts of one row, of which they take adjacent elements."""
SHORTEST_SHARED = 128
"""The fewest elements of rows that threads share at sizes that are open."""
_LARGEST_SHARED = 64
"""The most bytes of a total in group memory, which holds one for each team of a workgroup."""


@dataclass(frozen=True, eq=False)
class RowWork:
    """The values that are computed of each row.

    Attributes:
        name: The name of a kernel that computes the elements of the first reduction.
        folds: Reductions of rows of one number and length. Elements of one may depend on the
            totals before it.
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
    def totals(self) -> Sequence[Type]:
        """The types of the totals."""
        return [node.results[0].element for node in self.folds]

    @property
    def held_words(self) -> int:
        """Words that a thread holds for each of its elements."""
        return sum(-(-byte_count(v.element) // WORD_BYTES) for v in self.first_phase)

    @property
    def is_ordered(self) -> bool:
        """True if elements must be folded in their order."""
        return not all(map(_commutes, self.folds))


def is_large(total: Type) -> bool:
    """True if group memory has no room for totals of this type."""
    return byte_count(total) > _LARGEST_SHARED


def _commutes(node: Reduction) -> bool:
    return all(not isinstance(op, nodes.Function) or op.commutes for op, _ in operators_of(node))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Elements that a thread folds before it adds them to its total: rounding errors stay small.

    Attributes:
        count: Their number.
        is_rolled: True if the code of an element is written once, false for each of them.
    """

    count: int = 1
    is_rolled: bool = False


SINGLE = Blocks()
"""Single elements."""


@dataclass(frozen=True, slots=True)
class RowSharing:
    """How threads share rows.

    Attributes:
        team: The threads of a row or part.
        width: Adjacent elements of a row that a lane takes at a time, 1 or 4.
        rows: Adjacent rows of which a lane takes an element at a time, 1 or 4.
        is_across: True if adjacent threads have adjacent rows; else they are lanes of one row.
        registers: Steps of a lane whose elements it holds; 0 if it holds none.
        is_even: True if all lanes take as many steps as there are registers, or whole blocks.
        blocks: Steps of a lane whose elements it folds before it adds them to its total.
        are_apart: True if each lane of a part leaves a total; else they fold their totals.
        is_chosen: 1 if the kernel runs; 0 if another one does.
    """

    team: Team
    width: int = 1
    rows: int = 1
    is_across: bool = False
    registers: int = 0
    is_even: bool = False
    blocks: Blocks = SINGLE
    are_apart: bool = False
    is_chosen: Size = 1

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that tell it from others on the same device."""
        kind, count = -3 if self.is_across else -2, max(self.width, self.rows)
        team = self.team.lanes, self.team.span
        blocks = self.blocks.count, self.blocks.is_rolled
        return kind, *team, count, self.registers, self.is_even, *blocks


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
    team = team_along(lanes, shape, work.totals)
    return RowSharing(team, width=width, registers=registers, is_even=is_even)


def sharing_alone(
    length: int | None, blocks: Blocks, shape: LaunchShape, lanes: int = 1, width: int = 1
) -> RowSharing:
    """The sharing of rows of `length` elements, or of their parts, if each lane folds its own.

    `length` is `None` if it is open.
    """
    if not blocks.is_rolled:
        blocks = replace(blocks, count=max(1, blocks.count // width))
    is_even = length is not None and length % (lanes * blocks.count * width) == 0
    team = Team(lanes, 1, shape.workgroup)
    return RowSharing(team, width=width, is_even=is_even, blocks=blocks, are_apart=lanes > 1)


def sharing_of_all(shape: LaunchShape, work: RowWork) -> RowSharing:
    """The sharing by all lanes that a row may have, for all lengths."""
    return RowSharing(team_along(most_lanes(shape), shape, work.totals))


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
    """The most lanes of a row: a power of two that divides a workgroup."""
    return shape.workgroup & -shape.workgroup if shape.rows.is_together else 1


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
        totals: The totals of all parts, or of their lanes: those of a row along the last axis.
        length: The elements of a part, a multiple of 4; of the last part of a row the most.
        count: The parts of a row.
    """

    totals: Value
    length: Size
    count: Size


def parts_of(work: RowWork, shape: LaunchShape, adjacent: int = 1) -> RowParts:
    """The parts of rows of one reduction; one for each row if these are short.

    A workgroup folds parts of so many `adjacent` rows.
    """
    groups = sizes.maximum(1, sizes.divide_up(work.row_count, adjacent))
    least = max(WIDTH, shape.rows.chunk_length * (WIDTH if adjacent > 1 else 1) // adjacent)
    wanted = sizes.divide_up(work.length, least)
    wanted = sizes.minimum(wanted, sizes.floor_divide(shape.rows.chunk_limit, groups))
    return _parts(work, wanted, WIDTH, 1)


def parts_alone(work: RowWork, lanes: int, shape: LaunchShape) -> RowParts:
    """The parts of rows of one reduction, of which each of so many lanes folds its elements."""
    cut = shape.rows
    wanted = sizes.divide_up(work.length, cut.chunk_length * lanes)
    rows = sizes.maximum(1, sizes.multiply(work.row_count, lanes))
    wanted = sizes.minimum(wanted, sizes.floor_divide(cut.chunk_limit, rows))
    return _parts(work, wanted, BLOCK * lanes, lanes)


def _parts(work: RowWork, wanted: Size, multiple: int, per_part: int) -> RowParts:
    """Parts of a multiple of so many elements, about as many as are wanted."""
    (node,) = work.folds
    each = sizes.divide_up(work.length, sizes.multiply(multiple, sizes.maximum(1, wanted)))
    length = sizes.multiply(multiple, sizes.maximum(1, each))
    count = sizes.maximum(1, sizes.divide_up(work.length, length))
    shape = (work.row_count, sizes.multiply(count, per_part))
    totals = Value(ArrayType(node.results[0].element, shape))
    return RowParts(totals, length, count)
