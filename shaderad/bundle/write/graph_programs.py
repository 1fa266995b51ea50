"""A traced graph and a target -> its plans and their compiled programs.

Invariant: a program that several steps or plans run is compiled and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shaderad.bundle.write.graph_entries import TracedGraph
from shaderad.bundle.write.profiles import Profile
from shaderad.bundle.write.programs import (
    Compile,
    EntryPoint,
    Source,
    TargetPrograms,
    build_modes,
    check_double,
    nothing_to_differentiate,
    stem_of,
    variant_for,
)
from shaderad.compiler.compile import compile_programs
from shaderad.device.stages import Choice
from shaderad.execute.kernel_steps import StagedPasses
from shaderad.execute.plan_to_schedule import lowered_passes, schedule
from shaderad.execute.run_graph import pulled, pushed
from shaderad.execute.schedule import Schedule
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Lowered, Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.plan.planning import plan
from shaderad.plan.steps import RunPass


def build_graph(
    graph: TracedGraph,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool = False,
    compile_with: Compile = compile_programs,
) -> TargetPrograms[Schedule]:
    """Plans, lowers and compiles the modes of `graph`.

    Raises:
        LanguageError: The primal is not valid.
        CompileError: SR0501 to SR0507, SR0711, if the target lacks what the graph uses.
    """
    programs = _Programs(graph.name, profile, bounds)
    primal = graph.variant.graph
    float_outputs = _float_flags(primal.outputs)

    def build_mode(mode: Mode) -> Schedule:
        if mode is Mode.BACKWARD:
            built = pulled(primal, graph.wanted, float_outputs, with_outputs=True)
        elif mode is Mode.FORWARD:
            built = pushed(primal, graph.wanted, with_outputs=True)
        else:
            built = primal
        return schedule(plan(built, profile.limits.storage_buffers), programs)

    by_mode, refusals = build_modes(
        build_mode,
        nothing_to_differentiate(
            is_wanted=any(graph.wanted),
            has_float_inputs=any(_float_flags(primal.inputs)),
            has_float_results=any(float_outputs),
            no_results="it gives no floats",
        ),
        with_forward=with_forward,
    )
    # Programs that only a refused mode added are left out.
    count = max(len(each.programs) for each in by_mode.values())
    return TargetPrograms(programs.compiled(count, compile_with), by_mode, refusals)


def _float_flags(values: Sequence[Value]) -> tuple[bool, ...]:
    return tuple(is_differentiable(v.element) for v in values)


@dataclass(eq=False)
class _Programs:
    """The programs of one graph for one target, collected while its modes are scheduled."""

    graph: str
    profile: Profile
    bounds: str
    lowered: list[Lowered] = field(default_factory=list[Lowered])
    _origins: list[tuple[str, Source | None]] = field(
        default_factory=list["tuple[str, Source | None]"]
    )
    """The kernel that reports name, and the source, of each program."""
    _by_kernel: dict[tuple[Kernel, Choice], list[int]] = field(
        default_factory=dict[tuple[Kernel, Choice], list[int]]
    )

    def of_kernel(self, kernel: Kernel, choice: Choice) -> Sequence[int]:
        key = (kernel, choice)
        if key not in self._by_kernel:
            variant = self._variant(kernel, choice)
            lowered = lower_kernel(kernel, choice.mode, variant)
            self._by_kernel[key] = [
                self._number(each, kernel.reported_name, (kernel, variant)) for each in lowered
            ]
        return self._by_kernel[key]

    def of_pass(self, step: RunPass, choice: Choice) -> StagedPasses:
        kernel = step.producer.kernel
        passes = lowered_passes(step, self._variant(kernel, choice))
        numbers = [self._number(each.lowered, kernel.reported_name) for each in passes.steps]
        return StagedPasses(passes, tuple(numbers), step.shape)

    def compiled(self, count: int, compile_with: Compile) -> tuple[EntryPoint, ...]:
        """The first `count` programs."""
        points: list[EntryPoint] = []
        stems: list[str] = []
        lowered = self.lowered[:count]
        codes = compile_with([each.program for each in lowered], self.profile.name)
        for each, code, origin in zip(lowered, codes, self._origins, strict=False):
            stems.append(stem_of(self.graph, each.program, stems))
            points.append(EntryPoint(each, code, stems[-1], *origin))
        return tuple(points)

    def _variant(self, kernel: Kernel, choice: Choice) -> Variant:
        """`choice` for the target; the build's `bounds` apply to every kernel with checks."""
        check_double(kernel, self.profile, self.graph)
        if choice.bounds == "raise":
            choice = replace(choice, bounds=self.bounds)
        return variant_for(choice, self.profile)

    def _number(self, lowered: Lowered, kernel: str, source: Source | None = None) -> int:
        for k, program in enumerate(self.lowered):
            # Reports name the kernel, so programs with sites are shared only within one.
            if program == lowered and (self._origins[k][0] == kernel or not lowered.sites):
                return k
        self.lowered.append(lowered)
        self._origins.append((kernel, source))
        return len(self.lowered) - 1
