"""A plan for all sizes -> the plan at some sizes, on a device.

Sizes decide whether one workgroup runs a loop (`nest/loops/`), how threads share elements, rows and
sums (`nest/`), how rows are sorted (`sorts/`), which indices of a user's kernel are in range
(`bodies/ranges.py`), and whether a step only copies. Where sizes are open, what is right for all
of them runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shaderad.bodies.scattered import added_at_places
from shaderad.compiler.launch_shapes import PORTABLE, LaunchShape
from shaderad.ir import arrays, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Shape
from shaderad.plan.call_kernels import CallKernel, Decision, call_decision
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import PlanKernel
from shaderad.plan.nest.copies import copies_with, rooms_of
from shaderad.plan.nest.element_choices import ElementChoices
from shaderad.plan.nest.elementwise import FourElements
from shaderad.plan.nest.limits import NestLimits
from shaderad.plan.nest.loops.in_group import threads_of
from shaderad.plan.nest.loops.steps import THREADS
from shaderad.plan.nest.row_choices import RowChoices
from shaderad.plan.nest.scan_choices import ScanChoices
from shaderad.plan.nest.sums.choices import SumChoices
from shaderad.plan.planning import PORTABLE_BUFFER_LIMIT
from shaderad.plan.sorts.choices import SortChoices, sort_decision
from shaderad.plan.steps import (
    CopyValues,
    Plan,
    Repeat,
    RepeatWhile,
    RunChain,
    RunKernel,
    RunPass,
    RunSort,
    RunTiles,
    Step,
)


@dataclass(frozen=True, slots=True)
class PlanChoices:
    """Sizes and a device, by which the kernels of a plan are chosen.

    Attributes:
        known: The sizes, by name.
        numbers: Whole numbers that kernels of the user read, as far as they are known.
        group_bytes: The memory of a workgroup.
        buffer_limit: The number of buffers that a kernel should bind.
        shape: How work is laid out over threads.
        are_fixed: True if the sizes of arrays are numbers in the kernels of loops.
        has_groups: False if no loop runs in one workgroup.
        is_windowed: True if kernels run by windows of large arrays.
    """

    known: Mapping[str, int]
    group_bytes: int = 0
    shape: LaunchShape = PORTABLE
    are_fixed: bool = True
    has_groups: bool = True
    numbers: Mapping[Value, int] = field(default_factory=dict[Value, int])
    buffer_limit: int = PORTABLE_BUFFER_LIMIT
    is_windowed: bool = False

    @property
    def _limits(self) -> NestLimits:
        return NestLimits(
            self.known, self.group_bytes, self.shape, self.buffer_limit, self.is_windowed
        )

    @property
    def _rows(self) -> RowChoices:
        return RowChoices(self._limits)

    def chosen(self, plan: Plan) -> Plan:
        """`plan` with the kernels that are the best ones."""
        return self.decided(plan).make()

    def decided(self, plan: Plan) -> Decision[Plan]:
        """The decisions about `plan`, in the order of steps, an outer loop before those inside."""
        inside = self._inside(plan)

        def make() -> Plan:
            plan = inside.make()
            return replace(plan, steps=tuple(map(_filled, plan.steps)))

        return Decision(inside.numbers, make)

    def _inside(self, plan: Plan) -> Decision[Plan]:
        """`decided` without fills, which take longer than a dispatch in the body of a loop."""
        decision = self._of_steps(plan.steps)
        return Decision(decision.numbers, lambda: replace(plan, steps=decision.make()))

    def _of_steps(
        self, steps: Iterable[Step], kind: tuple[int, ...] = ()
    ) -> Decision[tuple[Step, ...]]:
        decisions = [*map(self._of_chain_or_step, steps)]
        return Decision(
            (*kind, *(number for decision in decisions for number in decision.numbers)),
            lambda: tuple(step for decision in decisions for step in decision.make()),
        )

    def _of_chain_or_step(self, step: Step) -> Decision[tuple[Step, ...]]:
        if isinstance(step, RunChain):
            own = self._rows.of_chain(step)
            return self._of_steps(step.links, (0,)) if own is None else own
        decision = self._of_step(step)
        return Decision(decision.numbers, lambda: (decision.make(),))

    def _of_step(self, step: Step) -> Decision[Step]:
        if not _may_copy(step):
            return self._computed(step)
        pairs = self._copies(step)
        if pairs:
            return Decision((-1,), lambda: CopyValues(pairs, step.writes))
        computed = self._computed(step)
        return Decision((0, *computed.numbers), computed.make)

    def _computed(self, step: Step) -> Decision[Step]:
        match step:
            case RunTiles():
                return SumChoices(self._limits).of_tiles(step)
            case RunKernel(by_four=FourElements() as by_four):
                return ElementChoices(self._limits).of_elements(step, by_four)
            case RunKernel():
                return self._of_scatters(step)
            case Repeat():
                return self._of_loop(step)
            case RepeatWhile():
                body = self._inside(step.body)
                return Decision(body.numbers, lambda: replace(step, body=body.make()))
            case RunSort():
                return self._of_sort(step)
            case CallKernel():
                return call_decision(step, self.known, self.numbers, self.shape)
            case RunPass(node=arrays.Scan()):
                return ScanChoices(self._limits).of_scan(step, step.scans)
            case RunPass():
                return self._rows.of_reduction(step, step.rows)
            case _:
                return Decision((), lambda: step)

    def _of_scatters(self, step: RunKernel) -> Decision[Step]:
        """A kernel whose threads may add to arrays."""
        work = step.work
        names = added_at_places(work.kernel) if self.shape.copied_words else ()
        added = [(name, v.type) for name, v in work.writes if name in names]
        rooms = rooms_of(added, work.dim, self.known, self.shape)
        copies = copies_with(rooms)
        return Decision(
            (*rooms.values(),), lambda: replace(step, copies=copies) if copies else step
        )

    def _of_sort(self, step: RunSort) -> Decision[Step]:
        sharing = SortChoices(self._limits).sharing(step.node)
        return sort_decision(step, sharing, self._inside(step.plan_of(sharing)))

    # -- loops -----------------------------------------------------------------------------

    def _of_loop(self, step: Repeat) -> Decision[Step]:
        fixed, group = self._fixed(step), step.group
        if group is not None and fixed:
            return Decision((*fixed.values(),), lambda: group.write(fixed, self.group_bytes))
        body = self._inside(step.body)
        return Decision((0, *body.numbers), lambda: replace(step, body=body.make(), group=None))

    def _fixed(self, step: Repeat) -> Mapping[str, int]:
        """The numbers in the kernel of a loop; none if a dispatch a step takes less time."""
        effort = None if step.group is None else step.group.effort
        threads = 0 if effort is None else threads_of(effort, self.known, self.shape)
        if effort is None or not threads or not self.has_groups:
            return {}
        names = sorted(effort.extents & self.known.keys()) if self.are_fixed else ()
        return {THREADS: threads, **{name: self.known[name] for name in names}}

    # -- copies ----------------------------------------------------------------------------

    def _copies(self, step: Step) -> tuple[tuple[Value, Value], ...]:
        """Values, and the results that a step copies them to; none where it computes."""
        match step:
            case Repeat(node=node) if self._are_equal((node.count,), (0,)):
                return tuple(zip(step.reads, node.results[: node.carry_count], strict=False))
            case RunKernel(work=PlanKernel(writes=((_, Value(producer=arrays.Slice() as node)),))):
                x = node.operands[0]
                return ((base_of(x), node.result),) if self._are_equal(x.shape, node.shape) else ()
            case _:
                return ()

    def _are_equal(self, a: Shape, b: Shape) -> bool:
        if not all(map(self._limits.is_known, (*a, *b))):
            return False
        return all(
            sizes.evaluate(m, self.known) == sizes.evaluate(n, self.known)
            for m, n in zip(a, b, strict=True)
        )


def _filled(step: Step) -> Step:
    """`step`, or a fill where all that it computes are zeros."""
    if isinstance(step, RunKernel) and all(map(b.is_zero, step.writes)):
        return CopyValues((), step.writes)
    return step


def _may_copy(step: Step) -> bool:
    """True if sizes may let a step do nothing but copy."""
    match step:
        case Repeat(node=node):
            return not isinstance(node.count, int) or node.count == 0
        case RunKernel(
            work=PlanKernel(reads=((_, x),), writes=((_, Value(producer=arrays.Slice() as node)),))
        ):
            # As many elements as there are begin with the first.
            may_be_whole = set(node.steps) == {1} and not any(
                isinstance(start, int) and start for start in node.starts
            )
            return may_be_whole and x is base_of(node.operands[0])
        case _:
            return False
