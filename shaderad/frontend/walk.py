"""Visits the parts of IR expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import UnionType
from typing import cast

from shaderad.ir.nodes import Expr


def parts(value: Expr) -> Iterator[Expr]:
    """The value and every expression in it."""
    yield value
    for field in fields(value):
        inner: object = getattr(value, field.name)
        items = cast("tuple[object, ...]", inner) if isinstance(inner, tuple) else (inner,)
        for item in items:
            if isinstance(item, Expr):
                yield from parts(item)


def contains(value: Expr, kinds: type[Expr] | UnionType) -> bool:
    """Whether any part of the value is of one of the classes."""
    return any(isinstance(part, kinds) for part in parts(value))
