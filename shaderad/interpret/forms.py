"""NumPy arrays, numbers, dicts and structured arrays <-> values of the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.interpret.cells import Cell, Value, axes_of, dtype_of, fields_of
from shaderad.ir import types
from shaderad.ir.types import Type

Shape = tuple[int, ...]


def shape_of(data: Any, t: Type, rank: int) -> Shape:
    """The first `rank` extents of an array-like of elements `t`."""
    while isinstance(t, types.LocalArray):
        t = t.element
    fields = fields_of(t)
    if fields is None:
        return np.shape(data)[:rank]
    name, inner = next((n, f) for n, f in fields if _field(data, n) is not None)
    return shape_of(_field(data, name), inner, rank)


def from_host(data: Any, t: Type, shape: Shape, precision: Any) -> Value:
    """The value of an array-like of `shape`, one row per element.

    Structs may be dicts, structured arrays, objects with the fields, or lists of these. A field
    that is missing or `None` is 0.
    """
    return _rows(data, t, prod(shape), (), precision)


def _rows(data: Any, t: Type, count: int, inner: Shape, precision: Any) -> Value:
    """A value with `count` rows; `inner` are the extents of the local arrays around it."""
    if isinstance(t, types.LocalArray):
        return _rows(data, t.element, count, (*inner, t.count), precision)
    fields = fields_of(t)
    if fields is not None:
        return {n: _rows(_field(data, n), f, count, inner, precision) for n, f in fields}
    scalar = types.scalar_of(t)
    assert scalar is not None
    shape = (count, *inner, *axes_of(t))
    dtype = dtype_of(scalar, precision)
    if data is None:
        return Cell(np.zeros(shape, dtype))
    return Cell(np.asarray(data).astype(dtype).reshape(shape))


def to_host(value: Value, shape: Shape) -> Any:
    """An array of `shape`; for structs a dict of arrays."""
    if isinstance(value, Cell):
        return value.data.reshape(shape + value.data.shape[1:])
    return {name: to_host(part, shape) for name, part in value.items()}


def row_of(value: Any, k: int) -> Any:
    """Element `k` of an array, or of a dict of arrays."""
    if isinstance(value, dict):
        return {name: row_of(part, k) for name, part in cast("dict[str, Any]", value).items()}
    return value[k]


def _field(data: Any, name: str) -> Any:
    """The field `name` of every element; `None` if an element lacks it."""
    if data is None or isinstance(data, Mapping):
        return None if data is None else cast("Mapping[str, Any]", data).get(name)
    if isinstance(data, np.ndarray | np.void):
        return cast("Any", data)[name]
    if isinstance(data, list | tuple):
        columns = [_field(row, name) for row in cast("list[Any]", data)]
        return None if any(c is None for c in columns) else columns
    return getattr(data, name, None)
