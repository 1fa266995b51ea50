"""The tag types of a module, by which the library's accessors reach bound buffers.

Each array has one tag, with the functions of the module's mode: a primal tag writes, a backward
tag reads cotangents and adds to gradients. Entry points have tags of their own, for arrays that
they read, write or add to at one index per thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.nodes import Buffer
from shaderad.ir.types import (
    OF_OUR_KERNELS,
    Access,
    Kind,
    TextureType,
    Type,
    is_differentiable,
    scalars,
    word_bytes,
)
from shaderad.lower.bindings import ROLES, Mode, Role, Word, WordKind
from shaderad.lower.write.arrays import SUMS_OF_SCRATCH, scratch_role
from shaderad.lower.write.own_arrays import pass_number, write_own_tag
from shaderad.lower.write.text import Piece

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
    """Writes the tags of a module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._arrays = module.arrays
        self.piece = Piece()
        """The tags of the entry point, each written at its first use."""

    # -- tags of functions ----------------------------------------------------------------------

    def write(self) -> Piece:
        """The report and print tags, and one tag type per array."""
        piece = Piece()
        if self._arrays.uses_report:
            self._write_report(piece)
        if self._arrays.uses_print:
            self._write_printer(piece)
        for copied in self._arrays.copies.values():
            copied.write_tag(piece)
        for b in self._arrays.tagged():
            pointed = f"all that {b.shown_name} points to, " if b.is_pointed else ""
            piece.add("", f"/// {b.name}: {pointed}sad.{b.type}")
            self._write_tag(piece, b)
        return piece

    def _write_tag(self, piece: Piece, b: Buffer) -> None:
        if b.access in (Access.MIN, Access.MAX):
            self._write_extreme(piece, b)
            return
        if b.access in (*OF_OUR_KERNELS, Access.STATES):
            write_own_tag(piece, self._module, b, self._extent_lines(b))
            return
        for role in (Role.OUTPUT, Role.GRADIENT):
            if self._arrays.has(role, b.name) and is_differentiable(b.type.element):
                self._write_cell_tags(piece, role, b.name)
        match b.access:
            case Access.IN:
                self._write_input(piece, b)
            case Access.SCRATCH | Access.GROUP:
                self._write_scratch(piece, b)
            case _:
                self._write_output(piece, b)

    def _write_report(self, piece: Piece) -> None:
        base = self._module.word(Word(WordKind.SITE_BASE), "site_base")
        lines = [
            "static uint count(uint by) { return report_words[0].add(by); }",
            "static void record(uint offset, uint word) { report_words[offset].store(word); }",
            f"static uint siteBase() {{ return {base}; }}",
        ]
        silent = ["!isThere"] if self._module.goes_past_end else []
        silent += [f"{pass_number(self._module)} != 0"] if self._module.runs_twice else []
        if silent:
            lines.append(f"override static bool isSilent() {{ return {' || '.join(silent)}; }}")
        if self._module.variant.checks:
            lines += [
                "override static uint raise(uint word) { return report_words[4].max(word); }",
                "override static uint claim() { return report_words[5].add(1); }",
            ]
        piece.add("")
        piece.block("struct Report : IReport", lines)

    def _write_printer(self, piece: Piece) -> None:
        base = self._module.word(Word(WordKind.SITE_BASE), "site_base")
        launch = self._module.word(Word(WordKind.LAUNCH), "launch")
        words = self._arrays.print_words
        lines = (
            f"static uint load(uint offset) {{ return {words}[offset].load(); }}",
            f"static uint add(uint offset, uint by) {{ return {words}[offset].add(by); }}",
            f"static void put(uint offset, uint word) {{ {words}[offset].store(word); }}",
            f"static uint siteBase() {{ return {base}; }}",
            f"static uint launch() {{ return {launch}; }}",
            f"static uint3 inner() {{ return {inner_extents(self._module)}; }}",
        )
        piece.add("")
        piece.block("struct Printer : IPrinter", lines)

    def _extent_lines(self, b: Buffer) -> list[str]:
        """The functions of a tag that check indices."""
        rank = b.type.rank
        lengths = [self._arrays.extent(b.name, axis) for axis in range(rank)]
        text = lengths[-1]
        # No branches: SwiftShader follows each path through a loop when it compiles one.
        for axis in reversed(range(rank - 1)):
            text = f"select(axis == {axis}, {lengths[axis]}, {text})"
        lines = [f"static uint length(int axis) {{ return {text}; }}"]
        if b.name in self._arrays.checked:
            names = ["i", "j", "k", "l"][:rank]
            parameters = ", ".join(f"int {n}" for n in names)
            report = self._module.report if self._arrays.uses_report else "NoReport"
            call = f"elementIndex<{self._arrays.tag(b.name)}, {report}>({', '.join(names)}, site)"
            lines.append(f"static uint at({parameters}, uint site) {{ return {call}; }}")
        return lines

    def _write_input(self, piece: Piece, b: Buffer) -> None:
        has_gradient = self._arrays.has(Role.GRADIENT, b.name)
        is_summed = has_gradient and self._arrays.is_atomic(Role.GRADIENT, b.name)
        gradient = self._adder_lines(Role.GRADIENT, b.name) if is_summed else []
        if gradient and b.name in self._arrays.stored_gradients:
            store = self._arrays.write_text(Role.GRADIENT, b.name, "asuint(value)")
            gradient.append(f"override static void set(uint offset, float value) {{ {store} }}")
        # `addGradient` requires `IInput`.
        extent = "IInput" if gradient else "IExtent"
        bases, read = extent, list[str]()
        if not self._arrays.has(Role.INPUT, b.name):
            pass  # The compiler would refuse to read it.
        elif isinstance(b.type, TextureType):
            read = self._texel_lines(b)
        else:
            bases = f"IReadable, {extent}"
            read = self._reader_lines(Role.INPUT, b.name, b.type.element)
        piece.open(f"struct {self._arrays.tag(b.name)} : {bases}")
        piece.add(*self._extent_lines(b), *read)
        if gradient:
            _write_part(piece, "Gradient", "IAddable", gradient, "NoSum")
        piece.close()
        if b.name in self._arrays.held_sums:
            element = self._module.types.spell(b.type.element)
            sums = f"HeldSums<{element}, {self._module.held_counts[b.name]}>"
            piece.add(f"static {sums} {self._arrays.held_sum(b.name)} = {sums}();")

    def _texel_lines(self, b: Buffer) -> list[str]:
        """The function of a tag that reads a texel by its number; 0 for `outside`."""
        t = b.type
        assert isinstance(t, TextureType)
        row = t.dimension.row
        place = f"texelPlace({self._size_text(b)}, number, {str(row.has_layers).lower()})"
        swizzle = "xyz"[: row.axes] + "w"
        texture = self._arrays.resource_name(Role.INPUT, b.name)
        load = f"{texture}.Load({place}.{swizzle})"
        zero = self._module.types.zero(t.element)
        head = f"static {t.element} texel(uint number)"
        return [f"{head} {{ return number == outside ? {zero} : {load}; }}"]

    def _size_text(self, b: Buffer) -> str:
        """The size of a texture, from memory or from the constant buffer."""
        size = next(
            u for u in self._module.kernel.uniforms if u.path == (*b.path, TextureType.number_name)
        )
        if size.name in self._module.variant.device_uniforms:
            return f"int4.read<{self.reader(Role.UNIFORM, size.name, size.type)}>(0)"
        words = [
            self._module.word(Word(WordKind.UNIFORM, size.name, k), f"{size.name}_{k}", "int")
            for k in range(4)
        ]
        return f"int4({', '.join(words)})"

    def _reader_lines(self, role: Role, name: str, t: Type) -> list[str]:
        """The functions of a tag that read 32-bit or 16-bit words of an array."""
        kind, word = ("half", "halfWord") if word_bytes(t) == 2 else ("uint", "word")
        width = self._arrays.width(role, name)
        text = self._arrays.read_text(role, name)
        wide: list[str] = []
        if width > 1:
            head = f"override static {kind}{width} {word}s{width}(uint offset)"
            wide = [f"{head} {{ return {self._arrays.wide_words(role, name)}; }}"]
            text = f"{word}s{width}(offset)[offset % {width}]"
        own = f"static {kind} {word}(uint offset) {{ return {text}; }}"
        if kind == "half":
            if role is Role.GROUP:
                # Group memory has words: floats with the values of halves.
                own = f"static {kind} {word}(uint offset) {{ return half(asfloat({text})); }}"
            return ["static uint word(uint offset) { return 0; }", f"override {own}", *wide]
        return [own, *wide]

    def _writer_lines(self, role: Role, name: str, t: Type) -> list[str]:
        head = "static void setWord(uint offset, uint bits)"
        if word_bytes(t) == 2 and not self._arrays.is_atomic(role, name):
            text = self._arrays.words(role, name)
            half_head = "override static void setHalfWord(uint offset, half value)"
            value = "asuint(float(value))" if role is Role.GROUP else "value"
            return [f"{head} {{}}", f"{half_head} {{ {self._arrays.guard}{text} = {value}; }}"]
        width = self._arrays.width(role, name)
        if width == 1:
            return [f"{head} {{ {self._arrays.write_text(role, name, 'bits')} }}"]
        words = f"{self._arrays.guard}{self._arrays.wide_words(role, name)}"
        wide_head = f"override static void setWords{width}(uint offset, uint{width} bits)"
        return [
            f"{head} {{ {words}[offset % {width}] = bits; }}",
            f"{wide_head} {{ {words} = bits; }}",
        ]

    def _adder_lines(self, role: Role, name: str) -> list[str]:
        add = self._arrays.add_text(role, name)
        return [f"static void add(uint offset, float value) {{ {add} }}"]

    def _int_adder_line(self, role: Role, name: str) -> str:
        add = f"{self._arrays.sink(role, name).word}.add(bits);"
        return f"override static void addInt(uint offset, uint bits) {{ {add} }}"

    def _write_cell_tags(self, piece: Piece, role: Role, name: str) -> None:
        """Writes the tags of floats in words, for devices without float atomics."""
        if self._arrays.is_atomic(role, name):
            sinks = (self._arrays.memory(role, name), self._arrays.sink(role, name))
            for sink in dict.fromkeys(sinks):
                sink.write_cell(piece)

    def _write_output(self, piece: Piece, b: Buffer) -> None:
        is_add = b.access is Access.ADD
        base, nothing = ("IAddable", "NoSum") if is_add else ("IWritable", "NoWrites")
        piece.open(f"struct {self._arrays.tag(b.name)} : {'ISummed' if is_add else 'IStored'}")
        piece.add(*self._extent_lines(b))
        has_values = self._arrays.has(Role.OUTPUT, b.name)
        is_int_sum = is_add and not is_differentiable(b.type.element)
        if not has_values or is_int_sum:
            values: list[str] = []
        elif is_add:
            values = self._adder_lines(Role.OUTPUT, b.name)
        else:
            values = self._writer_lines(Role.OUTPUT, b.name, b.type.element)
        _write_part(piece, "Values", base, values, nothing)
        has_cotangent = self._arrays.has(Role.COTANGENT, b.name)
        read = self._reader_lines(Role.COTANGENT, b.name, b.type.element) if has_cotangent else []
        _write_part(piece, "Cotangent", "IReadable", read, "NoWords")
        if self._arrays.has(Role.MARKS, b.name):
            mark = f"return {self._arrays.words(Role.MARKS, b.name)}.add(1) == 0;"
            piece.add(f"override static bool isFirstWrite(uint offset) {{ {mark} }}")
        if is_int_sum and has_values:
            piece.add(self._int_adder_line(Role.OUTPUT, b.name))
        piece.close()

    def _write_extreme(self, piece: Piece, b: Buffer) -> None:
        piece.open(f"struct {self._arrays.tag(b.name)} : IExtreme")
        piece.add(*self._extent_lines(b))
        head = "static void compete(uint offset, uint bits, uint write)"
        if self._module.mode is Mode.PRIMAL:
            method = "min" if b.access is Access.MIN else "max"
            text = self._arrays.words(Role.OUTPUT, b.name)
            piece.add(f"{head} {{ {text}.{method}(bits); }}")
        elif self._module.mode is Mode.WINNER:
            self._write_winner(piece, b, head)
        else:
            piece.add(f"{head} {{}}")
            if self._arrays.has(Role.WINNER, b.name):
                self._write_wins(piece, b)
        piece.close()

    def _write_scratch(self, piece: Piece, b: Buffer) -> None:
        t, extents = b.type.element, self._extent_lines(b)
        is_sum = self._arrays.has(Role.SCRATCH_SUMS, b.name)
        role = scratch_role(b.access, is_sum=is_sum)
        if is_sum:
            self._write_cell_tags(piece, role, b.name)
        piece.open(f"struct {self._arrays.tag(b.name)} : IReadable, IStored")
        piece.add(*extents, *self._reader_lines(role, b.name, t))
        values = self._writer_lines(role, b.name, t)
        _write_part(piece, "Values", "IWritable", values, "NoWrites")
        _write_part(piece, "Cotangent", "IReadable", [], "NoWords")
        if is_sum or self._arrays.is_atomic(role, b.name):
            piece.open(f"struct {SUMS_OF_SCRATCH} : ISummed")
            piece.add(*extents)
            values = self._adder_lines(role, b.name) if is_sum else []
            _write_part(piece, "Values", "IAddable", values, "NoSum")
            _write_part(piece, "Cotangent", "IReadable", [], "NoWords")
            if not is_sum:
                piece.add(self._int_adder_line(role, b.name))
            piece.close()
        piece.close()

    def _winner_words(self, b: Buffer) -> tuple[str, str]:
        """The texts of the thread and the write number of the argmin index at `offset`."""
        thread, write = (
            self._arrays.words(Role.WINNER, b.name, offset)
            for offset in ("2 * offset", "2 * offset + 1")
        )
        return thread, write

    def _write_winner(self, piece: Piece, b: Buffer, head: str) -> None:
        scalar = next(iter(scalars(b.type.element)))
        result = self._arrays.words(Role.RESULT, b.name)
        bits = {"float": "asfloat", "int": "asint"}.get(str(scalar), "uint")
        thread, write = self._winner_words(b)
        piece.open(head)
        piece.guarded(f"if ({scalar}.encode({bits}({result})) != bits)", "return;")
        if self._module.is_second_winner_pass:
            is_first = f"{thread}.load() == thread && {write}.load() == outside"
            piece.guarded(f"if ({is_first})", f"{write}.store(write);")
        else:
            piece.add(f"{thread}.min(thread);")
        piece.close()

    def _write_wins(self, piece: Piece, b: Buffer) -> None:
        thread, write = self._winner_words(b)
        head = "override static bool wins(uint offset, uint write)"
        piece.add(f"{head} {{ return {thread} == thread && {write} == write; }}")
        for name in ("", *self._module.tangents_of(b.name)):
            part = self._module.part_of_winner(b.name, name)
            if self._arrays.has(Role.COTANGENT, name or b.name):
                lines = self._reader_lines(Role.COTANGENT, name or b.name, b.type.element)
                _write_part(piece, part, "IReadable", lines, "NoWords")
            if name and self._arrays.has(Role.OUTPUT, name):
                lines = self._writer_lines(Role.OUTPUT, name, b.type.element)
                _write_part(piece, part, "IWritable", lines, "NoWrites")

    # -- tags of entry points -------------------------------------------------------------------

    def reader(self, role: Role, name: str, t: Type) -> str:
        return self._entry_tag(role, name, "IReadable", self._reader_lines(role, name, t))

    def writer(self, role: Role, name: str, t: Type) -> str:
        """The tag that writes an array, and reads it to accumulate a gradient."""
        lines = self._writer_lines(role, name, t)
        if role is not Role.GRADIENT or not self._module.variant.accumulate:
            return self._entry_tag(role, name, "IWritable", lines)
        lines += self._reader_lines(role, name, t)
        return self._entry_tag(role, name, "IWritable, IReadable", lines)

    def adder(self, role: Role, name: str, t: Type) -> str:
        is_double = Kind.DOUBLE in {s.kind for s in scalars(t)}
        is_new = not self._module.names.has(("entry", role, name, "IAddable"))
        if is_new and name not in self._arrays.tags and not is_double:
            self._write_cell_tags(self.piece, role, name)
        lines = self._double_adder_lines if is_double else self._adder_lines
        return self._entry_tag(role, name, "IAddable", lines(role, name))

    def _double_adder_lines(self, role: Role, name: str) -> list[str]:
        """Adds without atomics, because dispatches that sum doubles have one group."""
        low = self._arrays.words(role, name)
        high = self._arrays.words(role, name, "offset + 1")
        return [
            "static void add(uint offset, float value) {}",
            "override static void addDouble(uint offset, double value)",
            "{",
            f"uint2 words = wordsOf(doubleOf({low}, {high}) + value);",
            f"{low} = words.x;",
            f"{high} = words.y;",
            "}",
        ]

    def _entry_tag(self, role: Role, name: str, bases: str, lines: list[str]) -> str:
        """The tag with these base interfaces, written at its first use."""
        key = ("entry", role, name, bases)
        is_new = not self._module.names.has(key)
        tag = self._module.names.make(f"{name}_{ROLES[role].tag}", key)
        if is_new:
            self.piece.add("")
            self.piece.block(f"struct {tag} : {bases}", lines)
        return tag


def _write_part(piece: Piece, name: str, base: str, lines: list[str], nothing: str) -> None:
    """Writes an associated type: a struct of `lines`, or the library's empty one."""
    if lines:
        piece.block(f"struct {name} : {base}", lines)
    else:
        piece.add(f"typealias {name} = {nothing};")
