"""A plan and where its programs come from -> its schedule, for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shaderad.device.stages import Choice
from shaderad.execute import schedule as to
from shaderad.execute.call_steps import add_call
from shaderad.execute.kernel_steps import KernelBinder, KernelStep, Programs
from shaderad.execute.schedule import Instruction, Move, Places, Schedule
from shaderad.ir.types import Access
from shaderad.lower.bindings import Mode, Role
from shaderad.plan.steps import (
    CallKernel,
    CopyValues,
    Repeat,
    RepeatWhile,
    RunGroup,
    RunKernel,
    RunRows,
    RunSort,
    RunTiles,
)

if TYPE_CHECKING:
    from shaderad.bodies.scattered import GroupCopy
    from shaderad.execute.kernel_steps import Key
    from shaderad.ir.arrays import Value
    from shaderad.ir.sizes import Size
    from shaderad.plan.kernels import PlanKernel
    from shaderad.plan.steps import Plan, Step


def schedule(plan: Plan, programs: Programs, host_inputs: Iterable[int] = ()) -> Schedule:
    """The schedule of `plan` with these programs.

    `host_inputs` are the positions of inputs that are numbers of the host.
    """
    places = Places(plan.inputs, host_inputs)
    scheduler = Scheduler(places, programs)
    scheduler.add_steps(plan, places.make)
    return places.schedule(plan.outputs, programs.lowered, scheduler.instructions)


class Scheduler:
    """The instructions of a plan, while they are written."""

    def __init__(self, places: Places, programs: Programs) -> None:
        self.places = places
        self.binder = KernelBinder(programs, places)
        self._programs = programs

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions added so far."""
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
        elif isinstance(step, RunSort):
            add_sort(self, step)
        elif isinstance(step, CallKernel):
            add_call(self.binder, step)
        elif isinstance(step, RunRows | RunTiles):
            self._add_works(step.between, step.works)
        elif isinstance(step, CopyValues):
            add_copies(self, step)
        elif isinstance(step, RunGroup):
            (threads,) = step.work.dim
            assert isinstance(threads, int)
            self.binder.add(written_whole(step.work, group_threads=threads))
        else:
            assert isinstance(step, RunKernel), "sizes decide about reductions and scans"
            places, writes = self.places, dict(step.work.writes)
            for name, base in step.bases.items():
                target, size = places.number(writes[name]), places.byte_count(base)
                self.move(places.number(base), places.start(base), target, size)
            whole = (n for n in writes if step.work.kernel.buffer(n).access is Access.OUT)
            filled = frozenset((*step.bases, *whole))
            self.binder.add(work_step(step.work, filled, copies=step.copies))

    def _add_works(self, between: Iterable[Value], works: Iterable[PlanKernel]) -> None:
        """Adds kernels that store all results together; `between` is what they leave others."""
        for value in between:
            self.places.make(value)
        for work in works:
            self.binder.add(written_whole(work))

    def move(self, source: int, start: Size, target: int, byte_count: Size) -> None:
        """Adds a copy to the start of another buffer."""
        if source != target:
            self.instructions.append(Move(source, start, target, 0, byte_count))


def written_whole(work: PlanKernel, group_threads: int = 0) -> KernelStep:
    """A kernel of ours that writes all elements of its arrays, be it with others."""
    buffers = (work.kernel.buffer(name) for name, _ in work.writes)
    whole = frozenset(b.name for b in buffers if b.access is not Access.STATES)
    return work_step(work, whole, group_threads)


def work_step(
    work: PlanKernel,
    filled: frozenset[str],
    group_threads: int = 0,
    copies: tuple[GroupCopy, ...] = (),
) -> KernelStep:
    """A kernel of ours.

    Args:
        work: The kernel.
        filled: Arrays that it writes and that hold something already, or are written whole.
        group_threads: Its threads if it runs as one workgroup.
        copies: Arrays to which threads may add in group memory first.
    """
    shapes = dict(work.shapes)
    own = frozenset(
        name
        for name, _ in work.writes
        if work.kernel.buffer(name).access is Access.OUT and shapes[name] == work.dim
    )
    values = _read(work)
    values |= {(Role.OUTPUT, name): value for name, value in work.writes}
    choice = Choice(Mode.PRIMAL, work.bounds, "", own, work.scalars, group_threads=group_threads,
                    copies=copies)  # fmt: skip
    return KernelStep(work.kernel, choice, work.dim, values, shapes, work.sizes, filled)


def _read(work: PlanKernel) -> dict[Key, Value]:
    return {
        (Role.UNIFORM if name in work.scalars else Role.INPUT, name): value
        for name, value in work.reads
    }


