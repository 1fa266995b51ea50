"""A kernel or graph and a target -> its plans and their compiled programs.

Invariant: every entry point returned was compiled; a program that several steps or plans run is
compiled and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from shaderad.bundle.format.plan_names import plan_name
from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.bundle.write.graph_entries import TracedGraph
from shaderad.bundle.write.kernel_plans import LaunchForm, launch_plan
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.background import Pending
from shaderad.compiler.compile import begin_compilations
from shaderad.device.stages import Choice, KernelFacts
from shaderad.diagnostics import DerivativeError, Span, error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, Kind, scalars
from shaderad.lower.bindings import Lowered, Mode, Role, Variant
from shaderad.lower.importable import lower_importable
from shaderad.lower.kernels import lower_kernel
from shaderad.lower.targets import Profile
from shaderad.lower.write.names import abbreviated

if TYPE_CHECKING:
    from shaderad.execute.planned_kernels import PlannedKernel
    from shaderad.execute.schedule import Schedule

Compile = Callable[[Sequence[Program], str, str], list[Pending[Code]]]
"""`compiler.compile.begin_compilations`, with the hooks of a build."""

Source = tuple[Kernel, Variant]
"""The kernel and variant that an entry point was lowered from."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One compiled entry point."""

    lowered: Lowered
    code: Code
    stem: str
    """The name of its files, without folder and suffix."""
    kernel: str = ""
    """The kernel that its reports name; empty for kernels that a plan generated."""
    source: Source | None = None
    """`None` for passes over rows, whose loops depend on sizes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a derivative mode was not built."""

    code: str
    """The error code; empty if there is nothing to differentiate."""
    reason: str
    line: int = 0
    """The line in the Python file; 0 if no single line is the cause."""


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel to build."""

    kernel: Kernel
    constants: Mapping[str, object]
    inputs: frozenset[str]
    """The Python paths of the inputs that it is differentiated by."""

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def span(self) -> Span:
        return self.kernel.span

    @property
    def wanted(self) -> frozenset[str]:
        """Names of the buffers and uniforms of `inputs`."""
        inputs = (*self.kernel.buffers, *self.kernel.uniforms)
        return frozenset(i.name for i in inputs if ".".join(i.path) in self.inputs)


Chosen = TypeVar("Chosen", ChosenKernel, TracedGraph)


@dataclass(frozen=True, slots=True)
class ModePlan:
    """The schedule of one mode, with the names of its inputs and outputs."""

    schedule: Schedule
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetPrograms:
    """One kernel or graph, compiled for one target."""

    entry_points: tuple[EntryPoint, ...]
    """The programs of all modes; schedules refer to them by index."""
    by_mode: Mapping[Mode, ModePlan]
    """The modes that were built."""
    refusals: Mapping[Mode, Refusal]
    """The modes that were requested and not built."""
    functions: Program | None = None
    """The module for shaders that call the functions of the kernel."""


@dataclass(frozen=True, slots=True)
class BegunPrograms:
    """One kernel or graph for one target, while its programs compile."""

    entry: str
    lowered: Sequence[Lowered]
    origins: Sequence[tuple[str, Source | None]]
    """For each program, the kernel that its reports name, and its source."""
    codes: Sequence[Pending[Code]]
    """The code of each program, then that of `functions`."""
    by_mode: Mapping[Mode, ModePlan]
    refusals: Mapping[Mode, Refusal]
    functions: Program | None

    def finished(self) -> TargetPrograms:
        """Waits for the compiler.

        Raises:
            CompileError: The error of the first program that has one.
        """
        codes = [code.result() for code in self.codes]
        points: list[EntryPoint] = []
        stems: list[str] = []
        for each, code, origin in zip(self.lowered, codes, self.origins, strict=False):
            stems.append(stem_of(self.entry, each.program, stems))
            points.append(EntryPoint(each, code, stems[-1], *origin))
        return TargetPrograms(tuple(points), self.by_mode, self.refusals, self.functions)


@dataclass(frozen=True, slots=True)
class EntryBuild(Generic[Chosen]):
    """One kernel or graph, compiled for every target."""

    source: Chosen
    bounds: str
    by_target: Mapping[str, TargetPrograms]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def span(self) -> Span:
        return self.source.span


KernelBuild = EntryBuild[ChosenKernel]
GraphBuild = EntryBuild[TracedGraph]
AnyBuild = KernelBuild | GraphBuild


class BuiltPrograms:
    """The programs of one entry for one target, collected while its modes are scheduled."""

    def __init__(self, entry: str, profile: Profile, bounds: str) -> None:
        self.lowered: list[Lowered] = []
        self._entry = entry
        self._profile = profile
        self._bounds = bounds
        self._origins: list[tuple[str, Source | None]] = []
        """For each program, the kernel that its reports name, and its source."""
        self._by_kernel: dict[tuple[Kernel, Choice], list[int]] = {}

    def of_kernel(self, kernel: Kernel, choice: Choice) -> Sequence[int]:
        """The dispatches of a mode of `kernel`, in order."""
        key = (kernel, choice)
        if key not in self._by_kernel:
            variant = self.variant(kernel, choice)
            lowered = lower_kernel(kernel, choice.mode, variant)
            self._by_kernel[key] = [
                self.number(each, kernel.reported_name, (kernel, variant)) for each in lowered
            ]
        return self._by_kernel[key]

    def of_built(self, kernel: PlannedKernel, choice: Choice) -> NoReturn:
        """Refuses a built kernel, which has no body to lower.

        Raises:
            CompileError: SR0753.
        """
        del choice
        raise error("SR0753", kernel=kernel.name)

    def number(self, lowered: Lowered, kernel: str, source: Source | None = None) -> int:
        """The number of a program, which is added if it is new."""
        for k, program in enumerate(self.lowered):
            # Reports name the kernel, so programs with sites are shared only within a kernel.
            if program == lowered and (self._origins[k][0] == kernel or not lowered.sites):
                return k
        self.lowered.append(lowered)
        self._origins.append((kernel, source))
        return len(self.lowered) - 1

    def variant(self, kernel: Kernel, choice: Choice) -> Variant:
        """The variant of `choice` for the target; `bounds` apply to every kernel with checks."""
        check_double(kernel, self._profile, self._entry)
        if choice.bounds == "raise":
            choice = replace(choice, bounds=self._bounds)
        return variant_for(choice, self._profile)

    def begun(
        self,
        by_mode: Mapping[Mode, ModePlan],
        refusals: Mapping[Mode, Refusal],
        compile_with: Compile,
        functions: Program | None = None,
    ) -> BegunPrograms:
        """Starts to compile the programs of the modes, and the module `functions`."""
        # Programs that only a refused mode added are left out.
        count = max(len(plan.schedule.programs) for plan in by_mode.values())
        lowered = self.lowered[:count]
        programs = [each.program for each in lowered]
        extra = [] if functions is None else [functions]
        codes = compile_with([*programs, *extra], self._profile.format, self._profile.name)
        return BegunPrograms(
            self._entry, lowered, self._origins, codes, by_mode, refusals, functions
        )


def build_kernel(
    chosen: ChosenKernel,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool = False,
    compile_with: Compile = begin_compilations,
) -> BegunPrograms:
    """Lowers the modes of a kernel, and starts to compile them.

    Raises:
        LanguageError: The primal is not valid.
        CompileError: SR0711, the target lacks a feature that the kernel uses.
    """
    kernel = chosen.kernel
    check_double(kernel, profile)
    programs = BuiltPrograms(kernel.name, profile, bounds)
    facts = KernelFacts(kernel)
    shaped = launch_shaped_names(kernel)
    primal = Choice(Mode.PRIMAL, bounds, "", shaped, frozenset(), chosen.wanted)
    inputs = [(Role.INPUT, b.name) for b in facts.read]

    def build_mode(mode: Mode) -> ModePlan:
        role, names = {
            Mode.PRIMAL: (Role.COTANGENT, ()),
            Mode.BACKWARD: (Role.COTANGENT, facts.differentiable_results),
            Mode.FORWARD: (Role.TANGENT, chosen.wanted),
        }[mode]
        form = LaunchForm(replace(primal, mode=mode), frozenset(names))
        required = [*inputs, *((role, name) for name in facts.element_types if name in names)]
        plan = launch_plan(kernel, facts, form, programs, required)
        return ModePlan(
            plan.schedule, tuple(map(plan_name, plan.inputs)), tuple(map(plan_name, plan.outputs))
        )

    by_mode, refusals = build_modes(
        build_mode,
        nothing_to_differentiate(
            is_wanted=bool(chosen.wanted),
            has_float_inputs=any(kernel_inputs(kernel).values()),
            has_float_results=bool(facts.differentiable_results),
            no_results="it writes no floats",
        ),
        with_forward=with_forward,
    )
    variant = programs.variant(kernel, primal)
    functions = lower_importable(kernel, variant) if chosen.wanted else None
    return programs.begun(by_mode, refusals, compile_with, functions)


def build_modes(
    build_mode: Callable[[Mode], ModePlan], nothing: Refusal | None, *, with_forward: bool
) -> tuple[dict[Mode, ModePlan], dict[Mode, Refusal]]:
    """Builds the primal and the derivative modes.

    Args:
        build_mode: Builds one mode; a `DerivativeError` of it becomes the refusal of the mode.
        nothing: The refusal of all derivative modes, if there is nothing to differentiate.
        with_forward: True if forward mode is requested.
    """
    by_mode = {Mode.PRIMAL: build_mode(Mode.PRIMAL)}
    refusals: dict[Mode, Refusal] = {}
    for mode in (Mode.BACKWARD, Mode.FORWARD) if with_forward else (Mode.BACKWARD,):
        if nothing is not None:
            refusals[mode] = nothing
            continue
        try:
            by_mode[mode] = build_mode(mode)
        except DerivativeError as failure:
            reason = f"{failure.message}; {failure.label}" if failure.label else failure.message
            line = failure.span.line if failure.span else 0
            refusals[mode] = Refusal(failure.code, reason, line)
    return by_mode, refusals


def nothing_to_differentiate(
    *, is_wanted: bool, has_float_inputs: bool, has_float_results: bool, no_results: str
) -> Refusal | None:
    """The refusal of an entry without differentiated inputs or without float results."""
    if not is_wanted:
        not_chosen = "`--wrt` names none of its inputs"
        return Refusal("", not_chosen if has_float_inputs else "it takes no floats")
    return None if has_float_results else Refusal("", no_results)


def launch_shaped_names(kernel: Kernel) -> frozenset[str]:
    """The Out arrays that the built code assumes to have the shape of the launch."""
    rank = len(kernel.index_names)
    outs = (b for b in kernel.buffers if b.access is Access.OUT)
    return frozenset(b.name for b in outs if b.type.rank == rank)


def variant_for(choice: Choice, profile: Profile) -> Variant:
    """The variant of `choice` for the devices of a target."""
    return Variant(
        wanted=choice.wanted,
        bounds=choice.bounds,
        checks=choice.checks,
        launch_shaped=choice.launch_shaped,
        device_uniforms=choice.device_uniforms,
        with_results=choice.with_results,
        is_one_thread=choice.is_one_thread,
        copies=choice.copies,
        atomics=profile.atomics,
        group_atomics=profile.group_atomics,
        group_bytes=profile.limits.group_bytes,
        subgroups=profile.has_subgroups,
        are_waves_free=profile.are_waves_free,
        storage_buffer_limit=profile.limits.storage_buffers,
        workgroup=profile.workgroup,
        shape=profile.launch_shape,
        space=profile.space,
        first_binding=profile.first_binding,
        host=f"`{profile.name}`",
    )


def check_double(kernel: Kernel, profile: Profile, graph: str = "") -> None:
    """Refuses a kernel that holds doubles on a target without them.

    Raises:
        CompileError: SR0711, at the first such array, uniform or variable, or for `graph` if the
            kernel is part of a graph.
    """
    if profile.has_double:
        return
    types = [(b.name, b.type.element, b.span) for b in kernel.buffers]
    types += [(u.name, u.type, u.span) for u in kernel.uniforms]
    types += [(name, t, kernel.span) for name, t in kernel.local_types.items()]
    for name, t, span in types:
        if any(s.kind is Kind.DOUBLE for s in scalars(t)):
            raise error("SR0711", None if graph else span, name=graph or name, target=profile.name)


def stem_of(owner: str, program: Program, taken: Sequence[str]) -> str:
    """The entry point's name after its owner's, with a number if the name is taken."""
    name = program.name
    stem = abbreviated(name if name.startswith(owner) else f"{owner}_{name}")
    start, number = stem, 2
    while stem in taken:
        stem, number = f"{start}_{number}", number + 1
    return stem
