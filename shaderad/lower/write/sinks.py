"""Words to which threads add, in a buffer or in a copy of it in group memory.

Floats are added by atomics of the device, or by exchanges of bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shaderad.lower.write.text import Piece


@dataclass(frozen=True, slots=True)
class Sink:
    """Words to which threads add."""

    word: str
    """The text of the word at `offset`."""
    atomics: str
    """One of `ATOMICS`, for floats."""
    cell: str = ""
    """The tag by which floats are added, if atomics are not native."""

    @property
    def add_text(self) -> str:
        """The statement that adds the float `value` at `offset`."""
        if self.atomics == "native":
            return f"{self.word}.add(value);"
        how = "Exchange" if self.atomics == "exchange" else "CompareExchange"
        return f"addBy{how}<{self.cell}>(offset, value);"

    def write_cell(self, piece: Piece) -> None:
        """Writes the tag `cell`, if there is one."""
        if self.atomics == "native":
            return
        kind = "Exchange" if self.atomics == "exchange" else "Compare"
        piece.block(f"struct {self.cell} : I{kind}Cell", self._cell_lines())

    def _cell_lines(self) -> Iterator[str]:
        if self.atomics == "exchange":
            head = "static uint exchange(uint offset, uint bits)"
            yield f"{head} {{ return {self.word}.exchange(bits); }}"
            return
        yield f"static uint load(uint offset) {{ return {self.word}.load(); }}"
        head = "static uint compareExchange(uint offset, uint expected, uint bits)"
        yield f"{head} {{ return {self.word}.compareExchange(expected, bits); }}"


@dataclass(frozen=True, slots=True)
class CopiedSink:
    """A copy, in the memory of a group, of an array to which threads add."""

    copy: Sink
    memory: Sink
    is_float: bool
    tag: str
    """The name of its tag, by which groups clear it and add it to memory."""
    word_count: str
    """The text of the number of words."""
    room_words: int
    """The number of words for which there is memory."""

    def write_tag(self, piece: Piece) -> None:
        """Writes the tag."""
        kind = "float" if self.is_float else "uint"
        bits = f"{self.copy.word}.load()"
        if self.is_float and self.copy.atomics != "native":
            bits = f"asfloat({bits})"
        test = "changesSum(value)" if self.is_float else "value != 0"
        added = self.memory.add_text if self.is_float else f"{self.memory.word}.add(value);"
        piece.add("")
        piece.open(f"struct {self.tag} : IGroupCopy")
        piece.add(f"static void clear(uint offset) {{ {self.copy.word}.store(0); }}")
        piece.open("static void release(uint offset)")
        piece.add(f"{kind} value = {bits};")
        piece.guarded(f"if ({test})", added)
        piece.close()
        piece.close()
