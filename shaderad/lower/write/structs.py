"""The user's structs as Slang, and their layout in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shaderad.ir.composing import named_parts
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
from shaderad.lower.write.resources import load_width
from shaderad.lower.write.text import Piece, widened

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module


def write_struct(module: Module, t: Struct | Tuple, name: str) -> Piece:
    """``struct Triangle``, with the user's fields, or the struct of a tuple.

    For importing programs it is differentiable in Slang; a tuple only if a derivative returns it.
    """
    piece = Piece()
    fields = [(module.field(t, field), inner) for field, inner in named_parts(t)]
    moving = [(field, inner) for field, inner in fields if is_differentiable(inner)]
    is_result = any(f.result == t for f in module.derivatives)
    is_moving = bool(moving) and (is_result if isinstance(t, Tuple) else module.is_importable)
    piece.open(f"public struct {name}{' : IDifferentiable' if is_moving else ''}")
    if is_moving:
        piece.add(f"public typealias Differential = {name};")
    for field, inner in fields:
        is_member = is_moving and is_differentiable(inner)
        member = f"[DerivativeMember({name}.{field})] " if is_member else ""
        piece.add(f"{member}public {module.types.spell(inner)} {field};")
    if is_moving:
        _write_differential(piece, module, name, moving)
    piece.close()
    return piece


def _write_differential(
    piece: Piece, module: Module, name: str, moving: list[tuple[str, Type]]
) -> None:
    """Writes ``dzero`` and ``dadd`` of a type that is its own differential."""
    sums: list[str] = []
    for field, t in moving:
        text = f"a.{field} + b.{field}"
        if isinstance(t, LocalArray | Struct | Tuple):
            text = f"{module.types.spell(t)}.dadd(a.{field}, b.{field})"
        sums.append(f"sum.{field} = {text};")
    zero = f"public static {name} dzero() {{ return {{}}; }}"
    piece.add("[Differentiable]", zero, "[Differentiable]")
    head = f"public static {name} dadd({name} a, {name} b)"
    piece.block(head, [f"{name} sum = {{}};", *sums, "return sum;"])


def write_layout(module: Module, t: Struct, name: str) -> Piece:
    """The struct as an element of buffers: reads, writes and atomic adds of its words."""
    piece, unit, width = Piece(), word_bytes(t), load_width(t)
    is_float = is_differentiable(t)
    piece.open(f"public extension {name} : {'IFloatElement' if is_float else 'IElement'}")
    piece.add(f"public static const uint wordCount = {byte_count(t) // unit};")
    if width > 1:
        loaded = _Loaded(module, width, unit)
        reads = [*loaded.loads(t), *loaded.assignments("value", t, 0)]
    else:
        reads = [line for part in _parts(module, t) for line in _reads(module, *part, unit)]
    head = f"public static {name} read<Buffer : IReadable>(uint offset)"
    piece.block(head, [f"{name} value;", *reads, "return value;"])
    head = f"public static void write<Buffer : IWritable>(uint offset, {name} value)"
    writes = (line for part in _parts(module, t) for line in _writes(module, *part, unit))
    piece.block(head, writes)
    if is_float:
        count = byte_count(widened(t)) // 4
        piece.add(f"public static const uint gradientWordCount = {count};")
        head = f"public static void addCotangent<Buffer : IAddable>(uint offset, {name} value)"
        piece.block(head, _additions(module, t))
    piece.close()
    return piece


def _parts(module: Module, t: Struct) -> Iterator[tuple[str, Type, int]]:
    """The fields of ``value``, and elements of local arrays in them, with their word offsets."""
    unit = word_bytes(t)

    def each(place: str, t: Type, offset: int) -> Iterator[tuple[str, Type, int]]:
        if isinstance(t, LocalArray) and not _shares_words(t, unit):
            stride = byte_count(t.element) // unit
            for k in range(t.count):
                yield from each(f"{place}[{k}]", t.element, offset + k * stride)
        else:
            yield place, t, offset

    offset = 0
    for name, field in t.fields:
        yield from each(f"value.{module.field(t, name)}", field, offset)
        offset += -(-byte_count(field) // unit)


def _shares_words(t: Type, unit: int) -> bool:
    """True if `t` is halves, two of which share a word of `unit` bytes."""
    return unit == 4 and word_bytes(t) == 2


def _reads(module: Module, place: str, t: Type, offset: int, unit: int) -> Iterator[str]:
    """The statements that read a part; of halves that share a word, the low one comes first."""
    if not _shares_words(t, unit):
        yield f"{place} = {module.types.spell(t)}.read<Buffer>(offset + {offset});"
        return
    for k, part in enumerate(_halves(module, t, place)):
        side = "highHalf" if k % 2 else "lowHalf"
        yield f"{part} = {side}(Buffer.word(offset + {offset + k // 2}));"


def _writes(module: Module, place: str, t: Type, offset: int, unit: int) -> Iterator[str]:
    if not _shares_words(t, unit):
        yield f"{module.types.spell(t)}.write<Buffer>(offset + {offset}, {place});"
        return
    parts = _halves(module, t, place)
    for k in range(0, len(parts), 2):
        high = parts[k + 1] if k + 1 < len(parts) else "half(0.0)"
        word = f"wordOfHalves({parts[k]}, {high})"
        yield f"Buffer.setWord(offset + {offset + k // 2}, {word});"


def _halves(module: Module, t: Type, place: str) -> list[str]:
    """The text of each half in `place` of type `t`."""
    return [place + _path_text(module, t, leaf.path) for leaf in leaves(t)]


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


def _additions(module: Module, t: Struct) -> Iterator[str]:
    """The statements that add the floats of ``value`` to a gradient."""
    offset = 0
    for name, field in t.fields:
        if is_differentiable(field):
            yield from _addition(module, f"value.{module.field(t, name)}", field, offset)
        offset += byte_count(widened(field)) // 4


def _addition(module: Module, place: str, t: Type, offset: int) -> Iterator[str]:
    if isinstance(t, LocalArray):
        stride = byte_count(widened(t.element)) // 4
        for k in range(t.count):
            yield from _addition(module, f"{place}[{k}]", t.element, offset + k * stride)
    else:
        yield f"{module.types.spell(t)}.addCotangent<Buffer>(offset + {offset}, {place});"


class _Loaded:
    """Loads of an element as vectors of words, and the extraction of its fields."""

    def __init__(self, module: Module, width: int, unit: int) -> None:
        self._module = module
        self._width = width
        """Words of one load."""
        self._unit = unit
        """Bytes of a word."""

    def loads(self, t: Type) -> Iterator[str]:
        scalar, function = ("half", "halfWords") if self._unit == 2 else ("uint", "words")
        for k in range(byte_count(t) // self._unit // self._width):
            load = f"Buffer.{function}{self._width}(offset + {k * self._width})"
            yield f"{scalar}{self._width} words_{k} = {load};"

    def assignments(self, place: str, t: Type, offset: int) -> Iterator[str]:
        """The statements that assign the value `offset` bytes into the element to `place`."""
        if isinstance(t, Struct):
            align = word_bytes(t)
            for name, field in t.fields:
                yield from self.assignments(f"{place}.{self._module.field(t, name)}", field, offset)
                offset += -(-byte_count(field) // align) * align
        elif isinstance(t, LocalArray):
            for k in range(t.count):
                step = k * byte_count(t.element)
                yield from self.assignments(f"{place}[{k}]", t.element, offset + step)
        elif isinstance(t, Pointer):
            yield from self.assignments(f"{place}.base", UINT, offset)
            yield from self.assignments(f"{place}.count", UINT, offset + 4)
        else:
            yield f"{place} = {self._value(t, offset)};"

    def _value(self, t: Type, offset: int) -> str:
        if isinstance(t, Matrix):
            row = Vector(t.element, t.column_count)
            rows = (self._value(row, offset + k * byte_count(row)) for k in range(t.row_count))
            return f"{self._module.types.spell(t)}({', '.join(rows)})"
        if isinstance(t, Vector):
            first, part = divmod(offset // self._unit, self._width)
            if byte_count(t.element) == self._unit and part + t.count <= self._width:
                return _of_words(t.element, f"words_{first}.{'xyzw'[part : part + t.count]}")
            size = byte_count(t.element)
            parts = (self._value(t.element, offset + k * size) for k in range(t.count))
            return f"{self._module.types.spell(t)}({', '.join(parts)})"
        assert isinstance(t, Scalar)
        if t.kind is Kind.DOUBLE:
            return f"doubleOf({self._word(offset)}, {self._word(offset + 4)})"
        if t.kind is Kind.HALF and self._unit == 4:
            return f"{'highHalf' if offset % 4 else 'lowHalf'}({self._word(offset)})"
        return _of_words(t, self._word(offset))

    def _word(self, offset: int) -> str:
        block, part = divmod(offset // self._unit, self._width)
        return f"words_{block}.{'xyzw'[part]}"


def _of_words(t: Scalar, words: str) -> str:
    """The value of scalars `t` from their bits."""
    as_ = {Kind.FLOAT: "asfloat({})", Kind.INT: "asint({})", Kind.BOOL: "{} != 0"}
    return as_.get(t.kind, "{}").format(words)
