"""The user's structs as Slang, and their layout in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.types import (
    UINT,
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    byte_count,
    is_differentiable,
    leaves,
    word_bytes,
)
from shaderad.lower.write.accumulate import widened
from shaderad.lower.write.arrays import load_width
from shaderad.lower.write.text import Piece

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module


def write_struct(module: Module, t: Struct, name: str) -> Piece:
    """``struct Triangle``, with the user's fields."""
    fields = [(module.field(t, field), inner) for field, inner in t.fields]
    return _struct(module, name, fields, is_differential=module.is_importable)


def write_tuple(module: Module, t: Tuple, name: str) -> Piece:
    """The struct of a tuple."""
    fields = [(f"item{k}", inner) for k, inner in enumerate(t.elements)]
    is_result = any(f.result == t for f in module.derivatives)
    return _struct(module, name, fields, is_differential=is_result)


def _struct(
    module: Module, name: str, fields: list[tuple[str, Type]], *, is_differential: bool
) -> Piece:
    """A struct, differentiable in Slang with `is_differential`."""
    piece = Piece()
    moving = [(field, t) for field, t in fields if is_differentiable(t)]
    is_moving = is_differential and bool(moving)
    piece.open(f"public struct {name}{' : IDifferentiable' if is_moving else ''}")
    if is_moving:
        piece.add(f"public typealias Differential = {name};")
    for field, t in fields:
        member = f"[DerivativeMember({name}.{field})] " * (is_moving and is_differentiable(t))
        piece.add(f"{member}public {module.types.spell(t)} {field};")
    if is_moving:
        _write_differential(piece, module, name, moving)
    piece.close()
    return piece


def _write_differential(
    piece: Piece, module: Module, name: str, moving: list[tuple[str, Type]]
) -> None:
    """Writes ``dzero`` and ``dadd`` of a type that is its own differential."""
    piece.add("[Differentiable]")
    piece.add(f"public static {name} dzero() {{ return {{}}; }}")
    piece.add("[Differentiable]")
    piece.open(f"public static {name} dadd({name} a, {name} b)")
    piece.add(f"{name} sum = {{}};")
    for field, t in moving:
        if isinstance(t, LocalArray | Struct | Tuple):
            text = f"{module.types.spell(t)}.dadd(a.{field}, b.{field})"
        else:
            text = f"a.{field} + b.{field}"
        piece.add(f"sum.{field} = {text};")
    piece.add("return sum;")
    piece.close()


