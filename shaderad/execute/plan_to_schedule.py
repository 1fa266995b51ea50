"""A plan and where its programs come from -> its schedule, for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shaderad.execute.kernel_steps import KernelBinder, PlanPrograms
from shaderad.execute.places import Places
from shaderad.execute.plan_steps import (
    befores_step,
    call_step,
    pass_step,
    work_step,
)
from shaderad.execute.repetitions import add_repeat, add_while
from shaderad.execute.schedule import Instruction, Move, Schedule
from shaderad.lower.passes.pairs import PAIR_PREFIXES
from shaderad.plan.steps import CallKernel, Repeat, RepeatWhile, RunPass, RunScans

if TYPE_CHECKING:
    from shaderad.ir.arrays import Value
    from shaderad.ir.sizes import Size
    from shaderad.plan.steps import Plan, Step


def schedule(plan: Plan, programs: PlanPrograms) -> Schedule:
    """What `plan` comes to with these programs."""
    places = Places(plan.inputs)
    scheduler = Scheduler(places, programs)
    scheduler.add_steps(plan, places.make)
    return places.schedule(plan.outputs, programs.lowered, scheduler.instructions)


class Scheduler:
    """The instructions of a plan, while they are written."""

    def __init__(self, places: Places, programs: PlanPrograms) -> None:
        self.places = places
        self.binder = KernelBinder(programs, places)
        self._programs = programs

    @property
    def instructions(self) -> list[Instruction]:
        """What has been added so far."""
        return self.binder.instructions

    @contextmanager
    def block(self) -> Generator[list[Instruction]]:
        """A list of its own for what is added meanwhile."""
        outer, self.binder.instructions = self.binder.instructions, []
        yield self.binder.instructions
        self.binder.instructions = outer

    def add_steps(self, plan: Plan, make: Callable[[Value], None]) -> None:
        """Adds the steps of `plan`; `make` gives a value that one writes its buffer."""
        for step in plan.steps:
            for value in step.writes:
                make(value)
            self._add_step(step)

    def _add_step(self, step: Step) -> None:
        if isinstance(step, Repeat):
            add_repeat(self, step)
        elif isinstance(step, RepeatWhile):
            add_while(self, step)
        elif isinstance(step, CallKernel):
            self.binder.add(call_step(step))
        elif isinstance(step, RunPass):
            self.binder.add(pass_step(step, self._programs))
        elif isinstance(step, RunScans):
            self._add_scans(step)
        else:
            if step.base is not None:
                places, base = self.places, step.base
                target = places.number(step.writes[0])
                size = places.byte_count(base)
                self.move(places.number(base), places.start(base), target, size)
            self.binder.add(work_step(step.work, is_filled=step.base is not None))

    def _add_scans(self, step: RunScans) -> None:
        befores = self.binder.add(befores_step(step, self._programs))
        for scan, name in zip(step.scans, PAIR_PREFIXES, strict=True):
            self.binder.add(pass_step(scan, self._programs, befores[name]))

    def move(self, source: int, start: Size, target: int, byte_count: Size) -> None:
        """Adds a copy to the start of another buffer."""
        if source != target:
            self.instructions.append(Move(source, start, target, 0, byte_count))
