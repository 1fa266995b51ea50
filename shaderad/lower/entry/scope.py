"""The state that the parts of an entry point share: names, uniforms, elements, element numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from shaderad.bodies.outputs import Resolved
from shaderad.bodies.ranges import is_in_range
from shaderad.ir.nodes import Buffer, Expr, Uniform
from shaderad.ir.types import Kind, LocalArray, Scalar, Struct, Type, is_differentiable, leaves
from shaderad.lower.bindings import Mode, Role, Word, WordKind
from shaderad.lower.prepare.strategy import Hoisted
from shaderad.lower.write.functions import FunctionWriter
from shaderad.lower.write.module import Module
from shaderad.lower.write.names import ENTRY_WORDS, IdentifierScope
from shaderad.lower.write.tags import Tags
from shaderad.lower.write.text import Piece

INDEX = "index"
"""The variable of the emitted text that holds a thread's number."""


class EntryScope:
    """One entry point while it is written."""

    def __init__(self, module: Module, resolved: Resolved, body: str) -> None:
        self.module = module
        self.kernel = module.kernel
        self.resolved = resolved
        self.body = body
        self.piece = Piece()
        self.tags = Tags(module)
        self._read_uniforms: dict[str, str] = {}
        """The variables that hold uniforms of device arrays, by name."""
        self.own = [self.kernel.buffer(n) for n in resolved.own]
        floats = [b for b in self.own if is_differentiable(b.type.element)]
        self.pulled = [b for b in floats if module.has_cotangent(b.name)]
        """The thread's own results that have cotangents."""
        self.pulled_sums = [s for s in resolved.sums if module.has_cotangent(s.buffer)]
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

    def read_hoisted(self, hoisted: Iterable[Hoisted]) -> Iterator[tuple[Hoisted, str]]:
        """The text of each hoisted element that the body takes.

        Declares the numbers of all; the body reports their indices.
        """
        for h in hoisted:
            number = self.places[h.name] = self.names.make(f"{h.name}_number")
            self.piece.add(f"uint {number} = {self.number(h.buffer, h.indices)};")
            if h.name not in self.module.strategies.unread:
                tag, t = self.module.arrays.tag(h.buffer), self.element(h.buffer)
                yield h, self.read(h.buffer, h.indices, tag, t, number)

    def read(self, buffer: str, indices: tuple[Expr, ...], tag: str, t: Type, number: str) -> str:
        """The text of the element `number`, read through `tag`."""
        function = "readInside" if self.is_there(buffer, indices) else "read"
        return f"{function}<{self.module.types.spell(t)}, {tag}>({number})"

    def number(self, buffer: str, indices: tuple[Expr, ...]) -> str:
        """The text of an element number; indices are constants, Index names and uniforms."""
        types = {u.name: u.type for u in self.kernel.uniforms}
        writer = FunctionWriter(self.module, Piece(), types)
        for name in self.kernel.index_names:
            writer.bind(name, self.index_name(name))
        for u in self.kernel.uniforms:
            writer.bind(u.name, self.uniform(u))
        values = ", ".join(map(writer.text, indices))
        is_there = self.is_there(buffer, indices)
        return self.module.arrays.silent_number(buffer, values, is_there=is_there)

    def is_there(self, buffer: str, indices: tuple[Expr, ...]) -> bool:
        """True if an element is known to be in range."""
        natural = self.module.variant.natural
        return self.module.is_unchecked or is_in_range(self.kernel, buffer, indices, natural)

    def guarded(self, text: str, number: str, buffer: str, indices: tuple[Expr, ...]) -> None:
        """Adds a line that runs if the element `number` exists."""
        if self.is_there(buffer, indices):
            self.piece.add(text)
        else:
            self.piece.guarded(f"if ({number} != outside)", text)

    def arguments(self) -> list[str]:
        """The indices and uniforms that the body takes."""
        uniforms = map(self.uniform, self.kernel.uniforms)
        return [*map(self.index_name, self.kernel.index_names), *uniforms]

    # -- uniforms: words of the constant buffer, or device arrays -------------------------------

    def read_uniforms(self, names: IdentifierScope) -> list[tuple[str, str, str]]:
        """Type, name and text of a variable for each uniform that is a device array.

        From here on `uniform` gives the variable, so that memory is read once.
        """
        variables: list[tuple[str, str, str]] = []
        for u in self.kernel.uniforms:
            if u.name in self.module.variant.device_uniforms:
                text, name = self.uniform(u), names.make(u.name)
                variables.append((self.module.types.spell(u.type), name, text))
                self._read_uniforms[u.name] = name
        return variables

    def uniform(self, u: Uniform) -> str:
        if u.name in self._read_uniforms:
            return self._read_uniforms[u.name]
        spelled = self.module.types.spell(u.type)
        if u.name in self.module.variant.device_uniforms:
            tag = self.tags.reader(Role.UNIFORM, u.name, u.type)
            return f"{spelled}.read<{tag}>(0)"
        return self._composed(u.type, self._words(u))

    def _words(self, u: Uniform) -> Iterator[str]:
        """The text of each scalar of `u`, read from the constant buffer."""
        index = 0
        for leaf in leaves(u.type):
            name, kind = "_".join((u.name, *map(str, leaf.path))), leaf.scalar.kind
            word = Word(WordKind.UNIFORM, u.name, index)
            index += 2 if kind is Kind.DOUBLE else 1
            if kind is Kind.DOUBLE:
                low = self.module.word(word, f"{name}_low")
                high = self.module.word(replace(word, index=index - 1), f"{name}_high")
                yield f"doubleOf({low}, {high})"
            elif kind is Kind.BOOL:
                yield f"{self.module.word(word, name)} != 0"
            elif kind is Kind.HALF:
                yield f"half({self.module.word(word, name, 'float')})"
            else:
                yield self.module.word(word, name, str(leaf.scalar))

    def _composed(self, t: Type, words: Iterator[str]) -> str:
        if isinstance(t, Scalar):
            return next(words)
        if isinstance(t, Struct):
            parts = [self._composed(f, words) for _, f in t.fields]
        elif isinstance(t, LocalArray):
            parts = [self._composed(t.element, words) for _ in range(t.count)]
        else:
            parts = [next(words) for _ in leaves(t)]
        return f"{self.module.types.spell(t)}({', '.join(parts)})"

    # -- body and results -----------------------------------------------------------------------

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
        self.piece.add(self.stored(Role.OUTPUT, b.name, b.type.element, INDEX, value))

    # -- accesses of entry points ---------------------------------------------------------------

    def loaded(self, role: Role, name: str, t: Type, number: str) -> str:
        """The text of the element `number` of an array that only the entry point reads."""
        tag, spelled = self.tags.reader(role, name, t), self.module.types.spell(t)
        return f"{spelled}.read<{tag}>({number} * {spelled}.wordCount)"

    def stored(self, role: Role, name: str, t: Type, number: str, value: str) -> str:
        """The statement that stores an element."""
        tag, spelled = self.tags.writer(role, name, t), self.module.types.spell(t)
        return f"{spelled}.write<{tag}>({number} * {spelled}.wordCount, {value});"

    def wanted_uniforms(self) -> list[Uniform]:
        """The uniforms whose gradients the dispatch sums."""
        is_backward, wanted = self.module.mode is Mode.BACKWARD, self.module.variant.wanted
        names = wanted if is_backward else ()
        return [u for u in self.kernel.uniforms if u.name in names and is_differentiable(u.type)]
