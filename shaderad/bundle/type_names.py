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
_LOCAL_ARRAY = re.compile(r"LocalArray\[(.+), (\d+)\]")


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
        self._known: dict[str, Type] = {}

    def type(self, name: str) -> Type:
        """The type.

        Raises:
            KeyError: Where the manifest does not say what `name` is.
        """
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Type:
        builtin = _BUILTIN.fullmatch(name)
        if builtin is not None:
            scalar = Scalar(Kind(builtin[1]))
            if builtin[2] is None:
                return scalar
            count = int(builtin[2])
            return Matrix(scalar, count, int(builtin[3])) if builtin[3] else Vector(scalar, count)
        local_array = _LOCAL_ARRAY.fullmatch(name)
        if local_array is not None:
            return LocalArray(self.type(local_array[1]), int(local_array[2]))
        layout = self._layouts[name]
        if layout.element:
            return Pointer(self.type(layout.element), layout.pointers[0].target)
        return Struct(name, tuple((f.name, self.type(f.type)) for f in layout.fields))


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
