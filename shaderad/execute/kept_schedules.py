"""Schedules that a device keeps: of plans, and of kernels, which have one step.

The inputs of a kernel's schedule are the arrays that the programs of one mode read, and sums that
it adds to; its outputs are what the mode computes. Sizes are symbols: ``dim.0`` an extent of the
launch, ``x.0`` one of array ``x``. What runs a schedule at known sizes is prepared once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from shaderad.device.stages import WeakKeys
from shaderad.diagnostics import CompileError, DeviceError
from shaderad.execute.kernel_steps import KernelStep, schedule_of
from shaderad.execute.planned_kernels import PlannedKernel, used
from shaderad.execute.prepared import Place, Prepared, prepare
from shaderad.execute.schedule import LaunchPlan, launch_shapes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.lower.bindings import ROLES, Mode, Role

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.device.stages import Choice, KernelFacts, Stage
    from shaderad.execute.kernel_steps import Key, Programs
    from shaderad.execute.schedule import Schedule
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Lowered

T = TypeVar("T")

_COMPUTED = {
    Mode.PRIMAL: Role.OUTPUT,
    Mode.BACKWARD: Role.GRADIENT,
    Mode.FORWARD: Role.OUTPUT_TANGENT,
}


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """All that a schedule of a kernel depends on."""

    choice: Choice
    derivatives: frozenset[str]
    """Cotangents or tangents that are given; the others are zero."""
    sums: frozenset[str] = frozenset()
    """Gradients that are added to arrays among the inputs."""


@dataclass(frozen=True, slots=True)
class ScheduledLaunch:
    """A kernel in one mode on a device, for all sizes."""

    plan: LaunchPlan
    scheduled: Scheduled


class LaunchSchedules:
    """The schedules of launches on one device, for as long as their kernels live."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: WeakKeys[Kernel, dict[Hashable, ScheduledLaunch]] = WeakKeys()

    def of(self, kernel: Kernel, facts: KernelFacts, form: LaunchForm) -> ScheduledLaunch:
        """The schedule of `kernel`, lowered and compiled if it was not before."""
        known = self._known.setdefault(kernel, {})
        key: Hashable = form
        if isinstance(kernel, PlannedKernel):
            kernel.check(form.choice)
            key = form.choice.mode
        if key not in known:
            known[key] = self._scheduled(kernel, facts, form)
        return known[key]

    def _scheduled(self, kernel: Kernel, facts: KernelFacts, form: LaunchForm) -> ScheduledLaunch:
        device = self._device
        if isinstance(kernel, PlannedKernel):
            plan, stages = kernel.planned(form.choice.mode, device)
            return ScheduledLaunch(plan, Scheduled(device, plan.schedule, stages))
        kernel_ref = ref(kernel)  # what a device keeps for a kernel must not keep the kernel

        def windowed() -> Scheduled:
            kernel = kernel_ref()
            assert kernel is not None
            programs = KernelPrograms(device, is_windowed=True)
            plan = programs.settled(lambda: launch_plan(kernel, facts, form, programs))
            return Scheduled(device, plan.schedule, programs.stages)

        programs = KernelPrograms(device)
        plan = programs.settled(lambda: launch_plan(kernel, facts, form, programs))
        return ScheduledLaunch(plan, Scheduled(device, plan.schedule, programs.stages, windowed))


def launch_plan(
    kernel: Kernel,
    facts: KernelFacts,
    form: LaunchForm,
    programs: Programs,
    required: Sequence[Key] = (),
) -> LaunchPlan:
    """The schedule of `kernel` in one mode.

    Args:
        kernel: What to run.
        facts: Of `kernel`.
        form: The mode, and what is given.
        programs: Lowers and numbers the programs.
        required: Arrays that come first among the inputs, whether a program reads them or not.
    """
    numbers = programs.of_kernel(kernel, form.choice)
    dim, shapes = launch_shapes(kernel, form.choice.launch_shaped)

    def value(key: Key) -> Value:
        role, name = key
        is_bound_itself = role is Role.INPUT and name in facts.resources
        shape = (0,) if is_bound_itself else shapes.get(name, ())
        return Value(ArrayType(facts.element_types[name], shape))

    read = [
        (resource.role, name)
        for number in numbers
        for resource in programs.lowered[number].resources
        for name in resource.members
        if ROLES[resource.role].is_read
        and (name in form.derivatives or not ROLES[resource.role].is_derivative_given)
    ]
    sums = [(Role.GRADIENT, name) for name in sorted(form.sums)]
    inputs = {key: value(key) for key in (*required, *read, *sums)}
    outputs = {key: value(key) for key in _computed(facts, form.choice) if key not in inputs}
    step = KernelStep(kernel, form.choice, dim, inputs | outputs, shapes)
    schedule = schedule_of(step, programs, [*inputs.values()], [*outputs.values()])
    return LaunchPlan(schedule, tuple(inputs), tuple(outputs))


def _computed(facts: KernelFacts, choice: Choice) -> list[Key]:
    """The arrays that a mode computes."""
    role = _COMPUTED[choice.mode]
    names = {
        Role.OUTPUT: [b.name for b in facts.written],
        Role.GRADIENT: [name for name in facts.element_types if name in choice.wanted],
        Role.OUTPUT_TANGENT: [b.name for b in facts.written
                              if b.name in facts.differentiable_results],
    }  # fmt: skip
    computed = [(role, name) for name in names[role]]
    if choice.with_results:
        computed += [(Role.OUTPUT, name) for name in names[Role.OUTPUT]]
    return computed


_TOO_LARGE = "SR0606"
PREPARED_LIMIT = 64
"""Combinations of sizes of one schedule for which everything is kept ready."""


