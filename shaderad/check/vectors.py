"""The floats inside NumPy data -> one vector, and back.

Integers and booleans stay as they are; structs are read field by field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def has_floats(data: NDArray[Any]) -> bool:
    """True if `data` holds a float, also in a field of a struct."""
    if data.dtype.names is None:
        return data.dtype.kind == "f"
    return any(has_floats(data[name]) for name in data.dtype.names)


def floats_of(data: NDArray[Any]) -> Vector:
    """Every float in `data`, structs field by field."""
    if data.dtype.names is not None:
        parts = [floats_of(data[name]) for name in data.dtype.names]
        return np.concatenate(parts)
    return data.astype(np.float64).ravel() if data.dtype.kind == "f" else np.zeros(0)


def filled(data: NDArray[Any], values: Vector) -> NDArray[Any]:
    """A copy of `data` whose floats are `values`, rounded to what a device holds."""
    copy = data.copy()
    _fill(copy, values)
    return copy


def _fill(data: NDArray[Any], values: Vector) -> int:
    """Writes `values` into `data`; returns the number of values used."""
    if data.dtype.names is not None:
        start = 0
        for name in data.dtype.names:
            start += _fill(data[name], values[start:])
        return start
    if data.dtype.kind != "f":
        return 0
    narrow = np.float16 if data.dtype == np.float16 else np.float32
    data[...] = values[: data.size].reshape(data.shape).astype(narrow)
    return data.size


def as_float32(values: Vector) -> Vector:
    """`values` rounded to float32."""
    return values.astype(np.float32).astype(np.float64)


def as_half(values: Vector) -> Vector:
    """`values` rounded to 16 bits; values beyond the range of half stay as they are."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float16).astype(np.float64)
    return np.where(np.isfinite(narrow), narrow, values)
