"""A reduction of rows -> kernels whose threads share each row.

The lanes of a row are adjacent threads of a workgroup. Adjacent lanes read adjacent elements, four
at once where sizes allow it. Each lane folds its elements, then lanes fold their totals: first
across the wave, then in group memory. Long rows are cut into parts, whose totals a second kernel
folds in the same way. Sizes and the launch shape decide the association of a total, so it is the
same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.nodes import Assign, Expr, For, Stmt, Store
from shaderad.ir.sizes import Size
from shaderad.ir.types import (
    INT,
    Access,
    Type,
    byte_count,
)
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import WIDTH, PlanKernel, number_writer
from shaderad.plan.nest.exchange import (
    AT_ONCE,
    STATE_LIMIT,
    GroupSlots,
    each,
    of_lane,
    thread_of,
)
from shaderad.plan.nest.sharing import RowSharing
from shaderad.plan.nest.vectors import COST_LIMIT, ThreadElements, stores_of
from shaderad.plan.positions import Indices, Position, add, constant, times
from shaderad.plan.reductions import Reduction, combined_elements, has_neutral, neutral_of

_STEP, _TOTAL, _SLOT = "step", "total", "slot"


def has_rows(node: Reduction) -> bool:
    """True for reductions whose elements may be combined in any order, with totals of few bytes."""
    return has_neutral(node) and byte_count(node.results[0].element) <= STATE_LIMIT


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
        body.append(each(sharing.lanes, [*self._stores(total)]))
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
            places = [self._in(value, j) for j in range(width)]
            yield from stores_of(self._writer, f"y{first + k}", value, places, own)

    # -- the totals of lanes -------------------------------------------------------------------

    def _fold_in_wave(self, total: nodes.Var) -> Iterator[Stmt]:
        """Folds the totals of the lanes of a wave; each of them has the result."""
        mask = 1
        while mask < self._sharing.wave:
            other = self._local(f"other{mask}", total.type)
            yield Assign(name=other.name, value=of_lane(total, mask))
            # Both lanes fold in the same order.
            yield Assign(name=total.name, value=self._combined(total, other))
            mask *= 2

    def _fold_in_group(self, total: nodes.Var) -> Iterator[Stmt]:
        """Folds the totals of waves through group memory; the first lane has the result."""
        sharing, positions = self._sharing, self._writer.positions
        count, slots = sharing.lanes // sharing.wave, sharing.slots
        if not slots:
            return
        held = GroupSlots(self._writer, total.type, slots)
        thread = thread_of(sharing.workgroup)
        slot = self._local(_SLOT, INT)
        own, _ = positions.divided(positions.of(thread), sharing.wave)
        yield Assign(name=slot.name, value=positions.expr(own))
        at = positions.of(slot)
        yield each(sharing.wave, [held.put(at, total)])
        yield nodes.Barrier()
        step, distance = 1, sharing.wave
        while count > AT_ONCE:
            folded = self._fold_slots(held, total, at, step, AT_ONCE)
            distance *= AT_ONCE
            yield each(distance, [*folded, held.put(at, total)])
            yield nodes.Barrier()
            count, step = count // AT_ONCE, step * AT_ONCE
        yield each(sharing.lanes, [*self._fold_slots(held, total, at, step, count)])

    def _fold_slots(
        self, held: GroupSlots, total: nodes.Var, first: Position, step: int, count: int
    ) -> Iterator[Stmt]:
        """Folds totals in group memory, which are `step` apart; `total` is the first of them."""
        for k in range(1, count):
            other = held.get(add(first, constant(k * step)))
            yield Assign(name=total.name, value=self._combined(total, other))

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
