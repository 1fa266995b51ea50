"""What one generated module collects while its functions are written.

Report sites, words of the constant buffer, names and types: each is made where it is first
needed, in the order of the text, so that the same kernel always gives the same module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from shaderad.diagnostics import Span
from shaderad.ir.nodes import Function, Kernel, Print
from shaderad.ir.types import Kind, Scalar, Struct, Tuple, Type
from shaderad.ir.walk import has_own_backward
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
from shaderad.lower.loops import LoopFunction
from shaderad.lower.names import member_names, module_names
from shaderad.lower.piece import Piece
from shaderad.lower.spelling import Types
from shaderad.lower.strategy import Strategies
from shaderad.rules.pushing import PushedKernel
from shaderad.rules.transforms import Transforms


class Module:
    """One kernel in one mode, being written."""

    def __init__(
        self, kernel: Kernel, mode: Mode, variant: Variant, strategies: Strategies
    ) -> None:
        self.kernel = kernel
        self.mode = mode
        self.variant = variant
        self.strategies = strategies
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
        self.transforms: Transforms | None = None
        """What makes calls of ``fwd_diff`` and ``bwd_diff`` in functions; `None` where the compiler
        differentiates."""
        self.is_pulled = False
        """Whether derivatives are made of the IR, not by the compiler."""
        self.workgroup_size = variant.workgroup
        self.stored_types: set[Type] = set()
        """Element types of buffers that are no parameters of the kernel."""
        self.twice: frozenset[Function] = frozenset()
        """Functions whose forward derivative is itself differentiated."""
        self.inside_backward: frozenset[Function] = frozenset()
        """Functions that ``bwd_diff`` inside the kernel reaches."""
        self.known_arguments: dict[Function, dict[str, Known]] = {}
        """By function: what a compiler may know of its parameters."""
        self.reversed_loops: list[LoopFunction] = []
        self.arrays = Arrays(self)
        self._functions: dict[Function, str] = {}
        self._has_own_backward: dict[Function, bool] = {}
        self._call_count = 0
        self._write: Callable[[Function, str], None] | None = None

    @property
    def is_unchecked(self) -> bool:
        return self.variant.bounds == "unchecked"

    @property
    def sends_reports(self) -> bool:
        return self.arrays.uses_report and (self.report == "Report" or bool(self.variant.checks))

    @property
    def counts_writes(self) -> bool:
        return self.variant.checks == "writes" and self.mode is Mode.PRIMAL

    def is_wanted(self, buffer: str) -> bool:
        return self.mode in (Mode.BACKWARD, Mode.FORWARD) and buffer in self.variant.wanted

    def tangent_of(self, buffer: str) -> str | None:
        """The array that holds the tangents of `buffer`, in kernels with tangents."""
        return self.kernel.dots.get(buffer) if isinstance(self.kernel, PushedKernel) else None

    def is_reversed(self, f: Function | None) -> bool:
        """Whether `f`, or the kernel's body, is run in reverse, which keeps its loops' states."""
        return not self.is_pulled and (self.mode is Mode.BACKWARD or f in self.inside_backward)

    # -- functions ------------------------------------------------------------------------------

    def keeps_calls_apart(self, f: Function) -> bool:
        """Whether two calls of `f` with equal arguments must not become one: see `ofCall`."""
        if self.is_pulled or (self.mode is not Mode.BACKWARD and not self.inside_backward):
            return False
        if f not in self._has_own_backward:
            self._has_own_backward[f] = has_own_backward(f)
        return self._has_own_backward[f]

    def next_call(self) -> int:
        """A number that no other call has."""
        self._call_count += 1
        return self._call_count

    def set_function_writer(self, write: Callable[[Function, str], None]) -> None:
        self._write = write

    def function(self, f: Function) -> str:
        """The Slang name of a user function, which is written at its first use."""
        if self.transforms is not None:
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

    def sum(self, name: str, suffix: str = "") -> str:
        """The field of `Sums` for what threads sum under `name`."""
        return self._sums.make(name + suffix, (name, suffix))

    # -- what the host provides -----------------------------------------------------------------

    def word(self, word: Word, name: str, slang_type: str = "uint") -> str:
        """Reads a word of the constant buffer."""
        if word not in self.words:
            self.words[word] = self._word_names.make(name, word)
            self.word_types[self.words[word]] = slang_type
        return f"parameters.{self.words[word]}"

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
