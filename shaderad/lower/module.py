"""What one generated module collects while its functions are written.

Report sites, words of the constant buffer, names and types: each is made where it is first
needed, in the order of the text, so that the same kernel always gives the same module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from shaderad.diagnostics import Span
from shaderad.ir.nodes import Accumulate, AccumulateGradient, Function, Kernel, Print
from shaderad.ir.types import Kind, Scalar, Struct, Tuple, Type
from shaderad.ir.walk import reachable, statements
from shaderad.lower.arrays import Arrays
from shaderad.lower.artifact import Binding
from shaderad.lower.bindings import (
    Mode,
    Role,
    Site,
    SiteKind,
    Variant,
    Word,
    WordKind,
)
from shaderad.lower.known import Known
from shaderad.lower.names import member_names, module_names
from shaderad.lower.piece import Piece
from shaderad.lower.spelling import Types
from shaderad.lower.strategy import Strategies
from shaderad.rules.pushed import PushedKernel
from shaderad.rules.transforms import Transforms

_OF_TANGENTS = {
    Role.INPUT: Role.TANGENT,
    Role.UNIFORM: Role.TANGENT,
    Role.OUTPUT: Role.OUTPUT_TANGENT,
}


@dataclass(frozen=True, slots=True)
class Derivatives:
    """The names of a function's derivatives in Slang's own convention."""

    backward: str
    forward: str

    @property
    def attributes(self) -> tuple[str, str]:
        """The lines above the function."""
        return f"[BackwardDerivative({self.backward})]", f"[ForwardDerivative({self.forward})]"


class Module:
    """One kernel in one mode, being written."""

    def __init__(
        self,
        kernel: Kernel,
        mode: Mode,
        variant: Variant,
        strategies: Strategies,
        transforms: Transforms,
    ) -> None:
        self.kernel = kernel
        self.mode = mode
        self.variant = variant
        self.strategies = strategies
        self.transforms = transforms
        """The derivatives that functions take."""
        self.names = module_names()
        self.types = Types(self.names)
        self._outputs = member_names()
        self._sums = member_names()
        self._word_names = member_names()
        self.report = "Report" if variant.bounds == "raise" else "NoReport"
        self.words: dict[Word, str] = {}
        self.word_types: dict[str, str] = {}
        self.sites: list[Site] = []
        self.pieces: list[Piece] = []
        self.features: set[str] = set()
        self.shown_names = {b.name: b.shown_name for b in kernel.buffers}
        """What messages call arrays, and locals that lowering made."""
        self.is_second_winner_pass = False
        self.workgroup_size = variant.workgroup
        self.stored_types: set[Type] = set()
        """Element types of buffers that are no parameters of the kernel."""
        self.known_arguments: dict[Function, dict[str, Known]] = {}
        """By function: what a compiler may know of its parameters."""
        self.uniform_additions: list[AccumulateGradient] = []
        """Those that the threads of a wave or group make together, at one address."""
        self.is_importable = False
        """Whether programs of others import it: its types and functions are theirs to use."""
        self.derivatives: dict[Function, Derivatives] = {}
        """Of functions that such programs may differentiate."""
        self.primals: dict[str, str] = {}
        """By array of tangents, whose they are: of kernels that the host sees as theirs."""
        if mode is Mode.FORWARD and isinstance(kernel, PushedKernel):
            self.primals = {dot: name for name, dot in kernel.dots.items()}
        self._tangents: dict[str, list[str]] = {}
        self.arrays = Arrays(self)
        self._functions: dict[Function, str] = {}
        self._write: Callable[[Function, str], None] | None = None

    @property
    def is_unchecked(self) -> bool:
        return self.variant.bounds == "unchecked"

    @property
    def gives_results(self) -> bool:
        """Whether its threads have results of their own, and sums, to write."""
        is_primal = self.mode in (Mode.PRIMAL, Mode.FORWARD)
        return is_primal or (self.mode is Mode.BACKWARD and self.variant.with_results)

    @property
    def sends_reports(self) -> bool:
        return self.arrays.uses_report and (self.report == "Report" or bool(self.variant.checks))

    @property
    def counts_writes(self) -> bool:
        return self.variant.checks == "writes" and self.mode is Mode.PRIMAL

    def is_wanted(self, buffer: str) -> bool:
        return self.mode in (Mode.BACKWARD, Mode.FORWARD) and buffer in self.variant.wanted

    def tangents_of(self, buffer: str) -> list[str]:
        """The arrays that hold the tangents of a Min or Max array, in kernels with tangents."""
        if buffer not in self._tangents:
            inside = (self.kernel.body, *(f.body for f in reachable(self.kernel.body)))
            writes = (s for body in inside for s in statements(body))
            found = {
                s.tangent_buffer: None
                for s in writes
                if isinstance(s, Accumulate) and s.buffer == buffer and s.tangent_buffer
            }
            self._tangents[buffer] = list(found)
        return self._tangents[buffer]

    def part_of_winner(self, buffer: str, tangent: str) -> str:
        """What of the tag of a Min or Max array stands for what a write brought, or its tangent."""
        return f"Tangent{self.tangents_of(buffer).index(tangent)}" if tangent else "Value"

    def bound_as(self, role: Role, name: str) -> tuple[Role, str]:
        """What the host calls an array: in forward mode, those of tangents belong to others."""
        primal = self.primals.get(name)
        return (role, name) if primal is None else (_OF_TANGENTS[role], primal)

    def shaped_as(self, buffer: str) -> str:
        """The array whose shape the host gives for that of `buffer`."""
        return self.primals.get(buffer, buffer)

    # -- functions ------------------------------------------------------------------------------

    def set_function_writer(self, write: Callable[[Function, str], None]) -> None:
        self._write = write

    def function(self, f: Function) -> str:
        """The Slang name of a user function, which is written at its first use."""
        f = self.transforms.function(f)
        if f not in self._functions:
            self._functions[f] = self.names.make(f.name)
            assert self._write is not None
            self._write(f, self._functions[f])
        return self._functions[f]

    def field(self, container: Type, name: str) -> str:
        """A field's Slang name; tuple elements are numbered."""
        if isinstance(container, Tuple):
            return f"item{name}"
        assert isinstance(container, Struct)
        return self.types.field(container, name)

    def output(self, name: str) -> str:
        """The field of `Outputs` that holds an array's element, or a sum."""
        return self._outputs.make(name, name)

    def sum(self, name: str) -> str:
        """The field of `Sums` for what threads sum under `name`."""
        return self._sums.make(name, name)

    # -- what the host provides -----------------------------------------------------------------

    def word(self, word: Word, name: str, slang_type: str = "uint") -> str:
        """Reads a word of the constant buffer."""
        if word not in self.words:
            self.words[word] = self._word_names.make(name, word)
            self.word_types[self.words[word]] = slang_type
        return f"parameters.{self.words[word]}"

    def adder_of_gradient(self, s: AccumulateGradient) -> str:
        """The function of the library that makes an addition."""
        if not self.is_uniform(s):
            return "addGradient"
        if self.sums_in_groups:
            return "addGroupGradient"
        self.features.add("subgroups")
        return "addUniformGradient"

    def is_uniform(self, s: AccumulateGradient) -> bool:
        return any(s is one for one in self.uniform_additions)

    @property
    def sums_in_waves(self) -> bool:
        """Whether waves sum what their threads add at one address."""
        return bool(self.uniform_additions) and self.variant.adds_in_waves

    @property
    def sums_in_groups(self) -> bool:
        """Whether groups do, whose threads must all run along."""
        return bool(self.uniform_additions) and not self.variant.adds_in_waves

    def zero(self) -> str:
        """A zero that compilers do not know, for `atRunTime` and `countAtRunTime`."""
        return self.word(Word(WordKind.BITS), "zero", "float")

    def declare(self, piece: Piece, binding: Binding, declaration: str) -> None:
        """A resource in its slot.

        Slang numbers HLSL's and Metal's resources by itself, each class from 0, unless a place was
        asked for: that then holds on every target.
        """
        slot, space = binding.slot, self.variant.space
        piece.add(f"[[vk::binding({slot}, {space})]]")
        place = f" : register({binding.access.register_class}{slot}, space{space})"
        is_asked = bool(space or self.variant.first_binding)
        piece.add(f"{declaration}{place if is_asked else ''};")

    def offset_word(self, role: Role, name: str, suffix: str) -> str:
        word = Word(WordKind.OFFSET, name, 0, role)
        return self.word(word, f"{name}{suffix}_offset")

    def bits_word(self, value: float, scalar: Scalar) -> str:
        """An infinity or NaN, which must not be a literal."""
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        read = f"asfloat({self.word(Word(WordKind.BITS, '', bits), f'bits_{bits:08x}')})"
        return read if scalar.kind is Kind.FLOAT else f"{scalar}({read})"

    def print_site(self, s: Print) -> str:
        """A new place that prints."""
        self.arrays.uses_print = True
        return self._site(Site(SiteKind.PRINT, s.span, "print", s.form))

    def site(self, kind: SiteKind, span: Span, name: str) -> str:
        """A new place that can report."""
        if self.report == "Report" or kind in (SiteKind.FINITE, SiteKind.WRITES):
            self.arrays.uses_report = True
        return self._site(Site(kind, span, name))

    def _site(self, site: Site) -> str:
        if site not in self.sites:
            self.sites.append(site)
        return str(self.sites.index(site))
