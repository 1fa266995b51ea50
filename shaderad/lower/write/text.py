"""Slang text: lines with their places in the Python source, types and constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from shaderad.diagnostics import Span
from shaderad.ir.pointers import without_targets
from shaderad.ir.types import (
    FLOAT,
    HALF,
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    Tuple,
    Type,
    Vector,
    Void,
    scalar_of,
    with_scalar,
)
from shaderad.lower.write.names import MODIFIERS, IdentifierScope, member_names

LINE_LENGTH = 100
"""Calls beyond it are broken; other lines may be longer."""
OPTIONAL_TYPES = frozenset({Kind.HALF, Kind.DOUBLE})
"""Kinds of scalars that a device may lack; each is a feature of its own name."""


class Piece:
    """A part of a module's text at global level."""

    def __init__(self, span: Span | None = None) -> None:
        self.lines: list[tuple[str, Span | None]] = []
        self._depth = 0
        self.span = span

    def add(self, *lines: str) -> None:
        """Adds lines at the current depth; braces change the depth of later lines."""
        for text in lines:
            if text.startswith("}"):
                self._depth -= 1
            self.lines.append((("    " * self._depth + text).rstrip(), self.span))
            if text == "{":
                self._depth += 1

    def open(self, head: str) -> None:
        self.add(head, "{")

    def close(self) -> None:
        self.add("}")

    def block(self, head: str, lines: Iterable[str]) -> None:
        """Adds `lines` in braces under `head`."""
        self.add(head, "{", *lines, "}")

    def guarded(self, head: str, *statements: str) -> None:
        """Adds an if, else or loop of one-line statements; braces enclose several."""
        if len(statements) > 1:
            self.open(head)
            self.add(*statements)
            self.close()
            return
        self.add(head)
        self._depth += 1
        self.add(*statements)
        self._depth -= 1

    def call(self, head: str, arguments: Sequence[str]) -> None:
        """Adds ``head(arguments);``, with one argument per line if one line would be too long."""
        line = f"{head}({', '.join(arguments)});"
        if 4 * self._depth + len(line) <= LINE_LENGTH:
            self.add(line)
            return
        self.add(f"{head}(")
        self._depth += 1
        self.add(*(f"{argument}," for argument in arguments[:-1]), f"{arguments[-1]});")
        self._depth -= 1


class SlangTypes:
    """The spelling of types; structs and tuples get identifiers of the module."""

    def __init__(self, names: IdentifierScope) -> None:
        self._names = names
        self.structs: dict[Struct, str] = {}
        self.tuples: dict[Tuple, str] = {}
        self.features: set[str] = set()
        """Names of the types in `OPTIONAL_TYPES` that were spelled."""
        self._fields: dict[Struct, IdentifierScope] = {}

    def spell(self, t: Type) -> str:
        """The Slang type of a value of type `t`."""
        scalar = scalar_of(t)
        if scalar is not None and scalar.kind in OPTIONAL_TYPES:
            self.features.add(str(scalar))
        if isinstance(t, Scalar | Vector):
            return str(t)
        if isinstance(t, Matrix):
            return f"{t.element}{t.row_count}x{t.column_count}"
        if isinstance(t, LocalArray):
            return f"Array<{self.spell(t.element)}, {t.count}>"
        if isinstance(t, Pointer):
            return f"Pointer<{self.spell(t.element)}>"
        if isinstance(t, Struct):
            return self._struct(t)
        if isinstance(t, Tuple):
            return self._tuple(t)
        if isinstance(t, Void):
            return "void"
        raise TypeError(f"{t} has no Slang type")

    def zero(self, t: Type) -> str:
        if isinstance(t, Scalar):
            return {Kind.FLOAT: "0.0", Kind.BOOL: "false", Kind.INT: "0", Kind.UINT: "0u"}.get(
                t.kind, f"{t}(0.0)"
            )
        if isinstance(t, Vector | Matrix):
            return f"{self.spell(t)}({self.zero(t.element)})"
        if isinstance(t, LocalArray):
            element = self.spell(t.element)
            return f"makeArrayFromElement<{element}, {t.count}>({self.zero(t.element)})"
        if isinstance(t, Pointer):
            return f"{self.spell(t)}(0u, 0u)"
        if isinstance(t, Struct | Tuple):
            fields = [f for _, f in t.fields] if isinstance(t, Struct) else t.elements
            return f"{self.spell(t)}({', '.join(map(self.zero, fields))})"
        raise TypeError(f"{t} has no zero")

    def field(self, t: Struct, name: str) -> str:
        """A field's identifier, which differs from all type names."""
        self.spell(t)
        return self._fields[_annotated(t)].make(name, name)

    def _struct(self, t: Struct) -> str:
        t = _annotated(t)
        if t not in self.structs:
            for _, field in t.fields:
                self.spell(field)
            self.structs[t] = self._names.make(t.name, avoided=MODIFIERS)
            self._fields[t] = member_names([*self.structs.values(), *self.tuples.values()])
        return self.structs[t]

    def _tuple(self, t: Tuple) -> str:
        if t not in self.tuples:
            parts = [self.spell(e).replace("<", "_").replace(">", "").replace(", ", "_")
                     for e in t.elements]  # fmt: skip
            self.tuples[t] = self._names.make("Tuple_" + "_".join(parts))
        return self.tuples[t]


def _annotated(t: Struct) -> Struct:
    """`t` as in the user's annotation."""
    annotated = without_targets(t)
    assert isinstance(annotated, Struct)
    return annotated


def is_plain_number(value: float, t: Scalar) -> bool:
    """True if `value` has a literal; infinities and NaN have none."""
    return t.kind not in (Kind.FLOAT, Kind.HALF, Kind.DOUBLE) or math.isfinite(value)


def literal(value: float | int | bool, t: Scalar) -> str:
    """The literal of a finite constant, exact in type `t`."""
    if t.kind is Kind.BOOL:
        return "true" if value else "false"
    if t.kind is Kind.UINT:
        return f"{int(value)}u"
    if t.kind is Kind.INT:
        # The lowest int has no literal: it would be the negation of a number out of range.
        return str(int(value)) if value > -(2**31) else "int(0x80000000u)"
    if t.kind is Kind.DOUBLE:
        return f"{float(value)!r}lf"
    shortest = repr(float(str(np.float32(value))))
    return f"half({shortest})" if t.kind is Kind.HALF else shortest


def widened(t: Type) -> Type:
    """The storage type of a summed gradient of type `t`: half becomes float."""
    if isinstance(t, LocalArray):
        return LocalArray(widened(t.element), t.count)
    if isinstance(t, Struct):
        return Struct(t.name, tuple((n, widened(f)) for n, f in t.fields))
    return with_scalar(t, FLOAT) if scalar_of(t) == HALF else t
