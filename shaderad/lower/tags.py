"""The tag types of a module: what stands between accessors and bound buffers.

One tag an array, with the functions that the module's mode gives it: a primal tag writes, a
backward tag reads cotangents and sums gradients, a forward tag also handles tangents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.nodes import Buffer
from shaderad.ir.types import Access as ArrayAccess
from shaderad.ir.types import Type, is_differentiable, scalars, word_bytes
from shaderad.lower.arrays import Arrays, Cell
from shaderad.lower.bindings import Mode, Role, Word, WordKind
from shaderad.lower.piece import Piece

if TYPE_CHECKING:
    from shaderad.lower.module import Module


class Tags:
    """Writes the tags of the arrays that a module's functions touch."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._arrays: Arrays = module.arrays

    def write(self) -> Piece:
        """The report tag and one tag type an array."""
        piece = Piece()
        if self._arrays.uses_report:
            self._write_report(piece)
        for name in self._arrays.ordered_tags():
            b = self._module.kernel.buffer(name)
            piece.add()
            piece.add(f"/// {name}: sad.{b.type}")
            self._write_cells(piece, b)
            if b.access is ArrayAccess.IN:
                self._write_input(piece, b)
            elif b.access in (ArrayAccess.MIN, ArrayAccess.MAX):
                self._write_extreme(piece, b)
            else:
                self._write_output(piece, b)
        return piece

    def _write_report(self, piece: Piece) -> None:
        base = self._module.word(Word(WordKind.SITE_BASE), "site_base")
        piece.add()
        piece.open("struct Report : IReport")
        piece.add("static uint count(uint by) { return report_words[0].add(by); }")
        piece.add(
            "static void record(uint offset, uint word) { report_words[offset].store(word); }"
        )
        piece.add(f"static uint siteBase() {{ return {base}; }}")
        piece.close()

    def _write_extent(self, piece: Piece, b: Buffer) -> None:
        rank = b.type.rank
        lengths = [self._arrays.extent(b.name, axis) for axis in range(rank)]
        text = lengths[-1]
        for axis in reversed(range(rank - 1)):
            text = f"axis == {axis} ? {lengths[axis]} : {text}"
        piece.add(f"static uint length(int axis) {{ return {text}; }}")
        names = ["i", "j", "k", "l"][:rank]
        given = ", ".join(f"int {n}" for n in names)
        if self._module.is_unchecked:
            flat = "uint(i)"
            for axis, n in enumerate(names[1:], 1):
                flat = f"({flat} * {lengths[axis]} + uint({n}))"
            piece.add(f"static uint at({given}) {{ return {flat}; }}")
            return
        call = f"elementIndex<{self._arrays.tag(b.name)}, {self._module.report}>"
        piece.add(
            f"static uint at({given}, uint site) {{ return {call}({', '.join(names)}, site); }}"
        )

    def _write_input(self, piece: Piece, b: Buffer) -> None:
        piece.open(f"struct {self._arrays.tag(b.name)} : IInput")
        self._write_extent(piece, b)
        self.write_reader(piece, Role.INPUT, b.name, b.type.element, "word", "halfWord")
        if self._arrays.has(Role.TANGENT, b.name):
            self.write_reader(piece, Role.TANGENT, b.name, b.type.element, "tangentWord",
                              "tangentHalfWord", both_optional=True)  # fmt: skip
        if self._arrays.has(Role.GRADIENT, b.name) and self._arrays.is_atomic(
            Role.GRADIENT, b.name
        ):
            add = self._arrays.add_text(Role.GRADIENT, b.name)
            piece.add(f"override static void addGradient(uint offset, float value) {{ {add} }}")
        piece.close()

    def write_reader(
        self,
        piece: Piece,
        role: Role,
        name: str,
        t: Type,
        word: str,
        half_word: str,
        *,
        both_optional: bool = False,
    ) -> None:
        """The functions that read 32-bit or 16-bit words of an array."""
        text = self._arrays.words(role, name)
        is_half = word_bytes(t) == 2
        override = "override " if both_optional else ""
        value = "0u" if is_half else text
        if not (is_half and both_optional):
            piece.add(f"{override}static uint {word}(uint offset) {{ return {value}; }}")
        if is_half:
            piece.add(f"override static half {half_word}(uint offset) {{ return {text}; }}")

    def write_writer(self, piece: Piece, role: Role, name: str, t: Type, prefix: str) -> None:
        """The functions that write words of an array; `prefix` is empty or "Tangent"."""
        text = self._arrays.words(role, name)
        if self._arrays.is_atomic(role, name):
            value = "asfloat(bits)" if self._arrays.cell(role, name) == Cell.FLOATS else "bits"
            piece.add(
                f"override static void set{prefix}Word(uint offset, uint bits) "
                f"{{ {text}.store({value}); }}"
            )
        elif word_bytes(t) == 2:
            piece.add(
                f"override static void set{prefix}HalfWord(uint offset, half value) "
                f"{{ {text} = value; }}"
            )
        else:
            piece.add(
                f"override static void set{prefix}Word(uint offset, uint bits) {{ {text} = bits; }}"
            )

    def _write_cells(self, piece: Piece, b: Buffer) -> None:
        if b.access in (ArrayAccess.MIN, ArrayAccess.MAX):
            return
        for role in (Role.OUTPUT, Role.OUTPUT_TANGENT, Role.GRADIENT):
            if self._arrays.has(role, b.name) and is_differentiable(b.type.element):
                self.write_cell_tag(piece, role, b.name)

    def write_cell_tag(self, piece: Piece, role: Role, name: str) -> None:
        """The tag of a float in a word, on devices without float atomics."""
        if self._arrays.cell(role, name) != Cell.WORDS:
            return
        text = self._arrays.words(role, name)
        cell = self._arrays.cell_name(role, name)
        if self._module.variant.atomics == "exchange":
            piece.open(f"struct {cell} : IExchangeCell")
            piece.add(
                f"static uint exchange(uint offset, uint bits) {{ return {text}.exchange(bits); }}"
            )
        else:
            piece.open(f"struct {cell} : ICompareCell")
            piece.add(f"static uint load(uint offset) {{ return {text}.load(); }}")
            piece.add(
                "static uint compareExchange(uint offset, uint expected, uint bits) "
                f"{{ return {text}.compareExchange(expected, bits); }}"
            )
        piece.close()

    def _write_output(self, piece: Piece, b: Buffer) -> None:
        mode, t = self._module.mode, b.type.element
        is_float = is_differentiable(t)
        piece.open(f"struct {self._arrays.tag(b.name)} : IOutput")
        self._write_extent(piece, b)
        if mode is Mode.BACKWARD:
            self._write_kept(piece, b)
        elif self._arrays.has(Role.OUTPUT, b.name):
            self._write_writes(piece, b)
        if self._arrays.has(Role.COTANGENT, b.name):
            self.write_reader(piece, Role.COTANGENT, b.name, t, "cotangentWord",
                              "cotangentHalfWord", both_optional=True)  # fmt: skip
        if self._arrays.has(Role.OUTPUT_TANGENT, b.name) and is_float:
            if b.access is ArrayAccess.ADD:
                add = self._arrays.add_text(Role.OUTPUT_TANGENT, b.name)
                piece.add(f"override static void addTangent(uint offset, float value) {{ {add} }}")
            else:
                self.write_writer(piece, Role.OUTPUT_TANGENT, b.name, t, "Tangent")
        piece.close()

    def _write_kept(self, piece: Piece, b: Buffer) -> None:
        """Backward modules write nothing, but the calls must not be dropped."""
        if b.access is ArrayAccess.ADD:
            piece.add(
                "override static void add(uint offset, float value) "
                "{ keep<Report>(offset, asuint(value)); }"
            )
        elif word_bytes(b.type.element) == 2:
            piece.add(
                "override static void setHalfWord(uint offset, half value) "
                "{ keep<Report>(offset, asuint(float(value))); }"
            )
        else:
            piece.add(
                "override static void setWord(uint offset, uint bits) "
                "{ keep<Report>(offset, bits); }"
            )

    def _write_writes(self, piece: Piece, b: Buffer) -> None:
        if b.access is not ArrayAccess.ADD:
            self.write_writer(piece, Role.OUTPUT, b.name, b.type.element, "")
        elif is_differentiable(b.type.element):
            add = self._arrays.add_text(Role.OUTPUT, b.name)
            piece.add(f"override static void add(uint offset, float value) {{ {add} }}")
        else:
            text = self._arrays.words(Role.OUTPUT, b.name)
            piece.add(
                f"override static void addInt(uint offset, uint bits) {{ {text}.add(bits); }}"
            )

    def _write_extreme(self, piece: Piece, b: Buffer) -> None:
        piece.open(f"struct {self._arrays.tag(b.name)} : IExtreme")
        self._write_extent(piece, b)
        head = "static void compete(uint offset, uint bits, uint write)"
        if self._module.mode is Mode.PRIMAL:
            method = "min" if b.access is ArrayAccess.MIN else "max"
            text = self._arrays.words(Role.OUTPUT, b.name)
            piece.add(f"{head} {{ {text}.{method}(bits); }}")
        elif self._module.mode is Mode.WINNER:
            self._write_winner(piece, b, head)
        else:
            piece.add(f"{head} {{ keep<Report>(offset, bits); }}")
            if self._arrays.has(Role.WINNER, b.name):
                self._write_wins(piece, b)
        piece.close()

    def _write_winner(self, piece: Piece, b: Buffer, head: str) -> None:
        scalar = next(iter(scalars(b.type.element)))
        result = self._arrays.words(Role.RESULT, b.name)
        bits = {"float": "asfloat", "int": "asint"}.get(str(scalar), "uint")
        thread_word = self._arrays.words(Role.WINNER, b.name, "2 * offset")
        write_word = self._arrays.words(Role.WINNER, b.name, "2 * offset + 1")
        piece.open(head)
        piece.add(f"if ({scalar}.encode({bits}({result})) != bits)")
        piece.indented("return;")
        if self._module.is_second_winner_pass:
            piece.add(f"if ({thread_word}.load() == thread && {write_word}.load() == outside)")
            piece.indented(f"{write_word}.store(write);")
        else:
            piece.add(f"{thread_word}.min(thread);")
        piece.close()

    def _write_wins(self, piece: Piece, b: Buffer) -> None:
        thread_word = self._arrays.words(Role.WINNER, b.name, "2 * offset")
        write_word = self._arrays.words(Role.WINNER, b.name, "2 * offset + 1")
        piece.add(
            "override static bool wins(uint offset, uint write) "
            f"{{ return {thread_word} == thread && {write_word} == write; }}"
        )
        if self._arrays.has(Role.COTANGENT, b.name):
            text = self._arrays.words(Role.COTANGENT, b.name)
            piece.add(f"override static float cotangent(uint offset) {{ return asfloat({text}); }}")
        if self._arrays.has(Role.OUTPUT_TANGENT, b.name):
            text = self._arrays.words(Role.OUTPUT_TANGENT, b.name)
            piece.add(
                "override static void setTangent(uint offset, float value) "
                f"{{ {text} = asuint(value); }}"
            )
