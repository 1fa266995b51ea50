"""The state of one generated module: names, types, report sites, words of the constant buffer.

Each is created at its first use, in the order of the text, so that the same kernel always gives
the same module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from shaderad.compiler.artifact import Binding
from shaderad.diagnostics import Span
from shaderad.ir.nodes import Accumulate, AccumulateGradient, Barrier, Function, Kernel, Print
from shaderad.ir.types import Access, Kind, Scalar, Struct, Tuple, Type
from shaderad.ir.walk import reachable, statements
from shaderad.lower.bindings import Mode, Role, Site, SiteKind, Variant, Word, WordKind
from shaderad.lower.prepare.held_sums import is_whole
from shaderad.lower.prepare.known import Folded
from shaderad.lower.prepare.strategy import Strategies
from shaderad.lower.write.arrays import Arrays
from shaderad.lower.write.names import member_names, module_names
from shaderad.lower.write.text import Piece, SlangTypes
from shaderad.rules.nodes import PushedKernel
from shaderad.rules.transforms import Transforms

_TANGENT_ROLES = {
    Role.INPUT: Role.TANGENT,
    Role.UNIFORM: Role.TANGENT,
    Role.OUTPUT: Role.OUTPUT_TANGENT,
}


@dataclass(frozen=True, slots=True)
class DerivativeNames:
    """The names of a function's derivatives in Slang's convention."""

    backward: str
    forward: str

    @property
    def attributes(self) -> tuple[str, str]:
        """The Slang attributes of the function."""
        return f"[BackwardDerivative({self.backward})]", f"[ForwardDerivative({self.forward})]"


class Module:
    """The module of one kernel in one mode, while it is written."""

    def __init__(
        self,
        kernel: Kernel,
        mode: Mode,
        variant: Variant,
        strategies: Strategies,
        transforms: Transforms,
        write_function: Callable[[Module, Function, str], Piece],
    ) -> None:
        self.kernel = kernel
        self.mode = mode
        self.variant = variant
        self.strategies = strategies
        self.transforms = transforms
        self._write_function = write_function
        self.names = module_names()
        self.types = SlangTypes(self.names)
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
        """The names of arrays and of lowering's own locals in messages."""
        self.is_second_winner_pass = False
        self.workgroup_size = variant.workgroup
        self.stored_types: set[Type] = set()
        """Element types of buffers besides the kernel's parameters."""
        self.folded_parameters: dict[Function, dict[str, Folded]] = {}
        self.uniform_additions: list[AccumulateGradient] = []
        """Additions that all threads of a wave or group make at one address."""
        self.held_counts: dict[str, int] = {}
        """The elements of a gradient that a thread holds, by array."""
        self.is_importable = False
        """True if other programs import the module."""
        self.derivatives: dict[Function, DerivativeNames] = {}
        """The functions that importing programs may differentiate."""
        self.primals: dict[str, str] = {}
        """The primal array of each array of tangents, if the host binds tangents by its name."""
        if mode is Mode.FORWARD and isinstance(kernel, PushedKernel):
            self.primals = {dot: name for name, dot in kernel.dots.items()}
        self._tangents: dict[str, list[str]] = {}
        self.arrays = Arrays(self)
        self._functions: dict[Function, str] = {}

    @property
    def is_unchecked(self) -> bool:
        return self.variant.bounds == "unchecked"

    @property
    def gives_results(self) -> bool:
        """True if threads write results of the primal, or tangents of them."""
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
        """The arrays that hold tangents of a Min or Max array, in kernels with tangents."""
        if buffer not in self._tangents:
            bodies = (self.kernel.body, *(f.body for f in reachable(self.kernel.body)))
            arrays = (
                s.tangent_buffer
                for body in bodies
                for s in statements(body)
                if isinstance(s, Accumulate) and s.buffer == buffer and s.tangent_buffer
            )
            self._tangents[buffer] = list(dict.fromkeys(arrays))
        return self._tangents[buffer]

    def part_of_winner(self, buffer: str, tangent: str) -> str:
        """The type, in the tag of a Min or Max array, of its values or of a tangent."""
        return f"Tangent{self.tangents_of(buffer).index(tangent)}" if tangent else "Value"

    def bound_as(self, role: Role, name: str) -> tuple[Role, str]:
        """Role and name by which the host binds an array: a tangent is bound by its primal."""
        primal = self.primals.get(name)
        return (role, name) if primal is None else (_TANGENT_ROLES[role], primal)

    def shaped_as(self, buffer: str) -> str:
        """The array whose shape the host passes for `buffer`."""
        return self.primals.get(buffer, buffer)

    # -- functions ------------------------------------------------------------------------------

    def function(self, f: Function) -> str:
        """The Slang name of a user function; the first use writes it."""
        f = self.transforms.function(f)
        if f not in self._functions:
            self._functions[f] = self.names.make(f.name)
            self.pieces.append(self._write_function(self, f, self._functions[f]))
        return self._functions[f]

    def field(self, container: Type, name: str) -> str:
        """A field's Slang name; tuple elements are numbered."""
        if isinstance(container, Tuple):
            return f"item{name}"
        assert isinstance(container, Struct)
        return self.types.field(container, name)

    def output(self, name: str) -> str:
        """The field of `Outputs` for an array's element, or a sum."""
        return self._outputs.make(name, name)

    def sum(self, name: str) -> str:
        """The field of `Sums` for the sum `name`."""
        return self._sums.make(name, name)

    # -- constant buffer, bindings, sites -------------------------------------------------------

    def word(self, word: Word, name: str, slang_type: str = "uint") -> str:
        """The text of a word of the constant buffer."""
        if word not in self.words:
            self.words[word] = self._word_names.make(name, word)
            self.word_types[self.words[word]] = slang_type
        holder = "heldParameters" if self.holds_parameters else "parameters"
        return f"{holder}.{self.words[word]}"

    @property
    def holds_parameters(self) -> bool:
        """True if threads copy the constant buffer before their loops.

        On devices that run threads in turn, most threads loop over indices, and would read a word
        of a buffer again after each store.
        """
        return not self.variant.shape.is_parallel

    def has_cotangent(self, written: str) -> bool:
        """False for a written array if neither it nor its tangent has a cotangent."""
        absent = self.variant.absent
        if written not in absent:
            return True
        is_extreme = self.kernel.buffer(written).access in (Access.MIN, Access.MAX)
        # A write to a Min or Max array carries the cotangent of its tangent, too.
        dot = self.kernel.dots.get(written) if isinstance(self.kernel, PushedKernel) else None
        return is_extreme and dot is not None and dot not in absent

    def holds_sums(self, s: AccumulateGradient) -> bool:
        """True if threads sum an addition for several indices before it reaches memory."""
        return s.buffer in self.held_counts and is_whole(s) and not self.is_uniform(s)

    def adder_of_gradient(self, s: AccumulateGradient) -> str:
        """The library function of an addition."""
        if not self.is_uniform(s):
            return "addGradient"
        if self.sums_in_groups:
            return "addGroupGradient"
        self.features.add("subgroups")
        return "addUniformGradient"

    def is_uniform(self, s: AccumulateGradient) -> bool:
        return any(s is addition for addition in self.uniform_additions)

    @property
    def sums_in_waves(self) -> bool:
        """True if waves sum additions of their threads at one address."""
        return bool(self.uniform_additions) and self.variant.adds_in_waves

    @property
    def sums_in_groups(self) -> bool:
        """True if groups sum them, at barriers that all threads must reach."""
        return bool(self.uniform_additions) and not self.variant.adds_in_waves

    @cached_property
    def runs_twice(self) -> bool:
        """True if a Greatest array takes two passes, because 64-bit atomics are missing."""
        has_longs = "int64-atomics" in self.variant.features and not self.variant.is_windowed
        return not has_longs and any(b.access is Access.GREATEST for b in self.kernel.buffers)

    @property
    def group_indices(self) -> int:
        """`Lowered.group_indices`: each word of a copy costs a group an addition to memory."""
        words = sum(copied.room_words for copied in self.arrays.copies.values())
        return words * self.variant.shape.indices_per_copied_word

    @property
    def goes_past_end(self) -> bool:
        """True if threads past the end of the launch run too, because all meet at barriers."""
        return self.sums_in_groups or self.has_barriers

    @cached_property
    def has_barriers(self) -> bool:
        """True if the body has barriers, in a dispatch of several workgroups."""
        if self.variant.is_one_group:
            return False
        return any(isinstance(s, Barrier) for s in statements(self.kernel.body))

    def zero(self) -> str:
        """A zero that compilers cannot fold, for `atRunTime` and `countAtRunTime`."""
        return self.word(Word(WordKind.BITS), "zero", "float")

    def declare(self, piece: Piece, binding: Binding, declaration: str) -> None:
        """Declares a resource in its slot.

        Without `register`, Slang numbers each class of resources of HLSL and Metal from 0; with it,
        the slot holds on every target.
        """
        slot, space = binding.slot, self.variant.space
        piece.add(f"[[vk::binding({slot}, {space})]]")
        register = f" : register({binding.access.register_class}{slot}, space{space})"
        is_default = not (space or self.variant.first_binding)
        piece.add(f"{declaration}{'' if is_default else register};")

    def bits_word(self, value: float, scalar: Scalar) -> str:
        """The text of an infinity or NaN, which has no literal."""
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        read = f"asfloat({self.word(Word(WordKind.BITS, '', bits), f'bits_{bits:08x}')})"
        return read if scalar.kind is Kind.FLOAT else f"{scalar}({read})"

    def print_site(self, s: Print) -> str:
        self.arrays.uses_print = True
        return self._site(Site(SiteKind.PRINT, s.span, "print", s.form))

    def site(self, kind: SiteKind, span: Span, name: str) -> str:
        if self.report == "Report" or kind in (SiteKind.FINITE, SiteKind.WRITES):
            self.arrays.uses_report = True
        return self._site(Site(kind, span, name))

    def _site(self, site: Site) -> str:
        if site not in self.sites:
            self.sites.append(site)
        return str(self.sites.index(site))
