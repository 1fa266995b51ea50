"""A kernel or graph and a target -> the compiled entry points of its modes.

Invariant: every entry point returned was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from shaderad.bundle.write.command_options import kernel_inputs
from shaderad.bundle.write.graph_entries import TracedGraph
from shaderad.bundle.write.profiles import Profile
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.compile import compile_programs
from shaderad.device.stages import Choice
from shaderad.diagnostics import DerivativeError, Span, error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, Kind, is_differentiable, scalars
from shaderad.lower.bindings import Lowered, Mode, Variant
from shaderad.lower.importable import lower_importable
from shaderad.lower.kernels import lower_kernel

if TYPE_CHECKING:
    from shaderad.execute.schedule import Schedule

Compile = Callable[[Sequence[Program], str], list[Code]]
"""`lower.compile.compile_programs`, with the hooks of a build."""

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
    """Why a derivative mode was not built."""

    code: str
    """The error code; empty where there is nothing to differentiate."""
    reason: str
    line: int = 0
    """In the Python file; 0 if no single line is the cause."""


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel to build."""

    kernel: Kernel
    constants: Mapping[str, object]
    inputs: frozenset[str]
    """The inputs that it is differentiated by, as Python reaches them."""

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


Steps = TypeVar("Steps")
"""The steps of one mode: a tuple of entry points for a kernel, a schedule for a graph."""
Chosen = TypeVar("Chosen", ChosenKernel, TracedGraph)


@dataclass(frozen=True, slots=True)
class TargetPrograms(Generic[Steps]):
    """One kernel or graph, compiled for one target."""

    entry_points: tuple[EntryPoint, ...]
    """The entry points of all modes; schedules refer to them by position."""
    by_mode: Mapping[Mode, Steps]
    """The modes that were built."""
    refusals: Mapping[Mode, Refusal]
    """The modes that were requested and not built."""
    functions: Program | None = None
    """The module for shaders that call the functions of the kernel."""


@dataclass(frozen=True, slots=True)
class EntryBuild(Generic[Chosen, Steps]):
    """One kernel or graph, compiled for every target."""

    source: Chosen
    bounds: str
    by_target: Mapping[str, TargetPrograms[Steps]]

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def span(self) -> Span:
        return self.source.span


KernelBuild = EntryBuild[ChosenKernel, tuple[EntryPoint, ...]]
GraphBuild: TypeAlias = EntryBuild[TracedGraph, "Schedule"]
AnyBuild = KernelBuild | GraphBuild


def build_programs(
    chosen: ChosenKernel,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool = False,
    compile_with: Compile = compile_programs,
) -> TargetPrograms[tuple[EntryPoint, ...]]:
    """Lowers and compiles the modes of a kernel.

    Raises:
        LanguageError: The primal is not valid.
        CompileError: SR0501 to SR0506, or SR0711 if the target lacks what the kernel uses.
    """
    kernel = chosen.kernel
    check_double(kernel, profile)
    variant = _variant(chosen, profile, bounds)
    results = [b.type.element for b in kernel.buffers if b.access is not Access.IN]
    lowered_by_mode, refusals = build_modes(
        partial(lower_kernel, kernel, variant=variant),
        nothing_to_differentiate(
            is_wanted=bool(variant.wanted),
            has_float_inputs=any(kernel_inputs(kernel).values()),
            has_float_results=any(map(is_differentiable, results)),
            no_results="it writes no floats",
        ),
        with_forward=with_forward,
    )
    functions = lower_importable(kernel, variant) if variant.wanted else None
    programs = [each.program for lowered in lowered_by_mode.values() for each in lowered]
    if functions is not None:
        programs.append(functions)
    codes = iter(compile_with(programs, profile.name))
    by_mode = {
        mode: tuple(_entry_points((kernel, variant), lowered, codes))
        for mode, lowered in lowered_by_mode.items()
    }
    return TargetPrograms(
        tuple(point for points in by_mode.values() for point in points),
        by_mode,
        refusals,
        functions,
    )


def build_modes(
    build_mode: Callable[[Mode], Steps], nothing: Refusal | None, *, with_forward: bool
) -> tuple[dict[Mode, Steps], dict[Mode, Refusal]]:
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
    """The Out arrays whose shape the built code takes to be that of the launch."""
    rank = len(kernel.index_names)
    outs = (b for b in kernel.buffers if b.access is Access.OUT)
    return frozenset(b.name for b in outs if b.type.rank == rank)


def _variant(chosen: ChosenKernel, profile: Profile, bounds: str) -> Variant:
    shaped = launch_shaped_names(chosen.kernel)
    choice = Choice(Mode.PRIMAL, bounds, "", shaped, frozenset(), chosen.wanted)
    return variant_for(choice, profile)


def variant_for(choice: Choice, profile: Profile) -> Variant:
    """`choice` on the devices of a target."""
    return Variant(
        wanted=choice.wanted,
        bounds=choice.bounds,
        checks=choice.checks,
        launch_shaped=choice.launch_shaped,
        device_uniforms=choice.device_uniforms,
        is_one_thread=choice.is_one_thread,
        atomics=profile.atomics,
        subgroups=profile.has_subgroups,
        are_waves_free=profile.are_waves_free,
        storage_buffer_limit=profile.limits.storage_buffers,
        workgroup=profile.workgroup,
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


def _entry_points(
    source: Source, lowered: Iterable[Lowered], codes: Iterator[Code]
) -> Iterator[EntryPoint]:
    name = source[0].name
    stems: list[str] = []
    for each in lowered:
        stems.append(stem_of(name, each.program, stems))
        yield EntryPoint(each, next(codes), stems[-1], name, source)


def stem_of(owner: str, program: Program, taken: Sequence[str]) -> str:
    """The entry point's name with its owner's before it; numbered if another one has it."""
    name = program.name
    stem = name if name.startswith(owner) else f"{owner}_{name}"
    start, number = stem, 2
    while stem in taken:
        stem, number = f"{start}_{number}", number + 1
    return stem
