"""A reduction of rows -> kernels whose threads share each row.

The lanes of a row are adjacent threads of a workgroup. Adjacent lanes read adjacent elements, four
at once where sizes allow it. Each lane folds its elements, then lanes fold their totals: first
across the wave, then in group memory. Long rows are cut into parts, whose totals a second kernel
folds in the same way. Sizes and the launch shape decide the association of a total, so it is the
same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, For, If, Stmt, Store
from shaderad.ir.sizes import Size
from shaderad.ir.types import (
    FLOAT,
    INT,
    UINT,
    Access,
    BufferType,
    Scalar,
    Struct,
    Type,
    Vector,
    byte_count,
)
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, PlanKernel, number_writer
from shaderad.plan.nest.vectors import COST_LIMIT, ThreadElements, comes_by_four, quarter_of
from shaderad.plan.positions import Indices, Position, add, constant, number, times
from shaderad.plan.reductions import Reduction, combined_elements, has_neutral, neutral_of

FEWEST_LOADS = 2
"""The loads of each lane, unless a row is shorter."""
_STATE_LIMIT = 64
"""The most bytes of a total: group memory holds one for each team of a workgroup."""
_FOLDED_AT_ONCE = 8
"""Totals that one thread folds between two barriers."""
_STEP, _TOTAL, _SLOT, _PARTS = "step", "total", "slot", "parts"


@dataclass(frozen=True, slots=True)
class RowSharing:
    """How threads share rows.

    Attributes:
        lanes: Threads of a row or part, a power of two.
        width: Elements that a lane takes at a time, 1 or 4.
        wave: Lanes that fold across the wave, a power of two; 1 for none.
        workgroup: Threads of a workgroup, a multiple of `lanes`.
    """

    lanes: int
    width: int
    wave: int
    workgroup: int

    @property
    def slots(self) -> int:
        """Totals in group memory; 0 if the lanes of a row are of one wave."""
        return self.workgroup // self.wave if self.lanes > self.wave else 0


def sharing_of(length: int, width: int, shape: LaunchShape, total: Type) -> RowSharing:
    """The sharing for rows of `length` elements, whose totals have the type `total`."""
    loads = max(1, length // (width * FEWEST_LOADS))
    most = shape.workgroup & -shape.workgroup
    lanes = min(most, 1 << (loads.bit_length() - 1))
    wave = min(lanes, max(shape.lane_teams, default=1)) if _crosses_waves(total) else 1
    return RowSharing(lanes, width, wave, shape.workgroup)


def has_rows(node: Reduction) -> bool:
    """True for reductions whose elements may be combined in any order, with totals of few bytes."""
    return has_neutral(node) and byte_count(node.results[0].element) <= _STATE_LIMIT


def _crosses_waves(t: Type) -> bool:
    """True if lanes of a wave can exchange values of type `t`."""
    if isinstance(t, Struct):
        return all(_crosses_waves(field) for _, field in t.fields)
    return (t.element if isinstance(t, Vector) else t) in (FLOAT, INT, UINT)


def _of_lane(value: Expr, mask: int) -> Expr:
    """`value` in the lane whose number differs in the bits of `mask`."""
    t = value.type
    if isinstance(t, Struct):
        return c.construct(t, [_of_lane(c.field(value, name), mask) for name, _ in t.fields])
    if isinstance(t, Vector):
        return c.construct(t, [_of_lane(c.component(value, k), mask) for k in range(t.count)])
    assert isinstance(t, Scalar)
    return nodes.OfLane(type=t, value=value, mask=mask)


class Rows:
    """The kernels of one reduction.

    Args:
        node: The reduction, for which `has_rows` holds.
        name: The name of a kernel that computes its elements.
        reads: The values in memory that the kernels read.
        results: What they store for each row: the result of `node`, or functions of it.
        beside: Values, in the order of elements, that they also store.
        shape: How work is laid out over threads.
    """

    def __init__(
        self,
        node: Reduction,
        name: str,
        reads: Sequence[Value],
        results: Sequence[Value],
        beside: Sequence[Value],
        shape: LaunchShape,
    ) -> None:
        self.node, self.name = node, name
        self.results, self.beside = tuple(results), tuple(beside)
        self.x, *self.init = node.operands
        inside = {node.results[0], *results, *beside}
        self.reads = frozenset(v for v in reads if v not in inside)
        self.row_count = sizes.product(self.x.shape[:-1])
        self.length = self.x.shape[-1]
        each = sizes.floor_divide(shape.rows.chunk_limit, sizes.maximum(1, self.row_count))
        wanted = sizes.divide_up(self.length, shape.row_part)
        self.part_count = sizes.maximum(1, sizes.minimum(wanted, each))
        self.parts = Value(ArrayType(self.total, (self.row_count, self.part_count)))
        """The totals of the parts of each row, where these are cut."""
        self.whole = cache(self._whole)
        self.cut = cache(self._cut)
        self.added = cache(self._added)

    @property
    def total(self) -> Type:
        """The type of a total."""
        return self.node.results[0].element

    @cached_property
    def loads(self) -> Sequence[tuple[Size, ...]]:
        """For each load of four, the sizes that must be multiples of 4; none in long code."""
        return self._trial.loads if self._trial.cost <= COST_LIMIT else ()

    @cached_property
    def _trial(self) -> ThreadElements:
        return RowWriter(self, self.x, 1, RowSharing(1, WIDTH, 1, 1)).elements

    def binding_count(self, chosen: Sequence[bool]) -> int:
        """The most buffers of a kernel with those of `loads` that are chosen."""
        written = len(self.results) + len(self.beside)
        twice = self._trial.bound_twice(chosen) if chosen else 0
        return len(self.reads) + twice + written + 1

    def _whole(self, sharing: RowSharing, *chosen: bool) -> PlanKernel:
        """The kernel of whole rows, with those of `loads` that are chosen."""
        return RowWriter(self, self.x, 1, sharing).kernel(f"{self.name}_rows", chosen)

    def _cut(self, sharing: RowSharing, *chosen: bool) -> PlanKernel:
        """The kernel of the parts of rows."""
        writer = RowWriter(self, self.x, self.part_count, sharing)
        return writer.kernel(f"{self.name}_parts", chosen)

    def _added(self, sharing: RowSharing) -> PlanKernel:
        """The kernel that folds the totals of parts."""
        return RowWriter(self, self.parts, 1, sharing).kernel(f"{self.name}_of_parts", ())


class RowWriter:
    """Writes one kernel.

    Args:
        rows: The reduction.
        x: The elements of the last axis, that is folded.
        part_count: The parts of a row.
        sharing: How threads share rows.
    """

    def __init__(self, rows: Rows, x: Value, part_count: Size, sharing: RowSharing) -> None:
        self._rows, self._x, self._sharing = rows, x, sharing
        self._part_count = part_count
        self._beside = rows.beside if x is rows.x else ()
        parts = () if part_count == 1 else (part_count,)
        available = rows.reads | {rows.parts}
        self._writer = writer = number_writer(
            (rows.row_count, *parts, sharing.lanes), lambda v: v in available
        )
        self._row, *own_part, self._lane = writer.own
        (self._part,) = own_part or [Position()]
        self._step = writer.positions.of(c.variable(_STEP, INT))
        requests = (
            (value, self._in(value, k))
            for value in (x, *self._beside)
            for k in range(sharing.width)
        )
        self.elements = ThreadElements(writer, lambda v: v in available, requests)

    def _in(self, value: Value, k: int) -> Indices:
        """The indices in `value` of element `k` of those that the lane takes in a step."""
        at = add(times(self._step, self._sharing.width), constant(k))
        shape = (self._rows.row_count, self._x.shape[-1])
        return self._writer.positions.reshaped((self._row, at), shape, value.shape)

    def kernel(self, name: str, chosen: Sequence[bool]) -> PlanKernel:
        """The kernel with those loads of its elements that are chosen."""
        writer, rows, sharing = self._writer, self._rows, self._sharing
        total = self._local(_TOTAL, rows.total)
        body: list[Stmt] = [Assign(name=total.name, value=neutral_of(rows.node))]
        body.append(self._fold_own(total, chosen))
        body += self._fold_in_wave(total)
        body += self._fold_in_group(total)
        body.append(_each(sharing.lanes, [*self._stores(total)]))
        outputs = [(f"y{k}", v, Access.OUT) for k, v in enumerate(self._stored)]
        return writer.finish(name, body, outputs)

    @property
    def _stored(self) -> tuple[Value, ...]:
        results = self._rows.results if self._part_count == 1 else (self._rows.parts,)
        return (*results, *self._beside)

    def _local(self, name: str, t: Type) -> nodes.Var:
        self._writer.local_types[name] = t
        return c.variable(name, t)

    # -- the elements of a lane ----------------------------------------------------------------

    def _fold_own(self, total: nodes.Var, chosen: Sequence[bool]) -> Stmt:
        """Folds the elements that the lane takes, which are `lanes` steps apart."""
        sharing, positions = self._sharing, self._writer.positions
        step = self._local(_STEP, INT)
        count = sizes.floor_divide(self._x.shape[-1], sharing.width)
        length = sizes.divide_up(count, self._part_count)
        begin = times(self._part, length)
        start = positions.expr(add(begin, self._lane))
        end = positions.size(count)
        if self._part_count != 1:
            end = c.apply(ops.MIN, positions.expr(add(begin, constant(length))), end)
        written = self.elements.written(chosen)
        # Neighbours first: rounding errors of sums stay small.
        values = [*written.values[: sharing.width]]
        while len(values) > 1:
            values = [self._combined(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
        fold = Assign(name=total.name, value=self._combined(total, values[0]))
        body = (*written.body, fold, *self._stores_beside(written.values[sharing.width :]))
        return For(
            variable=step.name, start=start, stop=end, step=c.whole(sharing.lanes), body=body
        )

    def _combined(self, left: Expr, right: Expr) -> Expr:
        return combined_elements(self._rows.node, left, right)

    def _stores_beside(self, values: Sequence[Expr]) -> Iterator[Stmt]:
        """Stores the elements of other values that the lane takes in a step."""
        width, first = self._sharing.width, len(self._stored) - len(self._beside)
        for k, value in enumerate(self._beside):
            own = values[k * width : (k + 1) * width]
            name = f"y{first + k}"
            quarter = quarter_of(number(self._in(value, 0), value.shape))
            if width == WIDTH and quarter is not None and comes_by_four(value.element):
                yield self._writer.store_vector(name, quarter.at, own)
                continue
            for j, element in enumerate(own):
                indices = self._writer.indices_in(value, self._in(value, j))
                yield Store(buffer=name, indices=indices, value=element, is_unique=True)

    # -- the totals of lanes -------------------------------------------------------------------

    def _fold_in_wave(self, total: nodes.Var) -> Iterator[Stmt]:
        """Folds the totals of the lanes of a wave; each of them has the result."""
        mask = 1
        while mask < self._sharing.wave:
            other = self._local(f"other{mask}", total.type)
            yield Assign(name=other.name, value=_of_lane(total, mask))
            # Both lanes fold in the same order.
            yield Assign(name=total.name, value=self._combined(total, other))
            mask *= 2

    def _fold_in_group(self, total: nodes.Var) -> Iterator[Stmt]:
        """Folds the totals of waves through group memory; the first lane has the result."""
        sharing, positions = self._sharing, self._writer.positions
        count, slots = sharing.lanes // sharing.wave, sharing.slots
        if not slots:
            return
        buffer = nodes.Buffer(
            name=_PARTS, path=(_PARTS,), type=BufferType(Access.GROUP, total.type, 1), count=slots
        )
        self._writer.add_scratch(buffer, (slots,))
        thread = nodes.TeamLane(type=INT, size=sharing.workgroup, is_of_group=True)
        slot = self._local(_SLOT, INT)
        own, _ = positions.divided(positions.of(thread), sharing.wave)
        yield Assign(name=slot.name, value=positions.expr(own))
        at = positions.of(slot)
        yield _each(sharing.wave, [self._put(at, total)])
        yield nodes.Barrier()
        step, distance = 1, sharing.wave
        while count > _FOLDED_AT_ONCE:
            folded = self._fold_slots(total, at, step, _FOLDED_AT_ONCE)
            distance *= _FOLDED_AT_ONCE
            yield _each(distance, [*folded, self._put(at, total)])
            yield nodes.Barrier()
            count, step = count // _FOLDED_AT_ONCE, step * _FOLDED_AT_ONCE
        yield _each(sharing.lanes, [*self._fold_slots(total, at, step, count)])

    def _fold_slots(
        self, total: nodes.Var, first: Position, step: int, count: int
    ) -> Iterator[Stmt]:
        """Folds totals in group memory, which are `step` apart; `total` is the first of them."""
        for k in range(1, count):
            other = self._get(add(first, constant(k * step)), total.type)
            yield Assign(name=total.name, value=self._combined(total, other))

    def _slot(self, at: Position) -> tuple[Expr, ...]:
        place = self._writer.positions.expr(at)
        return (nodes.KnownNumber(type=INT, number=place, is_inside=True),)

    def _put(self, at: Position, value: Expr) -> Stmt:
        return Store(buffer=_PARTS, indices=self._slot(at), value=value, is_unique=True)

    def _get(self, at: Position, t: Type) -> Expr:
        return nodes.Load(type=t, buffer=_PARTS, indices=self._slot(at))

    # -- results ---------------------------------------------------------------------------

    def _stores(self, total: nodes.Var) -> Iterator[Stmt]:
        """Stores the total of a part, or what becomes of that of a row."""
        rows, writer = self._rows, self._writer
        if self._part_count != 1:
            indices = writer.indices_in(rows.parts, (self._row, self._part))
            yield Store(buffer="y0", indices=indices, value=total, is_unique=True)
            return
        result = rows.node.results[0]
        for init in rows.init:
            first = writer.read_number(init, self._row) if init.shape else writer.read(init, ())
            yield Assign(name=total.name, value=self._combined(first, total))

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            return total if value is result else writer.read(value, at, view)

        elements = Elements(writer.positions, lambda v: v is result or v in rows.reads, read)
        for k, value in enumerate(rows.results):
            at = writer.positions.reshaped((self._row,), (rows.row_count,), value.shape)
            written = writer.written([elements.at(value, at)], f"r{k}_")
            yield from written.body
            indices = writer.indices_in(value, at)
            store = Store(buffer=f"y{k}", indices=indices, value=written.values[0], is_unique=True)
            yield store


def _each(distance: int, body: Sequence[Stmt]) -> Stmt:
    """Does `body` in the first of each so many threads of a workgroup."""
    place = nodes.TeamLane(type=INT, size=distance, is_of_group=True)
    is_first = c.apply(ops.EQ, place, c.whole(0))
    return If(condition=is_first, then=tuple(body), otherwise=())
