"""NumPy arrays, lists and dicts <-> the bytes of device arrays, in the layout of `ir/types.leaves`.

Two dtypes belong to each element type. The *storage* dtype is what lies on the device, where a
bool is a whole word; the *host* dtype is what users see. Bits of floats pass unchanged, NaNs
included; conversions are refused where a value would not survive them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import Error, error
from shaderad.frontend.structs import check_fields
from shaderad.ir import types

# As NDArray[Any], whose module every process would read for it.
AnyArray = np.ndarray[tuple[Any, ...], np.dtype[Any]]

_STORAGE = {
    types.Kind.FLOAT: np.dtype(np.float32),
    types.Kind.HALF: np.dtype(np.float16),
    types.Kind.DOUBLE: np.dtype(np.float64),
    types.Kind.INT: np.dtype(np.int32),
    types.Kind.UINT: np.dtype(np.uint32),
    types.Kind.BOOL: np.dtype(np.uint32),
}
_HOST = {**_STORAGE, types.Kind.BOOL: np.dtype(np.bool_)}
_TYPE_BY_DTYPE = {
    np.dtype(np.float16): types.HALF,
    np.dtype(np.float32): types.FLOAT,
    # Python's float and NumPy's default are 64 bits wide, kernels' are not: converted if in range.
    np.dtype(np.float64): types.FLOAT,
    np.dtype(np.bool_): types.BOOL,
    np.dtype(np.uint32): types.UINT,
    np.dtype(np.uint64): types.UINT,
}
_CHECKED_RANGE = {
    types.Kind.FLOAT: float(np.finfo(np.float32).max),
    types.Kind.HALF: float(np.finfo(np.float16).max),
}
WORD_BYTES = 4
ELEMENT_COUNT_LIMIT = 2**31 - 1
"""Indices are signed 32-bit ints in kernels."""


def element_axes(t: types.Type) -> tuple[int, ...]:
    """The trailing NumPy axes that one element of `t` spans: ``(3,)`` for ``float3``."""
    if isinstance(t, types.Vector):
        return (t.count,)
    if isinstance(t, types.Matrix):
        return (t.row_count, t.column_count)
    if isinstance(t, types.LocalArray):
        return (t.count, *element_axes(t.element))
    if isinstance(t, types.Pointer):
        return (2,)  # first element and count
    return ()


def base_of(t: types.Type) -> types.Type:
    """The scalar or struct that `t` repeats along its element axes."""
    if isinstance(t, types.Vector | types.Matrix):
        return t.element
    if isinstance(t, types.Pointer):
        return types.UINT
    return base_of(t.element) if isinstance(t, types.LocalArray) else t


@lru_cache(maxsize=256)
def storage_dtype(t: types.Type) -> np.dtype[Any]:
    """How the base of `t` lies on the device, struct padding included."""
    return _dtype(base_of(t), types.word_bytes(t), on_host=False)


@lru_cache(maxsize=256)
def host_dtype(t: types.Type) -> np.dtype[Any]:
    """How the base of `t` is shown to users."""
    return _dtype(base_of(t), types.word_bytes(t), on_host=True)


def _dtype(t: types.Type, align: int, *, on_host: bool) -> np.dtype[Any]:
    if isinstance(t, types.Scalar):
        return (_HOST if on_host else _STORAGE)[t.kind]
    if not isinstance(t, types.Struct):
        raise TypeError(f"{t} has no layout")
    fields: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [
        (name, _dtype(base_of(f), align, on_host=on_host), element_axes(f)) for name, f in t.fields
    ]
    if on_host and types.Kind.BOOL in {s.kind for s in types.scalars(t)}:
        return np.dtype([(n, d, a) for n, d, a in fields])
    offsets: list[int] = []
    offset = 0
    for _, f in t.fields:
        offsets.append(offset)
        offset += -(-types.byte_count(f) // align) * align
    names, formats = [n for n, _, _ in fields], [(d, a) for _, d, a in fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": offset})


def check_element_count(shape: tuple[int, ...]) -> None:
    """Raises SR0362 where indices would not fit a signed int."""
    if prod(shape) > ELEMENT_COUNT_LIMIT:
        raise error("SR0362", count=prod(shape), limit=ELEMENT_COUNT_LIMIT)


def byte_count(t: types.Type, count: int) -> int:
    """Bytes of `count` elements, up to whole 32-bit words: devices copy nothing smaller."""
    return -(-types.byte_count(t) * count // WORD_BYTES) * WORD_BYTES


def inferred_type(data: AnyArray) -> types.Type:
    """The element type that an array is given where nobody asks for one."""
    if data.dtype in _TYPE_BY_DTYPE:
        return _TYPE_BY_DTYPE[data.dtype]
    if np.issubdtype(data.dtype, np.integer):
        return types.INT
    raise error("SR0350", found=str(data.dtype))


def as_numpy(data: Any, name: str) -> AnyArray:
    """A NumPy array of whatever `np.asarray` takes; ragged, masked and object data is refused."""
    if np.ma.is_masked(data):
        raise error("SR0351", name=name, found="found a masked array with masked elements")
    try:
        found = np.asarray(data)
    except Error:
        raise
    except Exception as failure:
        raise error("SR0351", name=name, found=_why_not(failure)) from failure
    if found.dtype.kind not in "biufV":
        raise error("SR0351", name=name, found=_described(data, found))
    return found


def _why_not(failure: Exception) -> str:
    """Why NumPy made no array of something: its own reason, or what an ``__array__`` raised."""
    if isinstance(failure, ValueError) and "inhomogeneous" in str(failure):
        return "found lists of different lengths"
    return f"its conversion to NumPy raised `{type(failure).__name__}: {failure}`"


def _described(data: Any, found: AnyArray) -> str:
    """What stands where numbers were wanted."""
    if found.ndim == 0 and not isinstance(data, np.ndarray | np.generic):
        return f"found a `{type(data).__name__}`"
    if found.dtype.kind != "O" or not found.size:
        return f"found `{found.dtype}` values"
    one = next((v for v in found.flat if not isinstance(v, int | float)), found.flat[0])
    if isinstance(one, int):
        return f"found {one}, which is beyond 64 bits"
    return f"found a `{type(one).__name__}` among its values"


def to_storage(data: Any, t: types.Type, name: str) -> tuple[AnyArray, tuple[int, ...]]:
    """Converts array-like `data` to contiguous device storage of elements `t`.

    Args:
        data: Array-like; for structs a structured array or a dict of array-likes.
        t: The element type asked for.
        name: What messages call it.

    Returns:
        The storage, and the shape without element axes.

    Raises:
        ShapeError: SR0352 element axes, SR0353 kind, SR0354 range, SR0355 and SR0356 fields.
    """
    if isinstance(base_of(t), types.Struct):
        return _structs_to_storage(data, t, name)
    found = as_numpy(data, name)
    axes = element_axes(t)
    if found.shape == (0,):  # an empty list cannot say its element axes
        found = found.reshape((0, *axes))
    split = found.ndim - len(axes)
    if split < 0 or found.shape[split:] != axes:
        raise error("SR0352", name=name, type=t, axes=axes, shape=found.shape)
    check_element_count(found.shape[:split])
    return _scalars_to_storage(found, t, name), found.shape[:split]


def _scalars_to_storage(found: AnyArray, t: types.Type, name: str) -> AnyArray:
    scalar = base_of(t)
    if not isinstance(scalar, types.Scalar):
        raise TypeError(f"{scalar} is no scalar")
    target = _STORAGE[scalar.kind]
    if found.dtype != _HOST[scalar.kind]:
        _check_conversion(found, scalar, name)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(found, dtype=target, order="C")


_TAKES = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


def _check_conversion(found: AnyArray, scalar: types.Scalar, name: str) -> None:
    target = _HOST[scalar.kind]
    if found.dtype.kind not in _TAKES[target.kind] and found.size:
        raise error("SR0353", name=name, type=scalar, found=found.dtype)
    if not found.size:
        return
    if target.kind in "iu":
        limits = np.iinfo(cast("np.dtype[np.integer[Any]]", target))
        outside = (found < limits.min) | (found > limits.max)
    elif scalar.kind in _CHECKED_RANGE and found.dtype.itemsize > target.itemsize:
        # What rounds to the largest float is in range; infinities and NaNs are themselves.
        with np.errstate(over="ignore", invalid="ignore"):
            outside = np.isinf(found.astype(target)) & np.isfinite(found)
    else:
        return
    if outside.any():
        raise error("SR0354", name=name, type=scalar, value=found[outside].flat[0])


def _structs_to_storage(data: Any, t: types.Type, name: str) -> tuple[AnyArray, tuple[int, ...]]:
    struct = base_of(t)
    if not isinstance(struct, types.Struct):
        raise TypeError(f"{struct} is no struct")
    columns = _columns(data, struct, name)
    parts: dict[str, AnyArray] = {}
    shape: tuple[int, ...] | None = None
    for field, field_type in struct.fields:
        parts[field], found = to_storage(columns[field], field_type, f"{name}.{field}")
        if shape is not None and found != shape:
            raise error("SR0356", name=name, field=field, found=found, shape=shape)
        shape = found
    shape = shape or ()
    storage = np.zeros(shape, storage_dtype(t))
    for field, part in parts.items():
        storage[field] = part
    axes = element_axes(t)
    split = len(shape) - len(axes)
    if split < 0 or shape[split:] != axes:
        raise error("SR0352", name=name, type=t, axes=axes, shape=shape)
    return storage, shape[:split]


def _columns(data: Any, struct: types.Struct, name: str) -> Mapping[str, Any]:
    """One array-like a field, out of a dict, a structured array, a struct or a list of structs."""
    check_fields(data, struct, name)
    wanted = [field for field, _ in struct.fields]
    found: dict[Any, Any]
    names = _structured_names(data)
    if isinstance(data, Mapping):
        found = dict(cast("Mapping[Any, Any]", data))
    elif names is not None:
        found = {field: data[field] for field in names}
    elif isinstance(data, list | tuple):
        rows = [_columns(row, struct, name) for row in cast("list[Any]", data)]
        found = {field: [row[field] for row in rows] for field in wanted}
    else:
        found = {field: getattr(data, field) for field in wanted if hasattr(data, field)}
    if set(found) != set(wanted):
        given = ", ".join(map(str, found)) or f"a `{type(cast('object', data)).__name__}`"
        raise error("SR0355", name=name, type=struct, wanted=", ".join(wanted), found=given)
    return found


def _structured_names(data: Any) -> tuple[str, ...] | None:
    """The fields of a structured array or scalar of NumPy."""
    if not isinstance(data, np.ndarray | np.void):
        return None
    return cast("AnyArray", data).dtype.names


def from_storage(raw: memoryview | bytes, t: types.Type, shape: tuple[int, ...]) -> AnyArray:
    """The host array of what `to_storage` wrote; a copy that may be written to."""
    stored = np.frombuffer(raw, storage_dtype(t), count=prod((*shape, *element_axes(t))))
    found = stored.reshape((*shape, *element_axes(t)))
    return to_host(found, t)


def to_host(stored: AnyArray, t: types.Type) -> AnyArray:
    """Storage dtype -> host dtype: bools become one byte."""
    target = host_dtype(t)
    if stored.dtype == target:
        return stored.copy()
    if target.names is None:
        return stored.astype(target)
    struct = base_of(t)
    if not isinstance(struct, types.Struct):
        raise TypeError(f"{struct} is no struct")
    found = np.empty(stored.shape, target)
    for field, field_type in struct.fields:
        found[field] = to_host(stored[field], field_type)
    return found
