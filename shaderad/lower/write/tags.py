"""The tag types of a module, by which the library's accessors reach bound buffers.

Each array has one tag, with the functions of the module's mode: a primal tag writes, a backward
tag reads cotangents and adds to gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.nodes import Buffer
from shaderad.ir.types import Access as ArrayAccess
from shaderad.ir.types import Type, is_differentiable, scalars, word_bytes
from shaderad.lower.bindings import Mode, Role, Word, WordKind
from shaderad.lower.write.arrays import Arrays, SlangBuffer
from shaderad.lower.write.piece import Piece

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module


SHOWN_AXES = 4
"""Reports and prints of launches with more axes give the thread's number alone."""


def inner_extents(module: Module) -> str:
    """The extents of the launch's axes after the first, as reports contain them."""
    axes = len(module.kernel.index_names)
    shown = range(1, axes if axes <= SHOWN_AXES else 1)
    inner = [module.word(Word(WordKind.DIM, "", k), f"dim_{k}") for k in shown]
    inner += ["0"] * (SHOWN_AXES - 1 - len(inner))
    return f"uint3({', '.join(inner)})"


class Tags:
    """Writes the tags of the arrays that a module's functions access."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._arrays: Arrays = module.arrays

    def write(self) -> Piece:
        """The report and print tags, and one tag type an array."""
        piece = Piece()
        if self._arrays.uses_report:
            self._write_report(piece)
        if self._arrays.uses_print:
            self._write_printer(piece)
        for name in self._arrays.ordered_tags():
            b = self._module.kernel.buffer(name)
            piece.add()
            what = f"all that {b.shown_name} points to, " if b.is_pointed else ""
            piece.add(f"/// {name}: {what}sad.{b.type}")
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
        if self._module.sums_in_groups:
            piece.add("override static bool isSilent() { return !isThere; }")
        if self._module.variant.checks:
            piece.add("override static uint raise(uint word) { return report_words[4].max(word); }")
            piece.add("override static uint claim() { return report_words[5].add(1); }")
        piece.close()

    def _write_printer(self, piece: Piece) -> None:
        base = self._module.word(Word(WordKind.SITE_BASE), "site_base")
        launch = self._module.word(Word(WordKind.LAUNCH), "launch")
        words = self._arrays.print_words
        piece.add()
        piece.open("struct Printer : IPrinter")
        piece.add(f"static uint load(uint offset) {{ return {words}[offset].load(); }}")
        piece.add(f"static uint add(uint offset, uint by) {{ return {words}[offset].add(by); }}")
        piece.add(f"static void put(uint offset, uint word) {{ {words}[offset].store(word); }}")
        piece.add(f"static uint siteBase() {{ return {base}; }}")
        piece.add(f"static uint launch() {{ return {launch}; }}")
        piece.add(f"static uint3 inner() {{ return {inner_extents(self._module)}; }}")
        piece.close()

    def _write_extent(self, piece: Piece, b: Buffer) -> None:
        rank = b.type.rank
        lengths = [self._arrays.extent(b.name, axis) for axis in range(rank)]
        text = lengths[-1]
        for axis in reversed(range(rank - 1)):
            text = f"axis == {axis} ? {lengths[axis]} : {text}"
        piece.add(f"static uint length(int axis) {{ return {text}; }}")
        if not self._arrays.is_checked(b.name):
            return
        names = ["i", "j", "k", "l"][:rank]
        parameters = ", ".join(f"int {n}" for n in names)
        report = self._module.report if self._arrays.uses_report else "NoReport"
        call = f"elementIndex<{self._arrays.tag(b.name)}, {report}>({', '.join(names)}, site)"
        piece.add(f"static uint at({parameters}, uint site) {{ return {call}; }}")

    def _write_input(self, piece: Piece, b: Buffer) -> None:
        t = b.type.element
        has_gradient = self._arrays.has(Role.GRADIENT, b.name)
        is_summed = has_gradient and self._arrays.is_atomic(Role.GRADIENT, b.name)
        gradient = self.adder_lines(Role.GRADIENT, b.name) if is_summed else []
        if gradient and self._arrays.stores_gradient(b.name):
            store = self._arrays.write_text(Role.GRADIENT, b.name, "asuint(value)")
            gradient.append(f"override static void set(uint offset, float value) {{ {store} }}")
        # `addGradient` requires `IInput`.
        bases = "IReadable, IInput" if gradient else "IReadable, IExtent"
        piece.open(f"struct {self._arrays.tag(b.name)} : {bases}")
        self._write_extent(piece, b)
        for line in self.reader_lines(Role.INPUT, b.name, t):
            piece.add(line)
        if gradient:
            self._write_part(piece, "Gradient", "IAddable", gradient, "NoSum")
        piece.close()

    def _write_part(
        self, piece: Piece, name: str, base: str, lines: list[str], nothing: str
    ) -> None:
        """Writes an associated type: a struct of `lines`, or the library's empty one."""
        if not lines:
            piece.add(f"typealias {name} = {nothing};")
            return
        piece.open(f"struct {name} : {base}")
        for line in lines:
            piece.add(line)
        piece.close()

    def reader_lines(self, role: Role, name: str, t: Type) -> list[str]:
        """The functions of a tag that read 32-bit or 16-bit words of an array."""
        kind, word = ("half", "halfWord") if word_bytes(t) == 2 else ("uint", "word")
        width = self._arrays.width(role, name)
        text = self._arrays.words(role, name)
        wide: list[str] = []
        if width > 1:
            head = f"override static {kind}{width} {word}s{width}(uint offset)"
            wide = [f"{head} {{ return {self._arrays.wide_words(role, name)}; }}"]
            text = f"{word}s{width}(offset)[offset % {width}]"
        own = f"static {kind} {word}(uint offset) {{ return {text}; }}"
        if kind == "half":
            return ["static uint word(uint offset) { return 0; }", f"override {own}", *wide]
        return [own, *wide]

    def writer_lines(self, role: Role, name: str, t: Type) -> list[str]:
        """The functions of a tag that write words of an array."""
        head = "static void setWord(uint offset, uint bits)"
        if word_bytes(t) == 2 and not self._arrays.is_atomic(role, name):
            text = self._arrays.words(role, name)
            half_head = "override static void setHalfWord(uint offset, half value)"
            return [f"{head} {{}}", f"{half_head} {{ {self._arrays.guard}{text} = value; }}"]
        return [f"{head} {{ {self._arrays.write_text(role, name, 'bits')} }}"]

    def adder_lines(self, role: Role, name: str) -> list[str]:
        """The function of a tag that adds to a float of an array."""
        add = self._arrays.add_text(role, name)
        return [f"static void add(uint offset, float value) {{ {add} }}"]

    def _write_cells(self, piece: Piece, b: Buffer) -> None:
        if b.access in (ArrayAccess.MIN, ArrayAccess.MAX):
            return
        for role in (Role.OUTPUT, Role.GRADIENT):
            if self._arrays.has(role, b.name) and is_differentiable(b.type.element):
                self.write_cell_tag(piece, role, b.name)

    def write_cell_tag(self, piece: Piece, role: Role, name: str) -> None:
        """Writes the tag of a float in a word, for devices without float atomics."""
        if self._arrays.slang_type(role, name) != SlangBuffer.WORDS:
            return
        text = self._arrays.words(role, name)
        cell = self._arrays.cell_name(role, name)
        if self._module.variant.atomics == "exchange":
            piece.open(f"struct {cell} : IExchangeCell")
            head = "static uint exchange(uint offset, uint bits)"
            piece.add(f"{head} {{ return {text}.exchange(bits); }}")
        else:
            piece.open(f"struct {cell} : ICompareCell")
            piece.add(f"static uint load(uint offset) {{ return {text}.load(); }}")
            head = "static uint compareExchange(uint offset, uint expected, uint bits)"
            piece.add(f"{head} {{ return {text}.compareExchange(expected, bits); }}")
        piece.close()

    def _write_output(self, piece: Piece, b: Buffer) -> None:
        is_add = b.access is ArrayAccess.ADD
        base, nothing = ("IAddable", "NoSum") if is_add else ("IWritable", "NoWrites")
        piece.open(f"struct {self._arrays.tag(b.name)} : {'ISummed' if is_add else 'IStored'}")
        self._write_extent(piece, b)
        has_values = self._arrays.has(Role.OUTPUT, b.name)
        is_int_sum = is_add and not is_differentiable(b.type.element)
        if not has_values or is_int_sum:
            values: list[str] = []
        elif is_add:
            values = self.adder_lines(Role.OUTPUT, b.name)
        else:
            values = self.writer_lines(Role.OUTPUT, b.name, b.type.element)
        self._write_part(piece, "Values", base, values, nothing)
        has_cotangent = self._arrays.has(Role.COTANGENT, b.name)
        read = self.reader_lines(Role.COTANGENT, b.name, b.type.element) if has_cotangent else []
        self._write_part(piece, "Cotangent", "IReadable", read, "NoWords")
        if self._arrays.has(Role.MARKS, b.name):
            mark = f"return {self._arrays.words(Role.MARKS, b.name)}.add(1) == 0;"
            piece.add(f"override static bool isFirstWrite(uint offset) {{ {mark} }}")
        if is_int_sum and has_values:
            add = f"{self._arrays.words(Role.OUTPUT, b.name)}.add(bits);"
            piece.add(f"override static void addInt(uint offset, uint bits) {{ {add} }}")
        piece.close()

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
            piece.add(f"{head} {{}}")
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
        for name in ("", *self._module.tangents_of(b.name)):
            part = self._module.part_of_winner(b.name, name)
            if self._arrays.has(Role.COTANGENT, name or b.name):
                lines = self.reader_lines(Role.COTANGENT, name or b.name, b.type.element)
                self._write_part(piece, part, "IReadable", lines, "NoWords")
            if name and self._arrays.has(Role.OUTPUT, name):
                lines = self.writer_lines(Role.OUTPUT, name, b.type.element)
                self._write_part(piece, part, "IWritable", lines, "NoWrites")
