"""Element types <-> the names by which a manifest mentions them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.bundle.description import Field, Layout, Part, PointerPart
from shaderad.ir.pointers import POINTED, pointers_in
from shaderad.ir.types import (
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    byte_count,
    leaves,
    word_bytes,
)

_BUILTIN = re.compile(r"(float|half|double|int|uint|bool)(?:([2-4])(?:x([2-4]))?)?")
_LOCAL_ARRAY = re.compile(r"LocalArray\[(.+), ([1-9]\d{0,6})\]")
DEPTH_LIMIT = 32
"""Types inside of each other."""
PART_LIMIT = 1 << 18
"""Bytes of one element, about."""


class Types:
    """The element types that a manifest mentions, each once, by a name of its own."""

    def __init__(self) -> None:
        self._names: dict[Type, str] = {}
        self._layouts: dict[str, Layout] = {}

    def name(self, t: Type) -> str:
        """The type's name; a second struct of one name is numbered."""
        if t not in self._names:
            fields, element = self._inside(t)
            spelled = str(t)
            if isinstance(t, LocalArray):
                spelled = f"LocalArray[{self.name(t.element)}, {t.count}]"
            name, number = spelled, 1
            while name in self._layouts:
                number += 1
                name = f"{spelled}_{number}"
            self._names[t] = name
            self._layouts[name] = _layout(t, fields, element)
        return self._names[t]

    def _inside(self, t: Type) -> tuple[list[Field], str]:
        fields = [Field(n, self.name(f)) for n, f in t.fields] if isinstance(t, Struct) else []
        return fields, self.name(t.element) if isinstance(t, Pointer) else ""

    def table(self) -> dict[str, Layout]:
        return self._layouts


class TypeNames:
    """The types of one manifest; inverse of `Types`."""

    def __init__(self, layouts: Mapping[str, Layout]) -> None:
        self._layouts = layouts
        self._known: dict[str, tuple[Type, int]] = {}
        """With the parts of each, those behind pointers included."""
        self._depth = 0

    def type(self, name: str) -> Type:
        """The type.

        Raises:
            KeyError: Where the manifest does not say what `name` is.
            ValueError: Where it holds itself, or more than any element of ours.
        """
        return self._found(name)[0]

    def _found(self, name: str) -> tuple[Type, int]:
        if name not in self._known:
            self._depth += 1
            if self._depth > DEPTH_LIMIT:
                raise ValueError(f"a type inside of {DEPTH_LIMIT} others")
            found, count = self._read(name)
            self._depth -= 1
            if count > PART_LIMIT:
                raise ValueError(f"a type of {count} parts")
            self._known[name] = found, count
        return self._known[name]

    def _read(self, name: str) -> tuple[Type, int]:
        builtin = _BUILTIN.fullmatch(name)
        if builtin is not None:
            found = _builtin(Scalar(Kind(builtin[1])), builtin[2], builtin[3])
            return found, byte_count(found)
        local_array = _LOCAL_ARRAY.fullmatch(name)
        if local_array is not None:
            (element, inside), count = self._found(local_array[1]), int(local_array[2])
            return LocalArray(element, count), count * inside
        layout = self._layouts[name]
        if layout.element:
            (element, inside), (pointer,) = self._found(layout.element), layout.pointers
            return Pointer(element, pointer.target), 1 + inside
        fields = [(f.name, *self._found(f.type)) for f in layout.fields]
        if not fields or len({field for field, _, _ in fields}) < len(fields):
            raise ValueError(f"a struct `{name}` without fields, or with two of one name")
        parts = sum(inside for _, _, inside in fields)
        return Struct(name, tuple((field, t) for field, t, _ in fields)), parts


def _builtin(scalar: Scalar, count: str | None, columns: str | None) -> Type:
    if count is None:
        return scalar
    return Matrix(scalar, int(count), int(columns)) if columns else Vector(scalar, int(count))


def _layout(t: Type, fields: list[Field], element: str) -> Layout:
    """The words of a type; a pointer's are its first element in the array `target`, and a count."""
    pointers = [(at, p.target) for at, p in pointers_in(t, ()) if POINTED not in at]
    return Layout(
        byte_count=byte_count(t),
        word_bytes=word_bytes(t),
        scalars=[Part([*leaf.path], leaf.scalar.kind, leaf.offset) for leaf in leaves(t)],
        pointers=[PointerPart([*at], target) for at, target in pointers],
        fields=fields,
        element=element,
    )
