"""Tags of arrays as an entry point uses them: read, written or added to at one index."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shaderad.ir.types import Kind, Type, scalars, word_bytes
from shaderad.lower.bindings import Role
from shaderad.lower.piece import Piece
from shaderad.lower.tags import Tags

if TYPE_CHECKING:
    from shaderad.lower.module import Module

_TAG_WORDS = {
    Role.UNIFORM: "uniform",
    Role.OUTPUT: "store",
    Role.COTANGENT: "cotangent",
    Role.GRADIENT: "gradient",
    Role.TANGENT: "tangent",
    Role.OUTPUT_TANGENT: "tangent_store",
}


class EntryTags:
    """Writes each tag at its first use into `piece`."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._shared = Tags(module)
        self.piece = Piece()

    def reader(self, role: Role, name: str, t: Type) -> str:
        return self._tag(role, name, "IReadable", lambda p: self._shared.write_reader(
            p, role, name, t, "word", "halfWord"))  # fmt: skip

    def writer(self, role: Role, name: str, t: Type) -> str:
        def write(piece: Piece) -> None:
            arrays = self._module.arrays
            text = arrays.words(role, name)
            is_half = word_bytes(t) == 2
            value = f"{text} = bits;"
            if arrays.is_atomic(role, name):
                is_native = self._module.variant.atomics == "native"
                value = f"{text}.store({'asfloat(bits)' if is_native else 'bits'});"
            piece.add(
                f"static void setWord(uint offset, uint bits) {{ {'' if is_half else value} }}"
            )
            if is_half:
                head = "override static void setHalfWord(uint offset, half value)"
                piece.add(f"{head} {{ {text} = value; }}")
            if role is Role.GRADIENT and self._module.variant.accumulate:
                self._shared.write_reader(piece, role, name, t, "word", "halfWord")

        reads = role is Role.GRADIENT and self._module.variant.accumulate
        return self._tag(role, name, "IWritable, IReadable" if reads else "IWritable", write)

    def adder(self, role: Role, name: str, t: Type) -> str:
        arrays = self._module.arrays

        def write(piece: Piece) -> None:
            if Kind.DOUBLE in {s.kind for s in scalars(t)}:
                self._write_double_adder(piece, arrays.words(role, name), role, name)
                return
            add = arrays.add_text(role, name)
            piece.add(f"static void add(uint offset, float value) {{ {add} }}")

        bases = "IAddable"
        if not arrays.has_tag(name) and not self._module.names.has(("entry", role, name, bases)):
            self._shared.write_cell_tag(self.piece, role, name)
        return self._tag(role, name, bases, write)

    def _write_double_adder(self, piece: Piece, text: str, role: Role, name: str) -> None:
        """One group runs alone: no atomic is needed."""
        high = self._module.arrays.words(role, name, "offset + 1")
        piece.add("static void add(uint offset, float value) {}")
        piece.open("override static void addDouble(uint offset, double value)")
        piece.add(f"uint2 words = wordsOf(doubleOf({text}, {high}) + value);")
        piece.add(f"{text} = words.x;")
        piece.add(f"{high} = words.y;")
        piece.close()

    def _tag(self, role: Role, name: str, bases: str, write: Callable[[Piece], None]) -> str:
        """The tag of an array as the entry point uses it, written at its first use."""
        key = ("entry", role, name, bases)
        is_new = not self._module.names.has(key)
        tag = self._module.names.make(f"{name}_{_TAG_WORDS[role]}", key)
        if is_new:
            self.piece.add()
            self.piece.open(f"struct {tag} : {bases}")
            write(self.piece)
            self.piece.close()
        return tag
