"""A plan whose sizes are known: buffers, parameter words and workgroups, ready to be recorded.

Invariant: no buffer is written while a step yet to come needs what it holds; buffers of values
that are no outputs serve again once nothing needs them any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shaderad.ir import sizes, types
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role, group_counts
from shaderad.runtime import buffers, fill
from shaderad.session.arrays import Array
from shaderad.session.devices import Choice
from shaderad.session.words import Facts, uniform_words

if TYPE_CHECKING:
    from shaderad.graph.kernels import Work
    from shaderad.graph.plan import Plan, RunKernel
    from shaderad.ir.arrays import Value
    from shaderad.lower.bindings import Resource
    from shaderad.runtime import Buffer, Runtime
    from shaderad.session.devices import Device, Stage

Shape = tuple[int, ...]
Frame = Sequence["Buffer"]
"""The buffers of one run: inputs, outputs, then those in between."""
Command = Callable[["Runtime", Frame], None]


@dataclass(eq=False, slots=True)
class Prepared:
    """Commands over a frame of buffers."""

    device: Device
    commands: list[Command]
    made_bytes: list[int]
    """Sizes of the buffers behind the inputs in the frame."""
    outputs: list[tuple[types.Type, Shape, int]]
    """Element, shape, and position in the frame."""
    dispatch_count: int
    may_report: bool

    def run(self, inputs: Sequence[Array], given: Sequence[Buffer]) -> tuple[Array, ...]:
        device, runtime = self.device, self.device.runtime
        made = [runtime.allocate(count, zeroed=False) for count in self.made_bytes]
        frame = [*given, *made]
        for command in self.commands:
            command(runtime, frame)
        device.recorded(may_report=self.may_report, count=self.dispatch_count)
        count = len(given)
        return tuple(
            Array(device, t, shape, frame[k], inputs[k].offset if k < count else 0)
            for t, shape, k in self.outputs
        )


def prepare(
    device: Device, plan: Plan, known: Mapping[str, int], offsets: Sequence[int]
) -> Prepared:
    """`plan` on `device` for the sizes `known` and inputs that start at the bytes `offsets`."""
    return _Preparation(device, plan, known, offsets).run()


class _Preparation:
    def __init__(
        self, device: Device, plan: Plan, known: Mapping[str, int], offsets: Sequence[int]
    ) -> None:
        self._device = device
        self._plan = plan
        self._known = known
        self._place = {v: k for k, v in enumerate(plan.inputs)}
        self._offset = dict(zip(plan.inputs, offsets, strict=True))
        self._made_bytes: list[int] = []
        self._commands: list[Command] = []
        self._dispatch_count = 0
        self._may_report = False

    def run(self) -> Prepared:
        self._place_buffers()
        for step in self._plan.steps:
            self._add_kernel(step)
        outputs = [
            (v.element, self._shape(shape), self._place[v]) for v, shape in self._plan.outputs
        ]
        return Prepared(
            self._device, self._commands, self._made_bytes, outputs,
            self._dispatch_count, self._may_report,
        )  # fmt: skip

    def _shape(self, shape: sizes.Shape) -> Shape:
        return tuple(sizes.evaluate(extent, self._known) for extent in shape)

    def _bytes(self, value: Value) -> int:
        return buffers.byte_count(value.element, prod(self._shape(value.shape)))

    # -- buffers ---------------------------------------------------------------------------

    def _place_buffers(self) -> None:
        """A buffer for each value that steps write."""
        kept = {v for v, _ in self._plan.outputs}
        last_use = {v: k for k, step in enumerate(self._plan.steps) for v in step.reads}
        free: list[int] = []
        for k, step in enumerate(self._plan.steps):
            for value in step.writes:
                self._place[value] = self._slot(self._bytes(value), [] if value in kept else free)
            for value in {*step.reads, *step.writes}:
                ends_here = last_use.get(value, k) <= k
                if value.producer is not None and value not in kept and ends_here:
                    free.append(self._place[value])

    def _slot(self, size: int, free: list[int]) -> int:
        """The free buffer that need grow least, then the one that wastes least; or a new one."""
        start = len(self._plan.inputs)

        def growth(place: int) -> tuple[int, int]:
            found = self._made_bytes[place - start]
            return max(0, size - found), max(0, found - size)

        if not free:
            self._made_bytes.append(size)
            return start + len(self._made_bytes) - 1
        best = min(free, key=growth)
        free.remove(best)
        self._made_bytes[best - start] = max(size, self._made_bytes[best - start])
        return best

    # -- steps -----------------------------------------------------------------------------

    def _add_kernel(self, step: RunKernel) -> None:
        work, dim = step.work, self._shape(step.work.dim)
        own = frozenset(
            name
            for name, value in work.writes
            if work.kernel.buffer(name).access is Access.OUT
            and _seen(work, name, value) == work.dim
        )
        choice = Choice(Mode.PRIMAL, work.bounds, "", own, frozenset())
        if step.base is not None:
            ((_, result),) = work.writes
            self._copy(step.base, result)
        for stage in self._device.stages(work.kernel, choice):
            self._add_stage(stage, work, dim, is_filled=step.base is not None)

    def _add_stage(self, stage: Stage, work: Work, dim: Shape, *, is_filled: bool) -> None:
        lowered = stage.lowered
        shapes = self._kernel_shapes(work)
        by_name = dict((*work.reads, *work.writes))
        by_slot: list[tuple[int, int]] = []
        offsets: dict[tuple[Role, str], int] = {}
        report_slot: int | None = None
        for resource in lowered.resources:
            if resource.role is Role.REPORT:
                report_slot = resource.slot
                continue
            (name,) = resource.members
            value = by_name[name]
            by_slot.append((resource.slot, self._place[value]))
            if resource.role is Role.INPUT and self._offset.get(value):
                words = self._offset[value] // types.word_bytes(value.element)
                offsets[resource.role, name] = words
            if resource.role is Role.OUTPUT and not is_filled:
                self._fill(resource, value, is_covered=shapes[name] == dim)
        thread_count = self._thread_count(stage, work, dim)
        if not thread_count:
            return
        device = self._device
        limit = device.capabilities.workgroup_count_limit
        groups = group_counts(lowered, thread_count, limit)
        uniforms = {
            name: uniform_words(sizes.evaluate(size, self._known), types.INT, name)
            for name, size in work.sizes
        }
        facts = Facts(dim, thread_count, 0, groups, shapes, offsets, uniforms)
        words = stage.packer.pack(facts)
        pipeline = stage.pipeline
        report = None if report_slot is None else device.report_buffer()
        self._may_report |= report is not None
        self._dispatch_count += 1

        def dispatch(runtime: Runtime, frame: Frame) -> None:
            bound = {slot: frame[place] for slot, place in by_slot}
            if report_slot is not None and report is not None:
                bound[report_slot] = report
            runtime.dispatch(pipeline, bound, words, groups)

        self._commands.append(dispatch)

    def _thread_count(self, stage: Stage, work: Work, dim: Shape) -> int:
        name = stage.lowered.threads_of
        if not name:
            return prod(dim)
        t = work.kernel.buffer(name).type.element
        words = types.byte_count(t) // types.word_bytes(t)
        return prod(self._kernel_shapes(work)[name]) * words

    def _kernel_shapes(self, work: Work) -> dict[str, Shape]:
        """Of the kernel's arrays, as it indexes them."""
        return {
            name: self._shape(_seen(work, name, value))
            for name, value in (*work.reads, *work.writes)
        }

    # -- copies and fills ------------------------------------------------------------------

    def _copy(self, source: Value, target: Value) -> None:
        start, stop = self._place[source], self._place[target]
        offset, size = self._offset.get(source, 0), self._bytes(source)
        self._commands.append(
            lambda runtime, frame: runtime.copy(frame[start], offset, frame[stop], 0, size)
        )

    def _fill(self, resource: Resource, value: Value, *, is_covered: bool) -> None:
        word, size, place = resource.fill_word, self._bytes(value), self._place[value]
        if word is None or (resource.is_covered_by_launch and is_covered) or not size:
            return
        self._commands.append(lambda runtime, frame: fill(runtime, frame[place], word, 0, size))


def _seen(work: Work, name: str, value: Value) -> sizes.Shape:
    """The shape of a value as the kernel indexes it: its own, or all elements in one row."""
    is_as_it_is = work.kernel.buffer(name).type.rank == len(value.shape)
    return value.shape if is_as_it_is else (sizes.product(value.shape),)
