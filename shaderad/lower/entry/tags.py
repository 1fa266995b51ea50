"""Tags of an entry point, which reads, writes or adds to arrays at one index a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shaderad.ir.types import Kind, Type, scalars
from shaderad.lower.bindings import Role
from shaderad.lower.write.piece import Piece
from shaderad.lower.write.tags import Tags

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module

_TAG_WORDS = {
    Role.INPUT: "read",
    Role.UNIFORM: "uniform",
    Role.OUTPUT: "store",
    Role.COTANGENT: "cotangent",
    Role.GRADIENT: "gradient",
    Role.TANGENT: "tangent",
    Role.OUTPUT_TANGENT: "tangent_store",
}


class EntryTags:
    """Writes each tag into `piece` at its first use."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._shared = Tags(module)
        self.piece = Piece()

    def reader(self, role: Role, name: str, t: Type) -> str:
        """The tag that reads an array."""
        lines = self._shared.reader_lines
        return self._tag(role, name, "IReadable", lambda: lines(role, name, t))

    def writer(self, role: Role, name: str, t: Type) -> str:
        """The tag that writes an array, and reads it to accumulate a gradient."""
        reads = role is Role.GRADIENT and self._module.variant.accumulate

        def lines() -> list[str]:
            read = self._shared.reader_lines(role, name, t) if reads else []
            return [*self._shared.writer_lines(role, name, t), *read]

        return self._tag(role, name, "IWritable, IReadable" if reads else "IWritable", lines)

    def adder(self, role: Role, name: str, t: Type) -> str:
        """The tag that adds to an array."""
        is_double = Kind.DOUBLE in {s.kind for s in scalars(t)}
        arrays = self._module.arrays
        is_new = not self._module.names.has(("entry", role, name, "IAddable"))
        if is_new and not arrays.has_tag(name) and not is_double:
            self._shared.write_cell_tag(self.piece, role, name)
        lines = self._double_adder_lines if is_double else self._shared.adder_lines
        return self._tag(role, name, "IAddable", lambda: lines(role, name))

    def _double_adder_lines(self, role: Role, name: str) -> list[str]:
        """Adds without atomics, as dispatches that sum doubles have one group."""
        low = self._module.arrays.words(role, name)
        high = self._module.arrays.words(role, name, "offset + 1")
        return [
            "static void add(uint offset, float value) {}",
            "override static void addDouble(uint offset, double value)",
            "{",
            f"uint2 words = wordsOf(doubleOf({low}, {high}) + value);",
            f"{low} = words.x;",
            f"{high} = words.y;",
            "}",
        ]

    def _tag(self, role: Role, name: str, bases: str, lines: Callable[[], list[str]]) -> str:
        """The tag with these base interfaces, written at its first use."""
        key = ("entry", role, name, bases)
        is_new = not self._module.names.has(key)
        tag = self._module.names.make(f"{name}_{_TAG_WORDS[role]}", key)
        if is_new:
            self.piece.add()
            self.piece.open(f"struct {tag} : {bases}")
            for line in lines():
                self.piece.add(line)
            self.piece.close()
        return tag
