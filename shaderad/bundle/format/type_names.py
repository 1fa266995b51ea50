"""Element types <-> their names in a manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.bundle.format.description import Layout, Part, PointerPart, StructField
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
"""The maximum nesting of types."""
PART_LIMIT = 1 << 18
"""Maximum parts of one element, roughly its bytes."""


class TypeTable:
    """Collects the element types of a manifest that is written, each under a unique name."""

    def __init__(self) -> None:
        self._names: dict[Type, str] = {}
        self.layouts: dict[str, Layout] = {}

    def name(self, t: Type) -> str:
        """The name of `t`; a second struct with the same name gets a number."""
        if t not in self._names:
            members = t.fields if isinstance(t, Struct) else ()
            fields = [StructField(n, self.name(f)) for n, f in members]
            element = self.name(t.element) if isinstance(t, Pointer) else ""
            spelled = str(t)
            if isinstance(t, LocalArray):
                spelled = f"LocalArray[{self.name(t.element)}, {t.count}]"
            name, number = spelled, 1
            while name in self.layouts:
                number += 1
                name = f"{spelled}_{number}"
            self._names[t] = name
            self.layouts[name] = _layout(t, fields, element)
        return self._names[t]


class TypeReader:
    """Reads the types of a manifest by name; the inverse of `TypeTable`."""

    def __init__(self, layouts: Mapping[str, Layout]) -> None:
        self._layouts = layouts
        self._types: dict[str, tuple[Type, int]] = {}
        """Each type with its number of parts, including those behind pointers."""
        self._depth = 0

    def type(self, name: str) -> Type:
        """The type called `name`.

        Raises:
            KeyError: The manifest does not describe `name`.
            ValueError: The type contains itself, or is larger than shaderad writes.
        """
        return self._sized(name)[0]

    def _sized(self, name: str) -> tuple[Type, int]:
        if name not in self._types:
            self._depth += 1
            if self._depth > DEPTH_LIMIT:
                raise ValueError(f"a type inside of {DEPTH_LIMIT} others")
            t, part_count = self._read(name)
            self._depth -= 1
            if part_count > PART_LIMIT:
                raise ValueError(f"a type of {part_count} parts")
            self._types[name] = t, part_count
        return self._types[name]

    def _read(self, name: str) -> tuple[Type, int]:
        builtin = _BUILTIN.fullmatch(name)
        if builtin is not None:
            t = _builtin(Scalar(Kind(builtin[1])), builtin[2], builtin[3])
            return t, byte_count(t)
        local_array = _LOCAL_ARRAY.fullmatch(name)
        if local_array is not None:
            (element, inside), count = self._sized(local_array[1]), int(local_array[2])
            return LocalArray(element, count), count * inside
        layout = self._layouts[name]
        if layout.element:
            (element, inside), (pointer,) = self._sized(layout.element), layout.pointers
            return Pointer(element, pointer.target), 1 + inside
        fields = [(f.name, *self._sized(f.type)) for f in layout.fields]
        if not fields or len({field for field, _, _ in fields}) < len(fields):
            raise ValueError(f"a struct `{name}` without fields, or with two of one name")
        parts = sum(inside for _, _, inside in fields)
        return Struct(name, tuple((field, t) for field, t, _ in fields)), parts


def _builtin(scalar: Scalar, count: str | None, columns: str | None) -> Type:
    if count is None:
        return scalar
    return Matrix(scalar, int(count), int(columns)) if columns else Vector(scalar, int(count))


def _layout(t: Type, fields: list[StructField], element: str) -> Layout:
    """The layout of a type; a pointer is two words: first element in array `target`, and count."""
    pointers = [(path, p.target) for path, p in pointers_in(t, ()) if POINTED not in path]
    return Layout(
        byte_count=byte_count(t),
        word_bytes=word_bytes(t),
        scalars=[Part([*leaf.path], leaf.scalar.kind, leaf.offset) for leaf in leaves(t)],
        pointers=[PointerPart([*path], target) for path, target in pointers],
        fields=fields,
        element=element,
    )
