"""A kernel and a target -> the compiled entry points of its primal and backward dispatches.

Invariant: what comes out was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shaderad.bundle.profiles import Profile
from shaderad.bundle.wanted_inputs import kernel_inputs
from shaderad.diagnostics import DerivativeError, Error, Span, error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, Kind, is_differentiable, scalars
from shaderad.lower.artifact import Code, Program
from shaderad.lower.bindings import Lowered, Mode, Variant
from shaderad.lower.compile import compile_programs
from shaderad.lower.importable import lower_importable
from shaderad.lower.kernels import lower_kernel
from shaderad.session.devices import Choice

Compile = Callable[[Sequence[Program], str], list[Code]]
"""`lower.compile.compile_programs`, with what a build adds to it."""

Source = tuple[Kernel, Variant]
"""What a dispatch was lowered from."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One compiled entry point."""

    lowered: Lowered
    code: Code
    stem: str
    """Its files' name without folder and suffix."""
    source: Source | None = None
    """`None` for passes over rows, whose loops depend on sizes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a kernel has no backward dispatches."""

    code: str
    """The error's; empty where there is nothing to differentiate."""
    reason: str
    line: int = 0
    """In the Python file; 0 where no one line is to blame."""


@dataclass(frozen=True, slots=True)
class ChosenKernel:
    """A kernel of the file that is built."""

    kernel: Kernel
    constants: Mapping[str, object]
    inputs: frozenset[str]
    """By which it is differentiated, as Python reaches them."""

    @property
    def wanted(self) -> frozenset[str]:
        """Names of their buffers and uniforms."""
        inputs = (*self.kernel.buffers, *self.kernel.uniforms)
        return frozenset(one.name for one in inputs if ".".join(one.path) in self.inputs)


@dataclass(frozen=True, slots=True)
class Programs:
    """One kernel for one target."""

    primal: tuple[Dispatch, ...]
    backward: tuple[Dispatch, ...]
    refusal: Refusal | None
    forward: tuple[Dispatch, ...] = ()
    forward_refusal: Refusal | None = None
    functions: Program | None = None
    """The module for shaders that call the kernel's functions."""

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        return (*self.primal, *self.backward, *self.forward)

    @property
    def modes(self) -> tuple[str, ...]:
        """What was built."""
        made = {"primal": self.primal, "backward": self.backward, "forward": self.forward}
        return tuple(name for name, dispatches in made.items() if dispatches)

    @property
    def refusals(self) -> dict[Mode, Refusal]:
        """Why modes that were asked for were not."""
        given = {Mode.BACKWARD: self.refusal, Mode.FORWARD: self.forward_refusal}
        return {mode: one for mode, one in given.items() if one is not None}


NOT_CHOSEN = "`--wrt` names none of its inputs"


def build_programs(
    chosen: ChosenKernel,
    profile: Profile,
    bounds: str,
    *,
    with_forward: bool = False,
    compile_with: Compile = compile_programs,
) -> Programs:
    """Lowers and compiles the modes of a kernel.

    Raises:
        LanguageError: What no mode of the kernel may say.
        CompileError: SR0501 to SR0506, or SR0711, where the target lacks what the kernel uses.
    """
    kernel = chosen.kernel
    _check_features(kernel, profile)
    variant = _variant(chosen, profile, bounds)

    primal = lower_kernel(kernel, Mode.PRIMAL, variant)
    backward, refusal = _derivative(kernel, Mode.BACKWARD, variant)
    forward, forward_refusal = (
        _derivative(kernel, Mode.FORWARD, variant) if with_forward else ((), None)
    )
    functions = lower_importable(kernel, variant) if variant.wanted else None
    modes = (primal, backward, forward)
    programs = [one.program for lowered in modes for one in lowered]
    whole = [*programs, functions] if functions is not None else programs
    codes = iter(compile_with(whole, profile.name))
    made = (_dispatches((kernel, variant), lowered, codes) for lowered in modes)
    primals, backwards, forwards = made
    return Programs(primals, backwards, refusal, forwards, forward_refusal, functions)


def _derivative(
    kernel: Kernel, mode: Mode, variant: Variant
) -> tuple[tuple[Lowered, ...], Refusal | None]:
    """The dispatches of a mode, or why there are none."""
    refusal = _nothing_to_differentiate(kernel, variant.wanted)
    if refusal is not None:
        return (), refusal
    try:
        return lower_kernel(kernel, mode, variant), None
    except DerivativeError as failure:
        return (), refusal_of(failure)


def launch_shaped_names(kernel: Kernel) -> frozenset[str]:
    """Out arrays that an artifact takes to have the launch's shape."""
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


def _check_features(kernel: Kernel, profile: Profile) -> None:
    if profile.has_double:
        return
    found = double_of(kernel)
    if found is not None:
        name, span = found
        raise error("SR0711", span, name=name, target=profile.name)


def double_of(kernel: Kernel) -> tuple[str, Span] | None:
    """The first array, uniform or variable of a kernel that holds doubles."""
    types = [(b.name, b.type.element, b.span) for b in kernel.buffers]
    types += [(u.name, u.type, u.span) for u in kernel.uniforms]
    types += [(name, t, kernel.span) for name, t in kernel.local_types.items()]
    for name, t, span in types:
        if any(s.kind is Kind.DOUBLE for s in scalars(t)):
            return name, span
    return None


def _nothing_to_differentiate(kernel: Kernel, wanted: frozenset[str]) -> Refusal | None:
    if not wanted:
        takes_floats = any(kernel_inputs(kernel).values())
        return Refusal("", NOT_CHOSEN if takes_floats else "it takes no floats")
    results = [b for b in kernel.buffers if b.access is not Access.IN]
    if not any(is_differentiable(b.type.element) for b in results):
        return Refusal("", "it writes no floats")
    return None


def refusal_of(failure: Error) -> Refusal:
    reason = f"{failure.message}; {failure.label}" if failure.label else failure.message
    return Refusal(failure.code, reason, failure.span.line if failure.span else 0)


def _dispatches(
    source: Source, lowered: tuple[Lowered, ...], codes: Iterator[Code]
) -> tuple[Dispatch, ...]:
    stems: list[str] = []
    for one in lowered:
        stems.append(stem_of(source[0].name, one.program, stems))
    return tuple(
        Dispatch(one, next(codes), stem, source) for one, stem in zip(lowered, stems, strict=True)
    )


def stem_of(owner: str, program: Program, taken: list[str]) -> str:
    """The entry point's name after its owner's; another of that name is numbered."""
    name = program.name
    stem = name if name.startswith(owner) else f"{owner}_{name}"
    start, number = stem, 2
    while stem in taken:
        stem, number = f"{start}_{number}", number + 1
    return stem
