"""Programs and schedules that a device keeps.

Sizes are symbols in a schedule. What runs it at known sizes is prepared once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from shaderad.diagnostics import CompileError, DeviceError
from shaderad.execute.planned_kernels import PlannedKernel, used
from shaderad.execute.prepared import Place, Prepared, prepare

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.device.stages import Choice, Stage
    from shaderad.execute.schedule import LaunchPlan, Schedule
    from shaderad.ir.nodes import Kernel
    from shaderad.lower.bindings import Lowered, Mode

T = TypeVar("T")

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
    read_inputs: frozenset[int] = field(init=False)
    """The inputs that some instruction reads, or that are outputs; others need not be there."""
    reads_all: bool = field(init=False)
    """True if these are all inputs."""

    def __post_init__(self) -> None:
        self.read_inputs = self.schedule.read_inputs
        self.reads_all = len(self.read_inputs) == self.schedule.input_count

    def prepared(
        self, places: Sequence[Place], key: Hashable, sizes: Mapping[str, int]
    ) -> Prepared:
        """The commands for inputs at `places` and `sizes`, which have the key `key`."""
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
        self, places: Sequence[Place], key: Hashable, sizes: Mapping[str, int]
    ) -> Prepared:
        """The commands whose windows are cut for where the inputs start."""
        starts = tuple([start for _, start in places])
        shifted = [k for k in self.schedule.aligned_inputs if starts[k]]
        prepared = self._prepared.get((key, starts))
        return prepared or self._newly_prepared((key, starts), sizes, shifted, starts)

    def _newly_prepared(
        self,
        key: Hashable,
        sizes: Mapping[str, int],
        shifted: Sequence[int],
        starts: Sequence[int] = (),
    ) -> Prepared:
        """The commands that are kept under `key` from now on."""
        prepared = prepare(self.device, self.schedule, self.stages, sizes, shifted, starts)
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
