"""Kernels and graphs of a folder that `shaderad build` wrote: their plans, in place of a body.

Where a graph is run or differentiated, one of these stands for it as it would for its nodes; a
launch takes its schedule from the folder. Invariant: what a build did not make is refused, never
replaced by something close to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from shaderad.arrays.arrays import zeros
from shaderad.device.prebuilt import NOT_BUILT, Offer, OfferedMode, used_of_build
from shaderad.diagnostics import CompileError, Error, error, text_of
from shaderad.execute.kept_schedules import Scheduled
from shaderad.execute.planned_kernels import PlannedKernel
from shaderad.execute.schedule import LaunchPlan, storage_bytes
from shaderad.ir import sizes
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Lowered, Mode

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.device.devices import Device
    from shaderad.device.stages import Choice, Stage
    from shaderad.execute.schedule import Schedule

Flags = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """One program of a plan, and the user's kernel that its reports name, or nothing."""

    lowered: Lowered
    kernel: str


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """The plan of one mode, and its programs in the order of the schedule's."""

    plan: LaunchPlan
    programs: tuple[BuiltProgram, ...]


@dataclass(frozen=True, slots=True)
class BuiltPlans:
    """The plans of one kernel or graph for one target."""

    by_mode: Mapping[Mode, BuiltPlan]
    why_not: Mapping[Mode, str]
    """Why a mode has none."""

    def offer(self, mode: Mode) -> Offer[BuiltPlan] | str:
        """The plan of a mode, or why there is none."""
        plan = self.by_mode.get(mode)
        if plan is None:
            return self.why_not.get(mode, NOT_BUILT)
        return Offer(plan, [program.lowered for program in plan.programs])


@dataclass(frozen=True, slots=True)
class BuiltEntry:
    """A kernel or graph of a folder that `shaderad build` wrote."""

    name: str
    folder: str
    by_target: Mapping[str, BuiltPlans]
    wanted: Mapping[str, bool]
    """By input, in order: true if there are derivatives by it."""

    def has(self, mode: Mode) -> bool:
        """True if any target has a plan of `mode`."""
        return any(mode in plans.by_mode for plans in self.by_target.values())

    def planned(self, mode: Mode, device: Device) -> tuple[LaunchPlan, list[Stage]]:
        """The plan and programs of the first target that the device runs.

        Raises:
            DeviceError: SR0724, where no target of the build runs on the device.
            DerivativeError: SR0725, where the mode was not built.
            CompileError: SR0612, where naga takes the code of none.
        """
        offers = {target: plans.offer(mode) for target, plans in self.by_target.items()}
        refusal: Error | None = None
        for built in OfferedMode(self.name, self.folder, mode, offers).serving(device.capabilities):
            try:
                stages = [device.stages.begun(p.lowered, p.kernel) for p in built.programs]
                for stage in stages:
                    stage.wait()
                return built.plan, stages
            except CompileError as failure:
                refusal = refusal or failure  # naga may take the code of another target.
        assert refusal is not None
        raise refusal


@dataclass(frozen=True, kw_only=True, eq=False)
class PrebuiltKernel(PlannedKernel):
    """A kernel of a folder that `shaderad build` wrote."""

    built: BuiltEntry
    bounds: str
    """The treatment of indices out of range, decided when the kernel was built."""
    launch_shaped: frozenset[str]
    """Out arrays that its code takes to have the launch's shape."""

    def check(self, choice: Choice) -> None:
        """Checks that the folder has what a launch asks for.

        Raises:
            ShapeError: SR0726 to SR0728, where the code was compiled for something else.
            DerivativeError: SR0748, where not all that is asked of a derivative was built.
        """
        options = {
            "bounds": (choice.bounds, self.bounds),
            "checks": (choice.checks or None, None),
        }
        for name, (asked, built) in options.items():
            if asked != built:
                raise error("SR0726", kernel=self.name, name=name, found=text_of(asked),
                            wanted=text_of(built))  # fmt: skip
        for name in sorted(choice.launch_shaped ^ self.launch_shaped):
            raise error("SR0727", kernel=self.name, name=name)
        for name in sorted(choice.device_uniforms):
            raise error("SR0728", kernel=self.name, name=name)
        if choice.mode is not Mode.PRIMAL and self.built.has(choice.mode):
            for name in sorted(choice.wanted):
                if not self.built.wanted[name]:
                    inputs = (*self.buffers, *self.uniforms)
                    path = next(".".join(x.path) for x in inputs if x.name == name)
                    raise error("SR0748", kernel=self.name, name=path)

    def planned(self, mode: Mode, device: Device) -> tuple[LaunchPlan, list[Stage]]:
        return self.built.planned(mode, device)

    def used(self) -> AbstractContextManager[None]:
        return used_of_build(self.name, self.built.folder)


