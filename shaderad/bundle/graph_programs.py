"""A traced graph and a target -> its plans and their compiled programs.

Invariant: a program that several steps or plans run is compiled and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from shaderad.bundle.graph_entries import TracedGraph
from shaderad.bundle.profiles import Profile
from shaderad.bundle.programs import (
    NOT_CHOSEN,
    Compile,
    Dispatch,
    Refusal,
    Source,
    double_of,
    refusal_of,
    stem_of,
    variant_for,
)
from shaderad.diagnostics import DerivativeError, error
from shaderad.graph.plan import PassStep
from shaderad.graph.planning import plan
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Lowered, Mode
from shaderad.lower.compile import compile_programs
from shaderad.lower.kernels import lower_kernel
from shaderad.session.devices import Choice
from shaderad.session.kernel_steps import StagedPasses
from shaderad.session.plan_steps import lowered_passes
from shaderad.session.run_graph import pulled, pushed
from shaderad.session.schedule import Schedule
from shaderad.session.scheduling import schedule


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A program of a graph, and the user's kernel that its reports name, or nothing."""

    dispatch: Dispatch
    kernel: str


@dataclass(frozen=True, slots=True)
class GraphPrograms:
    """One graph for one target."""

    programs: tuple[GraphProgram, ...]
    """Those of all modes; plans number them."""
    by_mode: dict[Mode, Schedule]
    refusals: dict[Mode, Refusal]

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        return tuple(one.dispatch for one in self.programs)

    @property
    def modes(self) -> tuple[str, ...]:
        """What was built."""
        names = {Mode.PRIMAL: "primal", Mode.BACKWARD: "backward", Mode.FORWARD: "forward"}
        return tuple(name for mode, name in names.items() if mode in self.by_mode)

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no backward mode."""
        return self.refusals.get(Mode.BACKWARD)


def build_graph(
    graph: TracedGraph,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool,
    compile_with: Compile = compile_programs,
) -> GraphPrograms:
    """Plans, lowers and compiles the modes of `graph`.

    Raises:
        LanguageError: What no mode may say.
        CompileError: SR0501 to SR0507, SR0711, where the target lacks what the graph uses.
    """
    programs = _Programs(graph.name, profile, bounds)
    primal = graph.variant.graph
    by_mode = {Mode.PRIMAL: _scheduled(primal, programs, profile)}
    refusals: dict[Mode, Refusal] = {}
    modes: dict[Mode, Callable[[TracedGraph], Graph]] = {Mode.BACKWARD: _backward}
    if with_forward:
        modes[Mode.FORWARD] = _forward
    for mode, derivative in modes.items():
        refusal = _nothing_to_differentiate(graph)
        if refusal is None:
            try:
                by_mode[mode] = _scheduled(derivative(graph), programs, profile)
            except DerivativeError as failure:
                refusal = refusal_of(failure)
        if refusal is not None:
            refusals[mode] = refusal
    used = {mode: len(one.programs) for mode, one in by_mode.items()}
    compiled = programs.compiled(max(used.values()), compile_with)
    return GraphPrograms(compiled, by_mode, refusals)


def _scheduled(graph: Graph, programs: _Programs, profile: Profile) -> Schedule:
    return schedule(plan(graph, profile.limits.storage_buffers), programs)


def _floats(values: Sequence[Value]) -> tuple[bool, ...]:
    return tuple(is_differentiable(v.element) for v in values)


def _backward(graph: TracedGraph) -> Graph:
    primal = graph.variant.graph
    return pulled(primal, graph.wanted, _floats(primal.outputs), with_outputs=True)


def _forward(graph: TracedGraph) -> Graph:
    return pushed(graph.variant.graph, graph.wanted, with_outputs=True)


def _nothing_to_differentiate(graph: TracedGraph) -> Refusal | None:
    primal = graph.variant.graph
    if not any(graph.wanted):
        takes_floats = any(_floats(primal.inputs))
        return Refusal("", NOT_CHOSEN if takes_floats else "it takes no floats")
    return None if any(_floats(primal.outputs)) else Refusal("", "it gives no floats")


@dataclass(eq=False)
class _Programs:
    """The programs of one graph for one target, while it is scheduled."""

    graph: str
    profile: Profile
    bounds: str
    lowered: list[Lowered] = field(default_factory=list[Lowered])
    _kernels: list[str] = field(default_factory=list[str])
    _sources: list[Source | None] = field(default_factory=list["Source | None"])
    _by_kernel: dict[tuple[Kernel, Choice], list[int]] = field(
        default_factory=dict[tuple[Kernel, Choice], list[int]]
    )

    def of_kernel(self, kernel: Kernel, choice: Choice) -> Sequence[int]:
        key = (kernel, choice)
        if key not in self._by_kernel:
            self._check_double(kernel)
            variant = variant_for(self._built(choice), self.profile)
            lowered = lower_kernel(kernel, choice.mode, variant)
            self._by_kernel[key] = [
                self._number(one, kernel.reported_name, (kernel, variant)) for one in lowered
            ]
        return self._by_kernel[key]

    def of_pass(self, step: PassStep, choice: Choice) -> StagedPasses:
        self._check_double(step.producer.kernel)
        passes = lowered_passes(step, variant_for(self._built(choice), self.profile))
        kernel = step.producer.kernel.reported_name
        numbers = [self._number(one.lowered, kernel) for one in passes.steps]
        return StagedPasses(passes, tuple(numbers), step.shape)

    def compiled(self, count: int, compile_with: Compile) -> tuple[GraphProgram, ...]:
        """The first `count` programs; what a refused mode added is left out."""
        found: list[GraphProgram] = []
        stems: list[str] = []
        lowered = self.lowered[:count]
        codes = compile_with([one.program for one in lowered], self.profile.name)
        rows = zip(lowered, codes, self._kernels, self._sources, strict=False)
        for one, code, kernel, source in rows:
            stems.append(stem_of(self.graph, one.program, stems))
            found.append(GraphProgram(Dispatch(one, code, stems[-1], source), kernel))
        return tuple(found)

    def _check_double(self, kernel: Kernel) -> None:
        if not self.profile.has_double and double_of(kernel) is not None:
            raise error("SR0711", name=self.graph, target=self.profile.name)

    def _built(self, choice: Choice) -> Choice:
        """What the build says of bounds goes for whatever is checked."""
        return replace(choice, bounds=self.bounds) if choice.bounds == "raise" else choice

    def _number(self, lowered: Lowered, kernel: str, source: Source | None = None) -> int:
        for k, known in enumerate(self.lowered):
            # The kernel is what reports name.
            if known == lowered and (self._kernels[k] == kernel or not lowered.sites):
                return k
        self.lowered.append(lowered)
        self._kernels.append(kernel)
        self._sources.append(source)
        return len(self.lowered) - 1
