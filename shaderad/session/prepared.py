"""A plan whose sizes are known: buffers and commands, ready to be recorded.

Invariant: no buffer is written while a step yet to come needs what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.graph.plan import CallKernel, Repeat, RepeatWhile, RunPass
from shaderad.ir import types
from shaderad.session.arrays import Array
from shaderad.session.commands import Command, Copy, Dispatch
from shaderad.session.kernel_steps import KernelBinder, StagedPasses
from shaderad.session.places import Places
from shaderad.session.plan_steps import call_step, pass_step, work_step
from shaderad.session.repetitions import add_repeat, add_while
from shaderad.session.scratch import ScratchBuffers

if TYPE_CHECKING:
    from shaderad.graph.plan import Plan, Step
    from shaderad.ir.arrays import Value
    from shaderad.session.devices import Device

Shape = tuple[int, ...]


@dataclass(eq=False, slots=True)
class Prepared:
    """Commands over a frame of buffers."""

    device: Device
    commands: list[Command]
    kept_bytes: list[int]
    """Sizes of the buffers of results, which stand behind the inputs in the frame."""
    scratch_bytes: list[int]
    """Sizes of the buffers behind those, which serve again after the run."""
    outputs: list[tuple[types.Type, Shape, int]]
    """Element, shape, and position in the frame."""
    dispatch_count: int
    may_report: bool
    live_bytes: int
    """The most that is needed at one time, inputs left out."""

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        device, runtime = self.device, self.device.runtime
        scratch = device.kept(ScratchBuffers)
        lent = scratch.borrow(self.scratch_bytes)
        kept = (runtime.allocate(size, zeroed=False) for size in self.kept_bytes)
        frame = [*(one.buffer for one in inputs), *kept, *lent]
        for command in self.commands:
            command.record(runtime, frame)
        scratch.give_back(lent)
        device.recorded(may_report=self.may_report, count=self.dispatch_count)
        count = len(inputs)
        return tuple(
            Array(device, t, shape, frame[k], inputs[k].offset if k < count else 0)
            for t, shape, k in self.outputs
        )


def prepare(
    device: Device,
    plan: Plan,
    known: Mapping[str, int],
    offsets: Sequence[int],
    staged: Callable[[RunPass], StagedPasses],
) -> Prepared:
    """`plan` on `device` for the sizes `known` and inputs that start at the bytes `offsets`.

    `staged` keeps the passes of the plan, which are the same for all sizes.
    """
    places = Places(plan.inputs, offsets, known)
    preparation = Preparation(device, places, staged)
    results = {v for v, _ in plan.outputs}
    for k, step in enumerate(plan.steps):
        for v in step.writes:
            if v in results:
                places.keep(v, made_at=k)
    preparation.add_outermost(plan)
    outputs = [(v.element, places.shape(shape), places.number(v)) for v, shape in plan.outputs]
    commands = preparation.commands
    count = sum(isinstance(command, Dispatch) for command in commands)
    return Prepared(device, commands, places.kept_bytes, places.scratch_bytes, outputs, count,
                    preparation.binder.may_report, places.peak_live_bytes)  # fmt: skip


class Preparation:
    """The commands of a plan, while they are written."""

    def __init__(
        self, device: Device, places: Places, staged: Callable[[RunPass], StagedPasses]
    ) -> None:
        self.device = device
        self.places = places
        self.binder = KernelBinder(device, places)
        self._staged = staged

    @property
    def commands(self) -> list[Command]:
        """What has been added so far."""
        return self.binder.commands

    @contextmanager
    def block(self) -> Generator[list[Command]]:
        """A list of its own for what is added meanwhile."""
        outer, self.binder.commands = self.binder.commands, []
        yield self.binder.commands
        self.binder.commands = outer

    def add_outermost(self, plan: Plan) -> None:
        """Adds the steps of the plan that is not the body of a loop."""
        last_use = plan.last_uses()

        def make(value: Value) -> None:
            self.places.make(value, last_use.get(value))

        self.add_steps(plan, make, is_outermost=True)

    def add_steps(
        self, plan: Plan, make: Callable[[Value], None], *, is_outermost: bool = False
    ) -> None:
        """Adds the steps of `plan`; `make` gives a value that one writes its buffer."""
        last_use = plan.last_uses()
        kept = {v for v, _ in plan.outputs}
        for k, step in enumerate(plan.steps):
            if is_outermost:
                self.places.step = k
            for value in step.writes:
                make(value)
            self._add_step(step)
            self.places.drop(
                value
                for value in dict.fromkeys((*step.reads, *step.writes))
                if value.producer is not None and value not in kept and last_use.get(value, k) <= k
            )

    def _add_step(self, step: Step) -> None:
        if isinstance(step, Repeat):
            add_repeat(self, step)
        elif isinstance(step, RepeatWhile):
            add_while(self, step)
        elif isinstance(step, CallKernel):
            self.binder.add(call_step(step))
        elif isinstance(step, RunPass):
            self.binder.add(pass_step(step, self._staged(step)))
        else:
            if step.base is not None:
                places, base = self.places, step.base
                target = places.number(step.writes[0])
                size = places.byte_count(base)
                self.copy(places.number(base), places.offset(base), target, size)
            self.binder.add(work_step(step.work, is_filled=step.base is not None))

    def copy(self, source: int, offset: int, target: int, size: int) -> None:
        """Adds a copy to the start of another buffer."""
        if size and source != target:
            self.commands.append(Copy(source, offset, target, 0, size))
