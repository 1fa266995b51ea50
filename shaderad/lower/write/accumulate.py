"""Writes to memory inside a body: Out at computed indices, Add, Min and Max, gradients.

A path such as ``[j].x`` becomes an element number, the word count of an element and a word offset;
values are split where an accessor of the library takes scalars only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    HALF,
    INT,
    OF_OUR_KERNELS,
    Access,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
    byte_count,
    is_float,
    word_bytes,
)
from shaderad.ir.walk import expressions, step_type
from shaderad.lower.bindings import Mode, SiteKind
from shaderad.lower.write.arrays import SUMS_OF_SCRATCH
from shaderad.lower.write.text import widened
from shaderad.rules.nodes import Cotangent

if TYPE_CHECKING:
    from shaderad.lower.write.body import BodyWriter


class _WordAddress:
    """Element number, word count of an element and word offset of a part, as Slang arguments."""

    def __init__(
        self, writer: BodyWriter, element: Type, index: str, path: tuple[nodes.Step, ...]
    ) -> None:
        self._writer = writer
        self._index = index
        self._unit = word_bytes(element)
        self._word_count = byte_count(element) // self._unit
        self._type = element
        self._constant = 0
        self._variable: list[str] = []
        for step in path:
            self._enter(step)

    @property
    def text(self) -> str:
        constant = [str(self._constant)] if self._constant or not self._variable else []
        return f"{self._index}, {self._word_count}, {' + '.join([*self._variable, *constant])}"

    @property
    def shares_words(self) -> bool:
        """True if the part is halves, two of which share a word."""
        return self._unit == 4 and word_bytes(self._type) == 2

    def _enter(self, step: nodes.Step) -> None:
        inner = step_type(self._type, step)
        assert inner is not None
        if isinstance(step, nodes.FieldStep):
            assert isinstance(self._type, Struct)
            for name, field in self._type.fields:
                if name == step.name:
                    break
                self._constant += -(-byte_count(field) // self._unit)
        elif isinstance(step, nodes.SwizzleStep):
            assert isinstance(self._type, Vector)
            words = byte_count(self._type.element) // self._unit
            self._constant += "xyzw".index(step.components[0]) * words
        elif isinstance(step, nodes.ElementStep):
            self._enter_element(step, byte_count(inner) // self._unit)
        self._type = inner

    def _enter_element(self, step: nodes.ElementStep, words: int) -> None:
        writer = self._writer
        if isinstance(step.index, nodes.Const):
            self._constant += int(step.index.value) * words
            return
        if writer.is_inside(step.index):
            part = f"({writer.text(step.index)})" if words > 1 else writer.text(step.index)
        else:
            part = writer.names.make("part")
            text = writer.expressions.local_index(step.index, self._type)
            writer.piece.add(f"uint {part} = {text};")
            self._index = f"({part} == outside ? outside : {self._index})"
        self._variable.append(f"{part} * {words}" if words > 1 else part)


def _parts(t: Type, value: nodes.Expr) -> Iterator[tuple[nodes.Step, nodes.Expr]]:
    """The fields or elements of a composite value, each with its step."""
    if isinstance(t, Struct):
        for name, field in t.fields:
            yield nodes.FieldStep(name=name), nodes.Field(type=field, value=value, name=name)
    elif isinstance(t, LocalArray | Matrix):
        count = t.row_count if isinstance(t, Matrix) else t.count
        inner = t.row if isinstance(t, Matrix) else t.element
        for k in range(count):
            index = nodes.Const(type=INT, value=k)
            yield (
                nodes.ElementStep(index=index),
                nodes.Element(type=inner, value=value, index=index),
            )
    elif isinstance(t, Vector):
        for k in range(t.count):
            letter = "xyzw"[k]
            part = nodes.Swizzle(type=t.element, value=value, components=letter)
            yield nodes.SwizzleStep(components=letter), part


def _split(
    path: tuple[nodes.Step, ...], t: Type, value: nodes.Expr, *, to_scalars: bool
) -> Iterator[tuple[tuple[nodes.Step, ...], nodes.Expr]]:
    """Splits a write into writes of vectors (or scalars), and of single components of swizzles."""
    last = path[-1] if path else None
    if isinstance(last, nodes.SwizzleStep) and len(last.components) > 1:
        for k, letter in enumerate(last.components):
            assert isinstance(t, Vector)
            part = nodes.Swizzle(type=t.element, value=value, components="xyzw"[k])
            yield (*path[:-1], nodes.SwizzleStep(components=letter)), part
    elif isinstance(t, Struct | LocalArray) or (to_scalars and isinstance(t, Vector | Matrix)):
        for step, part in _parts(t, value):
            yield from _split((*path, step), part.type, part, to_scalars=to_scalars)
    else:
        yield path, value


def _index(writer: BodyWriter, s: nodes.Store | nodes.Accumulate | nodes.AccumulateGradient) -> str:
    if isinstance(s.indices[0], nodes.KnownNumber):
        return writer.text(s.indices[0])
    name = writer.names.make("element")
    text = writer.expressions.checked_index(s.buffer, s.indices, s.span)
    writer.piece.add(f"uint {name} = {text};")
    return name


def _value(writer: BodyWriter, value: nodes.Expr) -> nodes.Expr:
    """A variable that holds `value`, which is written in parts."""
    name = writer.names.make("value")
    spelled = writer.module.types.spell(value.type)
    writer.piece.add(f"{spelled} {name} = {writer.text(value)};")
    key = f"{name} "
    writer.bind(key, name)
    return nodes.Var(type=value.type, name=key)


def _writes(
    writer: BodyWriter,
    path: tuple[nodes.Step, ...],
    value: nodes.Expr,
    *,
    to_scalars: bool = False,
    splits_structs: bool = False,
) -> list[tuple[tuple[nodes.Step, ...], nodes.Expr]]:
    """The parts in which `value` is written to `path`; a variable holds it if there are several."""
    last, t = path[-1] if path else None, value.type
    if (
        (isinstance(last, nodes.SwizzleStep) and len(last.components) > 1)
        or isinstance(t, LocalArray)
        or (splits_structs and isinstance(t, Struct))
        or (to_scalars and not isinstance(t, Scalar))
    ):
        return list(_split(path, t, _value(writer, value), to_scalars=to_scalars))
    return [(path, value)]


def write_store(writer: BodyWriter, s: nodes.Store) -> None:
    """``out[j]<path> = value``.

    Raises:
        LanguageError: SR0285, the part shares a word with another one.
    """
    element = writer.module.kernel.buffer(s.buffer).type.element
    tag = writer.module.arrays.tag(s.buffer)
    index = _index(writer, s)
    write = "writeInside" if writer.expressions.is_there(s.indices[0]) else "write"
    for path, part in _writes(writer, s.path, s.value):
        address = _WordAddress(writer, element, index, path)
        if path and address.shares_words:
            raise error("SR0285", s.span, array=s.buffer, type=s.value.type)
        spelled = writer.module.types.spell(part.type)
        if writer.module.counts_writes:
            site = writer.module.site(SiteKind.WRITES, s.span, s.buffer)
            writer.piece.add(f"markWrite<{spelled}, {tag}, Report>({address.text}, {site});")
        writer.piece.add(f"{write}<{spelled}, {tag}>({address.text}, {writer.text(part)});")


def write_accumulate(writer: BodyWriter, s: nodes.Accumulate) -> None:
    """``add[j]<path> += value`` and ``b[j] = sad.min(b[j], value)``."""
    buffer = writer.module.kernel.buffer(s.buffer)
    if buffer.access in (Access.MIN, Access.MAX):
        _write_extreme(writer, s, buffer.type.element)
        return
    if buffer.access in OF_OUR_KERNELS:
        _write_own(writer, s, buffer.access)
        return
    index, tag = _index(writer, s), writer.module.arrays.tag(s.buffer)
    if buffer.access in (Access.SCRATCH, Access.GROUP):
        tag += f".{SUMS_OF_SCRATCH}"
    to_scalars = not is_float(s.value.type)
    for path, part in _writes(writer, s.path, s.value, to_scalars=to_scalars, splits_structs=True):
        address = _WordAddress(writer, buffer.type.element, index, path).text
        text = writer.text(part)
        if is_float(part.type):
            spelled = writer.module.types.spell(part.type)
            writer.piece.add(f"add<{spelled}, {tag}>({address}, {text});")
        else:
            writer.piece.add(f"addInt<{tag}>({address}, asuint({text}));")


def _write_extreme(writer: BodyWriter, s: nodes.Accumulate, element: Type) -> None:
    """A write to Min or Max, scalar by scalar; forward mode writes tangents in its place."""
    index, tag = _index(writer, s), writer.module.arrays.tag(s.buffer)
    written = [e for e in (s.value, s.tangent) if e is not None]
    values = [_writes(writer, s.path, e, to_scalars=True) for e in written]
    number = writer.text(s.number) if isinstance(s, NumberedAccumulate) else "0u"
    for parts in zip(*values, strict=True):
        path, value = parts[0]
        head = f"{_WordAddress(writer, element, index, path).text}, {number}"
        texts = [writer.text(part) for _, part in parts]
        if writer.module.mode is not Mode.FORWARD:
            spelled = writer.module.types.spell(value.type)
            writer.piece.add(f"compete<{spelled}, {tag}>({head}, {texts[0]});")
        elif s.tangent is not None:
            part = writer.module.part_of_winner(s.buffer, s.tangent_buffer)
            writer.piece.add(f"setTangentOfWinner<{tag}, {tag}.{part}>({head}, {texts[1]});")


def _write_own(writer: BodyWriter, s: nodes.Accumulate, access: Access) -> None:
    """A write to a Greatest or Lists array, whose elements are written whole."""
    index, tag = _index(writer, s), writer.module.arrays.tag(s.buffer)
    value = writer.text(s.value)
    if access is Access.GREATEST:
        writer.piece.add(f"keepGreatest<{tag}>({index}, {value});")
    else:
        head = writer.text(s.indices[-1])
        writer.piece.add(f"push<{tag}>({index}, uint({head}), uint({value}));")


def words_of(writer: BodyWriter, value: nodes.Expr) -> Iterator[str]:
    """The texts of the words of a value; no two scalars share a word."""
    is_once = isinstance(value.type, Scalar) and value.type != DOUBLE
    has_calls = any(isinstance(e, nodes.Call) for e in expressions(value))
    if not isinstance(value, nodes.Var) and (has_calls or not is_once):
        value = _value(writer, value)
    for _, part in _split((), value.type, value, to_scalars=True):
        text = writer.text(part)
        if part.type == DOUBLE:
            yield f"wordsOf({text}).x"
            yield f"wordsOf({text}).y"
        elif part.type == BOOL:
            yield f"uint({text})"
        else:
            yield f"asuint(float({text}))" if part.type == HALF else f"asuint({text})"


def cotangent_text(writer: BodyWriter, e: Cotangent) -> str:
    """The cotangent, float or vector, of a value written to ``buffer[indices]<path>``."""
    buffer = writer.module.kernel.buffer(e.buffer)
    index = writer.expressions.checked_index(e.buffer, e.indices, e.span)
    address = _WordAddress(writer, buffer.type.element, index, e.path).text
    tag = writer.module.arrays.tag(e.buffer)
    if e.write_number is not None:
        part = writer.module.part_of_winner(e.buffer, e.of)
        return f"cotangentOfWinner<{tag}, {tag}.{part}>({address}, {writer.text(e.write_number)})"
    name = "summedCotangent" if buffer.access is Access.ADD else "storedCotangent"
    return f"{name}<{writer.module.types.spell(e.type)}, {tag}>({address})"


def write_gradient(writer: BodyWriter, s: nodes.AccumulateGradient) -> None:
    """``w.d[j]<path> += value``, or ``=`` in a custom derivative that stores."""
    if not writer.module.is_wanted(s.buffer):
        return
    element = widened(writer.module.kernel.buffer(s.buffer).type.element)
    tag = writer.module.arrays.tag(s.buffer)
    index = _index(writer, s)
    if writer.module.holds_sums(s):
        sums = writer.module.arrays.held_sum(s.buffer)
        writer.piece.add(f"{sums}.add<{tag}>({index}, {writer.text(s.value)});")
        return
    for path, part in _writes(writer, s.path, s.value, to_scalars=s.is_store):
        address = _WordAddress(writer, element, index, path).text
        if s.is_store:
            writer.module.arrays.stored_gradients.add(s.buffer)
            writer.piece.add(f"setGradient<{tag}>({address}, float({writer.text(part)}));")
            continue
        spelled = writer.module.types.spell(part.type)
        function = f"{writer.module.adder_of_gradient(s)}<{spelled}, {tag}>"
        writer.piece.add(f"{function}({address}, {writer.text(part)});")