@dataclass(frozen=True, eq=False)
class PrebuiltGraph(Graph):
    """A mode of a built graph in place of its nodes.

    The backward mode takes the inputs, then a cotangent of each output that holds floats; it gives
    the outputs, then the gradients of all inputs that were chosen. The forward mode takes and gives
    tangents likewise.
    """

    built: BuiltEntry
    mode: Mode = Mode.PRIMAL
    is_built: ClassVar[bool] = True

    @cached_property
    def backward(self) -> PrebuiltGraph:
        """The backward mode; one graph, so that devices keep one schedule of it."""
        return self._of_mode(Mode.BACKWARD, self._floats(self.outputs), self._chosen())

    @cached_property
    def forward(self) -> PrebuiltGraph:
        """The forward mode, likewise."""
        return self._of_mode(Mode.FORWARD, self._chosen(), self._floats(self.outputs))

    def _floats(self, values: Sequence[Value]) -> list[Value]:
        return [v for v in values if is_differentiable(v.element)]

    def _chosen(self) -> list[Value]:
        """The inputs by which it is differentiated."""
        pairs = zip(self.inputs, self.built.wanted.values(), strict=True)
        return [v for v, is_wanted in pairs if is_wanted]

    def _of_mode(self, mode: Mode, moving: Sequence[Value], made: Sequence[Value]) -> PrebuiltGraph:
        given = [Value(v.type) for v in moving]
        results = [Value(v.type) for v in (*self.outputs, *made)]
        return PrebuiltGraph((*self.inputs, *given), tuple(results), self.built, mode)

    def pulled(self, wanted: Flags, given: Flags, *, with_outputs: bool) -> PrebuiltPart:
        """The gradients of the inputs `wanted`, for cotangents of the outputs `given`."""
        chosen = self._flags(wanted, Mode.BACKWARD)
        return self._part(
            self.backward, _moving(self.outputs, given), chosen, with_outputs=with_outputs
        )

    def pushed(self, given: Flags, *, with_outputs: bool) -> PrebuiltPart:
        """The tangents of the outputs, for tangents of the inputs `given`."""
        wanted = [True for v in self.outputs if is_differentiable(v.element)]
        return self._part(self.forward, self._flags(given, Mode.FORWARD), wanted,
                          with_outputs=with_outputs)  # fmt: skip

    def _flags(self, asked: Flags, mode: Mode) -> list[bool]:
        """A flag for each differentiated input: true if it is among `asked`.

        Raises:
            DerivativeError: SR0748, where another is.
        """
        built, found = self.built, list[bool]()
        is_built = built.has(mode)
        rows = zip(self.inputs, asked, built.wanted.items(), strict=True)
        for value, is_asked, (name, is_wanted) in rows:
            if is_wanted:
                found.append(is_asked)
            elif is_asked and is_built and is_differentiable(value.element):
                raise error("SR0748", kernel=built.name, name=name)
        return found

    def _part(
        self,
        whole: PrebuiltGraph,
        given: Sequence[bool],
        wanted: Sequence[bool],
        *,
        with_outputs: bool,
    ) -> PrebuiltPart:
        is_given = (*(True for _ in self.inputs), *given)
        is_wanted = (*(with_outputs for _ in self.outputs), *wanted)
        chosen = tuple(k for k, one in enumerate(is_wanted) if one)
        inputs = tuple(v for v, one in zip(whole.inputs, is_given, strict=True) if one)
        outputs = tuple(whole.outputs[k] for k in chosen)
        return PrebuiltPart(inputs, outputs, whole, is_given, chosen)


def _moving(values: Sequence[Value], flags: Flags) -> list[bool]:
    """The flags of the values that hold floats."""
    return [one for v, one in zip(values, flags, strict=True) if is_differentiable(v.element)]


@dataclass(frozen=True, eq=False)
class PrebuiltPart(Graph):
    """Some results of a built graph, with zeros for some of its inputs."""

    whole: PrebuiltGraph
    is_given: Flags
    """By input of the whole; the others are zero."""
    chosen: tuple[int, ...]
    """Outputs of the whole."""
    is_built: ClassVar[bool] = True

    @property
    def built(self) -> BuiltEntry:
        return self.whole.built

    def filled(
        self, inputs: Sequence[Array], size_by_name: Mapping[str, int], device: Device
    ) -> list[Array]:
        """The inputs of the whole graph: `inputs`, and zeros for the others."""
        remaining = iter(inputs)

        def zero(value: Value) -> Array:
            shape = tuple(sizes.evaluate(extent, size_by_name) for extent in value.shape)
            return zeros(device, value.element, shape)

        pairs = zip(self.whole.inputs, self.is_given, strict=True)
        return [next(remaining) if is_given else zero(v) for v, is_given in pairs]


Run = Callable[[Graph, "Sequence[Array]", Mapping[str, int]], "tuple[Array, ...]"]


def run_built(
    graph: Graph,
    inputs: Sequence[Array],
    size_by_name: Mapping[str, int],
    device: Device,
    run: Run,
) -> tuple[Array, ...]:
    """The outputs of a built graph, or of a part of one; `run` runs a whole one."""
    if isinstance(graph, PrebuiltPart):
        whole = graph.filled(inputs, size_by_name, device)
        results = run_built(graph.whole, whole, size_by_name, device, run)
        return tuple(results[k] for k in graph.chosen)
    assert isinstance(graph, PrebuiltGraph)
    with used_of_build(graph.built.name, graph.built.folder):
        return run(graph, inputs, size_by_name)


def scheduled_on(graph: Graph, device: Device) -> Scheduled:
    """The schedule of a built graph on a device."""
    assert isinstance(graph, PrebuiltGraph)
    built, stages = graph.built.planned(graph.mode, device)
    return Scheduled(device, built.schedule, stages)


def check_results(schedule: Schedule, size_by_name: Mapping[str, int]) -> None:
    """Raises a ValueError where a result is not as long as its buffer at these sizes."""
    for one in schedule.outputs:
        found = sizes.evaluate(schedule.byte_counts[one.buffer], size_by_name)
        wanted = storage_bytes(one.element, sizes.product(one.shape))
        if found != sizes.evaluate(wanted, size_by_name):
            raise ValueError(f"a result of the shape {one.shape} in {found} bytes")
