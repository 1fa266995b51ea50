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
from shaderad.ir.types import byte_count
from shaderad.plan.kernels import WIDTH
from shaderad.plan.nest.teams import Team, crosses_waves
from shaderad.plan.reductions import Reduction, ops_of

FEWEST_LOADS = 2
"""The loads of each lane, unless a row is shorter."""
MOST_HELD = 32
"""The most elements of a row that a lane holds: the code of each is written out."""
_STATE_LIMIT = 64
"""The most bytes of a total: group memory holds one for each team of a workgroup."""
_WORD = 4


@dataclass(frozen=True, eq=False)
class RowWork:
    """What is computed of each row.

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
        return sum(-(-byte_count(v.element) // _WORD) for v in self.first_phase)

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
        width: Elements that a lane takes at a time, 1 or 4.
        registers: Steps of a lane whose elements it holds; 0 if it holds none.
        is_even: True if all lanes take as many steps as there are registers.
    """

    team: Team
    width: int
    registers: int = 0
    is_even: bool = False


ALONE = Team(1, 1, 1)


@dataclass(frozen=True, eq=False)
class RowParts:
    """Parts of long rows.

    Attributes:
        totals: The totals of all parts: those of a row along the last axis.
        length: The elements of a part, a multiple of 4; of the last part of a row the most.
    """

    totals: Value
    length: Size


def parts_of(work: RowWork, shape: LaunchShape) -> RowParts:
    """The parts of rows of one reduction; one for each row if these are short."""
    (node,) = work.folds
    each = sizes.floor_divide(shape.rows.chunk_limit, sizes.maximum(1, work.row_count))
    wanted = sizes.minimum(sizes.divide_up(work.length, shape.row_part), each)
    fours = sizes.divide_up(work.length, sizes.multiply(WIDTH, sizes.maximum(1, wanted)))
    length = sizes.multiply(WIDTH, sizes.maximum(1, fours))
    count = sizes.maximum(1, sizes.divide_up(work.length, length))
    return RowParts(Value(ArrayType(node.results[0].element, (work.row_count, count))), length)


def sharing_of(length: int, width: int, shape: LaunchShape, work: RowWork) -> RowSharing | None:
    """The sharing for rows or parts of `length` elements; `None` if registers are too few."""
    steps = length // width
    most = shape.workgroup & -shape.workgroup
    lanes = min(most, _power_below(max(1, steps // FEWEST_LOADS)))
    registers = 0
    if work.first_phase:
        most_elements = min(MOST_HELD, shape.held_words // work.held_words)
        room = most_elements // width
        while lanes < most and lanes * room < steps:
            lanes *= 2
        registers = -(-steps // lanes)
        if registers > room:
            return None
    team = team_of(lanes, shape, work.folds)
    return RowSharing(team, width, registers, registers > 0 and steps == registers * lanes)


def team_of(lanes: int, shape: LaunchShape, folds: Iterable[Reduction]) -> Team:
    """The team with so many lanes that fold these totals."""
    crosses = all(crosses_waves(node.results[0].element) for node in folds)
    wave = min(lanes, shape.wave) if crosses else 1
    return Team(lanes, wave, shape.workgroup)


def _power_below(count: int) -> int:
    return 1 << (count.bit_length() - 1)