class LoopRefused(Exception):
    """The kernel of a loop that one workgroup runs does not compile; the cause says why."""


class KernelPrograms:
    """Programs on a device, numbered in the order in which they were first asked for.

    All that were asked for compile at the same time.
    """

    def __init__(self, device: Device, *, is_windowed: bool = False) -> None:
        self.device = device
        self._is_windowed = is_windowed
        self.stages: list[Stage] = []
        self._loops: set[int] = set()
        """The numbers of the programs that run a loop in one workgroup."""
        self._number_by_stage: dict[int, int] = {}
        self._built: dict[tuple[PlannedKernel, Mode], tuple[LaunchPlan, Sequence[int]]] = {}

    @property
    def lowered(self) -> list[Lowered]:
        return [stage.lowered for stage in self.stages]

    def of_kernel(self, kernel: Kernel, choice: Choice) -> Sequence[int]:
        """The dispatches of a mode of `kernel`, in order."""
        is_loop = choice.group_threads > 0 and not self._is_windowed
        try:
            stages = self.device.stages.of(kernel, self.windowed(choice))
        except CompileError as failure:
            if is_loop:
                raise LoopRefused from failure
            raise
        numbers = [self.number(stage) for stage in stages]
        if is_loop:
            self._loops.update(numbers)
        return numbers

    def settled(self, make: Callable[[], T]) -> T:
        """The result of `make`, which asks for programs; all of them are compiled then.

        Raises:
            CompileError: The error of the first program that has one, which also comes before an
                error of `make`.
            LoopRefused: That program runs a loop in one workgroup.
        """
        try:
            made = make()
        except Exception:
            self._wait()
            raise
        self._wait()
        return made

    def _wait(self) -> None:
        for number, stage in enumerate(self.stages):
            try:
                stage.wait()
            except CompileError as failure:
                if number in self._loops:
                    raise LoopRefused from failure
                raise

    def windowed(self, choice: Choice) -> Choice:
        """`choice`, for programs that run by windows if these do."""
        return replace(choice, is_windowed=True) if self._is_windowed else choice

    def of_built(self, kernel: PlannedKernel, choice: Choice) -> tuple[LaunchPlan, Sequence[int]]:
        """The plan of a mode of a built kernel, and its programs."""
        kernel.check(choice)
        key = (kernel, choice.mode)
        if key not in self._built:
            with used(kernel):
                plan, stages = kernel.planned(choice.mode, self.device)
            self._built[key] = plan, [self.number(stage) for stage in stages]
        return self._built[key]

    def number(self, stage: Stage) -> int:
        number = self._number_by_stage.setdefault(id(stage), len(self.stages))
        if number == len(self.stages):
            self.stages.append(stage)
        return number


@dataclass(eq=False, slots=True)
class Scheduled:
    """A schedule on a device, for all sizes."""

    device: Device
    schedule: Schedule
    stages: Sequence[Stage]
    """Its programs."""
    make_windowed: Callable[[], Scheduled] | None = None
    """Makes the same schedule of programs that run windows of large arrays; `None` for builds."""
    _prepared: dict[Hashable, Prepared] = field(default_factory=dict[Hashable, Prepared])
    _windowed: Scheduled | None = None
    _large: set[Hashable] = field(default_factory=set[Hashable])
    """Keys of sizes at which a buffer is larger than a binding."""

    def prepared(
        self, places: Sequence[Place], key: Hashable, sizes: Callable[[], Mapping[str, int]]
    ) -> Prepared:
        """The commands for inputs at `places` and sizes of `key`, which `sizes` gives by name."""
        if self.device.runtime.has_large_buffers and self._has_large(places, key):
            return self._by_windows().prepared_where(places, key, sizes)
        shifted = tuple([k for k in self.schedule.aligned_inputs if places[k][1]])
        prepared = self._prepared.get((key, shifted))
        if prepared is not None:
            return prepared
        try:
            return self._newly_prepared((key, shifted), sizes, shifted)
        except DeviceError as failure:
            if failure.code != _TOO_LARGE or self.make_windowed is None:
                raise
        self._large.add(key)
        return self._by_windows().prepared_where(places, key, sizes)

    def prepared_where(
        self, places: Sequence[Place], key: Hashable, sizes: Callable[[], Mapping[str, int]]
    ) -> Prepared:
        """The commands whose windows are cut for where the inputs start."""
        starts = tuple([start for _, start in places])
        shifted = [k for k in self.schedule.aligned_inputs if starts[k]]
        prepared = self._prepared.get((key, starts))
        return prepared or self._newly_prepared((key, starts), sizes, shifted, starts)

    def _newly_prepared(
        self,
        key: Hashable,
        sizes: Callable[[], Mapping[str, int]],
        shifted: Sequence[int],
        starts: Sequence[int] = (),
    ) -> Prepared:
        """The commands that are kept under `key` from now on."""
        prepared = prepare(self.device, self.schedule, self.stages, sizes(), shifted, starts)
        if len(self._prepared) >= PREPARED_LIMIT:
            self._prepared.pop(next(iter(self._prepared)), None)
        self._prepared[key] = prepared
        return prepared

    def _has_large(self, places: Sequence[Place], key: Hashable) -> bool:
        """True if a buffer is larger than a binding, be it around a small array."""
        limit = self.device.capabilities.binding_bytes_limit
        return key in self._large or any(buffer.byte_count > limit for buffer, _ in places)

    def _by_windows(self) -> Scheduled:
        if self._windowed is None:
            self._windowed = self if self.make_windowed is None else self.make_windowed()
        return self._windowed
