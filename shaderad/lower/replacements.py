"""Writes to a part of a value -> the whole value again, with that part replaced.

In functions that Slang differentiates it keeps values changed in part (``v.x = e``, ``a[i] = e``)
in registers of its own choice, and where branches join it loses one of two such values that trade
places: a wrong number, without a word (tests/compiler_faults/). Whole values it gets right, so
there ``v.x = e`` becomes ``v = float3(e, v.y, v.z)`` and ``a[i] = e`` a call of ``withElement``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.nodes import Const, ElementStep, Expr, FieldStep, PartStep, Step, SwizzleStep
from shaderad.ir.types import LocalArray, Matrix, Struct, Type, Vector, is_differentiable, is_float
from shaderad.ir.walk import step_type

if TYPE_CHECKING:
    from shaderad.lower.slang import FunctionWriter

_COMPONENTS = "xyzw"


def write_replacement(
    writer: FunctionWriter, target: str, t: Type, path: tuple[Step, ...], value: Expr
) -> None:
    """``target<path> = value`` as an assignment to all of `target`, which is of type `t`."""
    replacement = _Replacement(writer, value)
    writer.piece.add(f"{target} = {replacement.text(target, t, path)};")


class _Replacement:
    """Spells a value with the part at the end of a path replaced."""

    def __init__(self, writer: FunctionWriter, value: Expr) -> None:
        self._writer = writer
        self._types = writer.module.types
        self._value = value

    def text(self, whole: str, t: Type, path: tuple[Step, ...]) -> str:
        """`whole`, of type `t`, with ``<path>`` replaced."""
        if not path:
            return self._writer.text(self._value)
        step, rest = path[0], path[1:]
        assert not isinstance(step, PartStep)
        if isinstance(step, FieldStep):
            assert isinstance(t, Struct)
            return self._field(whole, t, step.name, rest)
        if isinstance(step, SwizzleStep):
            assert isinstance(t, Vector)
            return self._swizzle(whole, t, step.components)
        return self._element(whole, t, step, rest)

    def _field(self, whole: str, t: Struct, name: str, rest: tuple[Step, ...]) -> str:
        parts: list[str] = []
        for field, inner in t.fields:
            part = f"{whole}.{self._writer.module.field(t, field)}"
            parts.append(self.text(part, inner, rest) if field == name else part)
        return f"{self._types.spell(t)}({', '.join(parts)})"

    def _swizzle(self, whole: str, t: Vector, components: str) -> str:
        value = self.text(whole, t, ())
        if len(components) > 1:
            part = self._writer.names.make("part")
            self._writer.piece.add(f"{self._types.spell(self._value.type)} {part} = {value};")
            value = part
        parts = [
            f"{value}.{_COMPONENTS[components.index(c)]}" if c in components else f"{whole}.{c}"
            for c in _COMPONENTS[: t.count]
        ]
        if len(components) == 1:
            parts[_COMPONENTS.index(components)] = value
        return f"{self._types.spell(t)}({', '.join(parts)})"

    def _element(self, whole: str, t: Type, step: ElementStep, rest: tuple[Step, ...]) -> str:
        if isinstance(t, Vector) and isinstance(step.index, Const):
            return self._swizzle(whole, t, _COMPONENTS[int(step.index.value)])
        index = self._writer.expressions.local_index(step.index, t)
        inner = step_type(t, step)
        assert inner is not None
        if not rest:
            return f"{_setter(t)}({whole}, {index}, {self.text(whole, inner, ())})"
        if not isinstance(step.index, Const):
            place = self._writer.names.make("index")
            self._writer.piece.add(f"uint {place} = {index};")
            index = place
        part = self._writer.names.make("part")
        read = self._writer.expressions.element_text(whole, t, index, inner)
        self._writer.piece.add(f"{self._types.spell(inner)} {part} = {read};")
        return f"{_setter(t)}({whole}, {index}, {self.text(part, inner, rest)})"


def _setter(t: Type) -> str:
    """The library function that replaces one element of a `t`."""
    if isinstance(t, LocalArray):
        return "withElement" if is_differentiable(t.element) else "withPlainElement"
    if isinstance(t, Matrix):
        return "withRow"
    return "withComponent" if is_float(t) else "withPlainComponent"
