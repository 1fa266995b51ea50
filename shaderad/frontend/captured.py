"""Captured objects -> values of a kernel; instances of struct classes become constants.

Invariant: every field of a constant is a recorded read, so a kernel is recompiled if one of them
    has changed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import Span, error
from shaderad.frontend.body import BodyReader
from shaderad.frontend.conversions import constant, mismatch
from shaderad.ir.composing import of_components
from shaderad.ir.nodes import Construct, Expr
from shaderad.ir.pointers import holds_pointers
from shaderad.ir.types import Matrix, Scalar, Struct, Type, Vector
from shaderad.language.annotations import shape_of
from shaderad.language.structs import check_fields, info_of
from shaderad.language.values import (
    CapturedStruct,
    Host,
    PythonNumber,
    Sequence,
    Value,
    known_number,
    to_value,
)

_ON_HOST: tuple[type, ...] = (int, float, np.ndarray, np.generic, list, tuple)


def value_of(body: BodyReader, captured: object, name: str, span: Span) -> Value:
    """A captured object as a value of the kernel language.

    Raises:
        LanguageError: SR0212 for an array, SR0213 for any other object without a value in kernels.
    """
    if isinstance(captured, tuple):
        parts = cast("tuple[object, ...]", captured)
        return Sequence(tuple(value_of(body, p, name, span) for p in parts), span)
    info = None if isinstance(captured, type) else info_of(captured)
    if info is None:
        return to_value(captured, name, span)
    return CapturedStruct(captured, name, partial(_struct, body, captured, info.ir_type, name))


def _struct(body: BodyReader, struct: object, t: Struct, name: str, span: Span) -> Expr:
    info = info_of(struct)
    if info is None or t.holds_buffers or holds_pointers(t):
        raise error("SR0238", span, found=f"`{name}`")
    check_fields(struct, t, name)
    body.unit.register({t: info.cls, **info.nested}, span)
    parts = tuple(
        _constant(body, body.unit.captures.attribute(struct, field), part, f"{name}.{field}", span)
        for field, part in t.fields
    )
    return Construct(type=t, parts=parts, span=span)


def _constant(body: BodyReader, value: Any, t: Type, name: str, span: Span) -> Expr:
    """The value of a field as a constant of its type.

    Raises:
        LanguageError: SR0212 for an array of a device, SR0213 for a local array, SR0303 for a value
            that does not fit.
    """
    if isinstance(t, Struct):
        return _struct(body, value, t, name, span)
    if not isinstance(t, Scalar | Vector | Matrix):
        raise error("SR0213", span, name=name, found=f"a `{t}`")
    if not isinstance(value, _ON_HOST):
        raise error("SR0212", span, name=name)
    numbers = np.asarray(value)
    if numbers.shape != shape_of(t) or numbers.dtype.kind not in "biuf":
        raise mismatch(Host(value, name), t, span)
    if isinstance(t, Scalar):
        number = known_number(value, span) or PythonNumber(numbers.item(), span)
        return constant(number, t, span)
    elements = [PythonNumber(x, span) for x in numbers.ravel().tolist()]
    return of_components(t, [constant(x, t.element, span) for x in elements])
