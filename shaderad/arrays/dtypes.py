"""Element types as users write them (``float``, ``sad.float3``, structs) <-> IR types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.language.annotations import TYPES, Subscripted, resolve, value_type
from shaderad.runtime import buffers

_PYTHON = {types.FLOAT: float, types.INT: int, types.BOOL: bool}
_BY_NUMPY = {
    np.dtype(np.float16): types.HALF,
    np.dtype(np.float32): types.FLOAT,
    # An explicit float64 means 64 bits; `sad.array` without a dtype converts to 32.
    np.dtype(np.float64): types.DOUBLE,
    np.dtype(np.int32): types.INT,
    np.dtype(np.uint32): types.UINT,
    np.dtype(np.bool_): types.BOOL,
}


@dataclass(frozen=True, slots=True)
class ArrayAnnotation:
    """``sad.Array[float3, "h", "w"]``: an element type, and a name or number for each axis."""

    element: Any
    extents: tuple[Any, ...] | None
    """`None` for any shape."""


def element_type(dtype: Any) -> types.Type:
    """The IR type that `dtype` stands for.

    Raises:
        ShapeError: SR0358 if it stands for none.
    """
    if isinstance(dtype, types.Type):
        return dtype
    element = value_type(dtype)
    if element is None and isinstance(dtype, Subscripted):
        element = resolve(dtype, {}, None)
    if element is None:
        element = _of_numpy(dtype)
    is_buffer = isinstance(element, types.BufferType) or (
        isinstance(element, types.Struct) and element.holds_buffers
    )
    if element is None or is_buffer:
        raise error("SR0358", found=dtype)
    return element


def _of_numpy(dtype: Any) -> types.Type | None:
    try:
        return _BY_NUMPY.get(np.dtype(dtype))
    except (TypeError, ValueError):
        return None


def shown_dtype(t: types.Type) -> Any:
    """The value of ``array.dtype``: a Python type, a `sad.*` type, or a structured NumPy dtype."""
    if isinstance(t, types.Scalar) and t in _PYTHON:
        return _PYTHON[t]
    return TYPES.get(str(t)) or buffers.host_dtype(t)