class _Layout:
    """The fields of a struct with their word offsets."""

    def __init__(self, module: Module, t: Struct) -> None:
        self.module = module
        self.struct = t
        self.unit = word_bytes(t)
        self.width = load_width(t)
        self.offsets: list[tuple[str, Type, int]] = []
        offset = 0
        for name, field in t.fields:
            self.offsets.append((module.field(t, name), field, offset // self.unit))
            offset += -(-byte_count(field) // self.unit) * self.unit

    def each(self, place: str, t: Type, offset: int) -> list[tuple[str, Type, int]]:
        """`place` with its type and word offset, or the elements of a local array with theirs."""
        if isinstance(t, LocalArray) and not self.shares_words(t):
            stride = byte_count(t.element) // self.unit
            return [
                part
                for k in range(t.count)
                for part in self.each(f"{place}[{k}]", t.element, offset + k * stride)
            ]
        return [(place, t, offset)]

    def shares_words(self, t: Type) -> bool:
        """True if `t` is halves of which two lie in a word of this struct."""
        return self.unit == 4 and word_bytes(t) == 2


def write_layout(module: Module, t: Struct, name: str) -> Piece:
    """The struct as an element of buffers: reads, writes and atomic adds of its words."""
    piece = Piece()
    is_float = is_differentiable(t)
    layout = _Layout(module, t)
    piece.open(f"public extension {name} : {'IFloatElement' if is_float else 'IElement'}")
    piece.add(f"public static const uint wordCount = {byte_count(t) // layout.unit};")
    _read(piece, layout, name)
    _write(piece, layout, name)
    if is_float:
        count = byte_count(widened(t)) // 4
        piece.add(f"public static const uint gradientWordCount = {count};")
        _add(piece, module, t, name)
    piece.close()
    return piece


def _read(piece: Piece, layout: _Layout, name: str) -> None:
    piece.open(f"public static {name} read<Buffer : IReadable>(uint offset)")
    piece.add(f"{name} value;")
    if layout.width > 1:
        _Loaded(piece, layout).assign("value", layout.struct, 0)
    else:
        _read_fields(piece, layout)
    piece.add("return value;")
    piece.close()


def _read_fields(piece: Piece, layout: _Layout) -> None:
    """Reads each field by itself."""
    for field, t, offset in layout.offsets:
        for place, inner, at in layout.each(f"value.{field}", t, offset):
            if layout.shares_words(inner):
                _read_halves(piece, layout.module, inner, place, at)
                continue
            spelled = layout.module.types.spell(inner)
            piece.add(f"{place} = {spelled}.read<Buffer>(offset + {at});")


class _Loaded:
    """Loads of an element as vectors of words, and the extraction of its fields."""

    def __init__(self, piece: Piece, layout: _Layout) -> None:
        self._piece = piece
        self._types = layout.module.types
        self._field = layout.module.field
        self._unit = layout.unit
        self._width = layout.width
        scalar, function = ("half", "halfWords") if self._unit == 2 else ("uint", "words")
        for k in range(byte_count(layout.struct) // self._unit // self._width):
            load = f"Buffer.{function}{self._width}(offset + {k * self._width})"
            piece.add(f"{scalar}{self._width} words_{k} = {load};")

    def assign(self, place: str, t: Type, at: int) -> None:
        """Assigns the value `at` bytes into the element to `place`."""
        if isinstance(t, Struct):
            align = word_bytes(t)
            for name, field in t.fields:
                self.assign(f"{place}.{self._field(t, name)}", field, at)
                at += -(-byte_count(field) // align) * align
        elif isinstance(t, LocalArray):
            for k in range(t.count):
                self.assign(f"{place}[{k}]", t.element, at + k * byte_count(t.element))
        elif isinstance(t, Pointer):
            self.assign(f"{place}.base", UINT, at)
            self.assign(f"{place}.count", UINT, at + 4)
        else:
            self._piece.add(f"{place} = {self._value(t, at)};")

    def _value(self, t: Type, at: int) -> str:
        if isinstance(t, Matrix):
            row = Vector(t.element, t.column_count)
            rows = (self._value(row, at + k * byte_count(row)) for k in range(t.row_count))
            return f"{self._types.spell(t)}({', '.join(rows)})"
        if isinstance(t, Vector):
            first, part = divmod(at // self._unit, self._width)
            if byte_count(t.element) == self._unit and part + t.count <= self._width:
                return _of_words(t.element, f"words_{first}.{'xyzw'[part : part + t.count]}")
            size = byte_count(t.element)
            parts = (self._value(t.element, at + k * size) for k in range(t.count))
            return f"{self._types.spell(t)}({', '.join(parts)})"
        assert isinstance(t, Scalar)
        if t.kind is Kind.DOUBLE:
            return f"doubleOf({self._word(at)}, {self._word(at + 4)})"
        if t.kind is Kind.HALF and self._unit == 4:
            return f"{'highHalf' if at % 4 else 'lowHalf'}({self._word(at)})"
        return _of_words(t, self._word(at))

    def _word(self, at: int) -> str:
        block, part = divmod(at // self._unit, self._width)
        return f"words_{block}.{'xyzw'[part]}"


def _of_words(t: Scalar, words: str) -> str:
    """The value of scalars `t` from their bits."""
    as_ = {Kind.FLOAT: "asfloat({})", Kind.INT: "asint({})", Kind.BOOL: "{} != 0"}
    return as_.get(t.kind, "{}").format(words)


def _half_places(module: Module, t: Type, place: str) -> list[tuple[str, int]]:
    """The text and the number of each half in `place` of type `t`."""
    return [(place + _path_text(module, t, leaf.path), leaf.offset // 2) for leaf in leaves(t)]


def _path_text(module: Module, t: Type, path: tuple[str | int, ...]) -> str:
    text = ""
    for part in path:
        if isinstance(t, Struct):
            assert isinstance(part, str)
            text += f".{module.field(t, part)}"
            t = dict(t.fields)[part]
        else:
            text += f"[{part}]"
            t = t.element if isinstance(t, LocalArray) else t
    return text


def _read_halves(piece: Piece, module: Module, t: Type, place: str, offset: int) -> None:
    """Reads halves that share words, the low half first."""
    for part, k in _half_places(module, t, place):
        side = "highHalf" if k % 2 else "lowHalf"
        piece.add(f"{part} = {side}(Buffer.word(offset + {offset + k // 2}));")


def _write(piece: Piece, layout: _Layout, name: str) -> None:
    piece.open(f"public static void write<Buffer : IWritable>(uint offset, {name} value)")
    for field, t, offset in layout.offsets:
        for place, inner, at in layout.each(f"value.{field}", t, offset):
            _write_field(piece, layout, inner, place, at)
    piece.close()


def _write_field(piece: Piece, layout: _Layout, t: Type, place: str, offset: int) -> None:
    if layout.shares_words(t):
        parts = [part for part, _ in _half_places(layout.module, t, place)]
        for k in range(0, len(parts), 2):
            high = parts[k + 1] if k + 1 < len(parts) else "half(0.0)"
            word = f"wordOfHalves({parts[k]}, {high})"
            piece.add(f"Buffer.setWord(offset + {offset + k // 2}, {word});")
        return
    spelled = layout.module.types.spell(t)
    piece.add(f"{spelled}.write<Buffer>(offset + {offset}, {place});")


def _add(piece: Piece, module: Module, t: Struct, name: str) -> None:
    piece.open(f"public static void addCotangent<Buffer : IAddable>(uint offset, {name} value)")
    offset = 0
    for field_name, field in t.fields:
        if is_differentiable(field):
            _add_field(piece, module, f"value.{module.field(t, field_name)}", field, offset)
        offset += byte_count(widened(field)) // 4
    piece.close()


def _add_field(piece: Piece, module: Module, place: str, t: Type, offset: int) -> None:
    if isinstance(t, LocalArray):
        stride = byte_count(widened(t.element)) // 4
        for k in range(t.count):
            _add_field(piece, module, f"{place}[{k}]", t.element, offset + k * stride)
        return
    spelled = module.types.spell(t)
    piece.add(f"{spelled}.addCotangent<Buffer>(offset + {offset}, {place});")