def add_copies(scheduler: Scheduler, step: CopyValues) -> None:
    """Copies of values; what is copied from nothing is zeros."""
    places, source_of = scheduler.places, {copy: v for v, copy in step.pairs}
    for copy in step.writes:
        target, size = places.number(copy), places.byte_count(copy)
        if copy in source_of:
            v = source_of[copy]
            scheduler.move(places.number(v), places.start(v), target, size)
        else:
            scheduler.instructions.append(to.Set(target, 0, size))


def add_sort(scheduler: Scheduler, step: RunSort) -> None:
    """The plan of a sort, whose output is the result of the step."""
    places, body = scheduler.places, step.chosen
    ((order, _),) = body.outputs
    _hold(scheduler, body.inputs, step.reads)
    places.hold(order, places.number(step.node.result))
    scheduler.add_steps(body, lambda v: None if v is order else places.make(v))


def add_repeat(scheduler: Scheduler, step: Repeat) -> None:
    """A loop that runs as often as the sizes say."""
    node = step.node
    carries = _CarryBuffers(scheduler, step.body, node.results[: node.carry_count])
    start = carries.moves(step.reads[: node.carry_count])
    with scheduler.block() as body:
        _hold(scheduler, step.body.inputs[node.carry_count :], step.reads[node.carry_count :])
        carries.iterate()
        for row in step.rows:
            store = written_whole(row.work)
            ((key, _), (out, _)) = store.values.items()
            store.values.update({key: row.row, out: row.target})
            scheduler.binder.add(store)
    scheduler.instructions.append(
        to.RepeatBlock(
            symbol=step.symbol,
            count=node.count,
            is_reversed=node.is_reversed,
            carries=carries.pairs,
            rows=tuple(map(scheduler.places.number, node.results[node.carry_count :])),
            start=tuple(start),
            body=tuple(body),
        )
    )


def add_while(scheduler: Scheduler, step: RepeatWhile) -> None:
    """A loop that runs until the device says that it has ended."""
    places, node = scheduler.places, step.node
    *results, count = node.results
    carry_count = node.carry_count
    flag, counter = step.body.inputs[carry_count : carry_count + 2]
    places.make(flag)
    carries = _CarryBuffers(scheduler, step.body, (*results, flag, count))
    scheduler.instructions.extend(carries.moves(step.reads[:carry_count]))
    first_flag, first_count = places.number(flag), places.number(count)
    scheduler.instructions.append(to.Set(first_flag, 1, places.byte_count(flag)))
    scheduler.instructions.append(to.Set(first_count, 0, places.byte_count(counter)))
    with scheduler.block() as body:
        _hold(scheduler, step.body.inputs[carry_count + 2 :], step.reads[carry_count:])
        carries.iterate()
    wants = places.number(step.body.outputs[-1][0])
    scheduler.instructions.append(
        to.RepeatBlockWhile(
            carries=carries.pairs,
            body=tuple(body),
            goes_on=first_flag,
            wants=wants,
            limit=node.limit,
            span=node.span,
        )
    )


def _hold(scheduler: Scheduler, inner: Iterable[Value], outer: Iterable[Value]) -> None:
    places = scheduler.places
    for one, other in zip(inner, outer, strict=True):
        places.share(one, other)


class _CarryBuffers:
    """The carries of one loop and their buffers."""

    def __init__(self, scheduler: Scheduler, body: Plan, results: Sequence[Value]) -> None:
        self._scheduler = scheduler
        self._places = places = scheduler.places
        self._body = body
        self._new = [v for v, _ in body.outputs[: len(results)]]
        self.pairs = tuple((places.number(v), places.scratch(places.byte_count(v)))
                           for v in results)  # fmt: skip
        """The buffer of each result, and its partner."""

    def moves(self, operands: Sequence[Value]) -> list[to.Move]:
        """Copies of the first carries to the buffers that the first iteration reads."""
        places = self._places
        return [
            to.Move(places.number(v), places.start(v), first, 0, places.byte_count(v))
            for v, (first, _) in zip(operands, self.pairs, strict=False)
        ]

    def iterate(self) -> None:
        """One iteration: it reads the first of each pair and writes the second."""
        places = self._places
        for v, (first, _) in zip(self._body.inputs, self.pairs, strict=False):
            places.hold(v, first)
        for v, (_, second) in reversed([*zip(self._new, self.pairs, strict=True)]):
            places.hold(v, second)
        new = frozenset(self._new)
        self._scheduler.add_steps(self._body, lambda v: None if v in new else places.make(v))
        for v, (_, second) in zip(self._new, self.pairs, strict=True):
            # One value may be what several carries become.
            self._scheduler.move(places.number(v), 0, second, places.byte_count(v))
