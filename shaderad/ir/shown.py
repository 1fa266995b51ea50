"""Formats host values as ``print`` shows them, for the device, the interpreter and the debugger.

Vectors are arrays, structs are mappings or objects with the fields. A float has the fewest digits
that identify it in its own type, so a ``float`` 0.1 reads 0.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shaderad.ir.types import (
    FLOAT_KINDS,
    INTEGER_KINDS,
    Kind,
    LocalArray,
    Pointer,
    Scalar,
    Struct,
    Type,
    leaves,
    scalar_of,
)

MOST_CHARACTERS = 1000
"""The largest width and precision that a format may request."""
_NUMBER = re.compile(r"\d+")
_SAYS_DIGITS = re.compile(r"\.\d|[A-Za-z%]$")


@dataclass(frozen=True, slots=True)
class PrintForm:
    """The text of one ``print``: `texts`, with a value between each two."""

    texts: tuple[str, ...]
    """One more than there are values; the last one holds the end of the line."""
    types: tuple[Type, ...]
    """The type of each value."""
    specs: tuple[str, ...]
    """The format of each value, or an empty string."""

    @property
    def word_count(self) -> int:
        """32-bit words that a device writes for the values."""
        return sum(words_of(leaf.scalar) for t in self.types for leaf in leaves(t))

    def text(self, values: Iterable[Any]) -> str:
        """The text with `values` filled in."""
        parts = zip(values, self.types, self.specs, self.texts[1:], strict=True)
        return self.texts[0] + "".join(shown(v, t, spec) + text for v, t, spec, text in parts)


def words_of(scalar: Scalar) -> int:
    """32-bit words of a printed scalar: two for a double, one for any other."""
    return 2 if scalar.kind is Kind.DOUBLE else 1


def is_printable(t: Type) -> bool:
    """True for numbers, and for structs and arrays of numbers."""
    if isinstance(t, Struct):
        return all(is_printable(field) for _, field in t.fields)
    if isinstance(t, LocalArray):
        return is_printable(t.element)
    return scalar_of(t) is not None and not isinstance(t, Pointer)


def why_no_format(spec: str, t: Type) -> str:
    """The reason why the format `spec` does not fit type `t`, or an empty string."""
    scalar = scalar_of(t)
    if scalar is None:
        return "only numbers, vectors and matrices have a format"
    if any(int(number) > MOST_CHARACTERS for number in _NUMBER.findall(spec)):
        return f"it asks for more than {MOST_CHARACTERS} characters"
    if scalar.kind in INTEGER_KINDS and spec.endswith("c"):
        return "not every number is a character"
    sample = 1.5 if scalar.kind in FLOAT_KINDS else 1 if scalar.kind in INTEGER_KINDS else True
    try:
        format(sample, spec)
    except ValueError as failure:
        return str(failure)
    return ""


def shown(value: Any, t: Type, spec: str = "") -> str:
    """The text of a value of type `t`."""
    if isinstance(t, Struct):
        fields = (f"{name}={shown(_field(value, name), f)}" for name, f in t.fields)
        return f"{t.name}({', '.join(fields)})"
    if isinstance(t, LocalArray):
        return f"[{', '.join(shown(row_of(value, k), t.element) for k in range(t.count))}]"
    return _number(value, spec) if isinstance(t, Scalar) else shown_array(value, str(t), spec)


def shown_array(value: Any, name: str, spec: str = "") -> str:
    """The text of a vector or matrix of type `name`, with `spec` for each component."""
    return f"{name}({', '.join(_component(component, spec) for component in value)})"


def _component(value: Any, spec: str) -> str:
    if np.ndim(value) == 0:
        return _number(value, spec)
    return f"[{', '.join(_number(number, spec) for number in value)}]"


def _number(value: Any, spec: str) -> str:
    """A number as NumPy shows it, or as Python formats it if there is a `spec`."""
    if not spec:
        return str(value)
    number: Any = np.asarray(value).item()
    # A format without a precision applies to the shortest text in the number's own type.
    is_short = isinstance(number, float) and not _SAYS_DIGITS.search(spec)
    return format(float(str(value)) if is_short else number, spec)


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)[name]
    return getattr(value, name)


def row_of(value: Any, k: int) -> Any:
    """Element `k` of an array; an array of structs may be a struct of arrays."""
    if isinstance(value, Mapping):
        return {name: row_of(part, k) for name, part in cast("Mapping[str, Any]", value).items()}
    return cast("Sequence[Any]", value)[k]
