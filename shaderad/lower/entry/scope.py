"""The state that the parts of an entry point share: names, arguments, elements, element numbers."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.bodies.outputs import Resolved, Sum
from shaderad.bodies.ranges import is_in_range
from shaderad.ir.nodes import Buffer, Expr, Uniform
from shaderad.ir.types import Type, is_differentiable
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry.tags import EntryTags
from shaderad.lower.entry.uniforms import Uniforms
from shaderad.lower.prepare.strategy import Hoisted
from shaderad.lower.write.module import Module
from shaderad.lower.write.piece import Piece
from shaderad.lower.write.reserved import ENTRY_WORDS
from shaderad.lower.write.slang import FunctionWriter

INDEX = "index"
"""The variable of the emitted text that holds a thread's number."""


class EntryScope:
    """One entry point while it is written."""

    def __init__(
        self, module: Module, resolved: Resolved, body: str, own_uniforms: frozenset[str]
    ) -> None:
        self.module = module
        self.own_uniforms = own_uniforms
        """Uniforms that are no parameters of the body."""
        self.kernel = module.kernel
        self.resolved = resolved
        self.body = body
        self.piece = Piece()
        self.tags = EntryTags(module)
        self.uniforms = Uniforms(module, self.tags)
        self.own = [self.kernel.buffer(n) for n in resolved.own]
        self.float_own = [b for b in self.own if is_differentiable(b.type.element)]
        self.names = module.names.child(ENTRY_WORDS)
        self.places: dict[str, str] = {}
        """The text of each hoisted element's number, by its name."""
        self.values: dict[str, str] = {}
        """The variables of values that all threads share, by name."""
        for name in self.kernel.index_names:
            self.names.make(name, ("index", name))

    def word(self, kind: WordKind, name: str, index: int = 0) -> str:
        return self.module.word(Word(kind, "", index), name)

    def index_name(self, name: str) -> str:
        return self.names.of(("index", name))

    def element(self, buffer: str) -> Type:
        return self.kernel.buffer(buffer).type.element

    def element_number(self, h: Hoisted) -> str:
        """Declares the number of a hoisted element; the body reports indices out of range."""
        number = self.names.make(f"{h.name}_number")
        values = ", ".join(self._fixed_text(e) for e in h.indices)
        is_there = self.is_there(h.buffer, h.indices)
        text = self.module.arrays.silent_number(h.buffer, values, is_there=is_there)
        self.piece.add(f"uint {number} = {text};")
        return number

    def is_there(self, buffer: str, indices: tuple[Expr, ...]) -> bool:
        """True if a hoisted element is known to be in range."""
        module = self.module
        return module.is_unchecked or is_in_range(
            self.kernel, buffer, indices, module.variant.natural
        )

    def _fixed_text(self, e: Expr) -> str:
        """The text of an index of constants, Index names and uniforms."""
        types = {u.name: u.type for u in self.kernel.uniforms}
        writer = FunctionWriter(self.module, Piece(), types)
        for name in self.kernel.index_names:
            writer.bind(name, self.index_name(name))
        for u in self.kernel.uniforms:
            writer.bind(u.name, self.uniforms.value(u))
        return writer.text(e)

    def sum_number(self, s: Sum) -> str:
        is_there = self.is_there(s.buffer, (s.index,))
        values = self._fixed_text(s.index)
        return self.module.arrays.silent_number(s.buffer, values, is_there=is_there)

    def reader(self, buffer: str, indices: tuple[Expr, ...]) -> str:
        """The library function that reads a hoisted element."""
        return "readInside" if self.is_there(buffer, indices) else "read"

    def guarded(self, text: str, number: str, *, is_there: bool) -> None:
        """Adds a line that runs if the element `number` exists."""
        if is_there:
            self.piece.add(text)
        else:
            self.piece.add(f"if ({number} != outside)")
            self.piece.indented(text)

    def arguments(self) -> list[str]:
        """The indices and uniforms that the body takes."""
        own = self.own_uniforms
        uniforms = [self.uniforms.value(u) for u in self.kernel.uniforms if u.name not in own]
        return [*map(self.index_name, self.kernel.index_names), *uniforms]

    def call_body(self) -> None:
        head = "Outputs outputs = " if self.own or self.resolved.sums else ""
        self.piece.call(f"{head}{self.body}", self.arguments())

    def store_results(self, values: Mapping[str, str]) -> None:
        """Stores a thread's results by name: its own elements, and summands of sums."""
        for b in self.own:
            self.store(b, values[b.name])
        for s in self.resolved.sums:
            self.piece.add(f"sums.{self.module.sum(s.name)} += {values[s.name]};")

    def store(self, b: Buffer, value: str) -> None:
        tag = self.tags.writer(Role.OUTPUT, b.name, b.type.element)
        spelled = self.module.types.spell(b.type.element)
        self.piece.add(f"{spelled}.write<{tag}>({INDEX} * {spelled}.wordCount, {value});")

    def wanted_uniforms(self) -> list[Uniform]:
        wanted = self.module.variant.wanted
        return [u for u in self.kernel.uniforms if u.name in wanted and is_differentiable(u.type)]
