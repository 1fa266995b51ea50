"""NumPy arrays, lists and dicts <-> the bytes of device arrays, in the layout of `ir/types.leaves`.

Each element type has two dtypes. The *storage* dtype is that of device memory, where a bool is a
whole word; the *host* dtype is that of arrays which users see. Bits of floats pass unchanged, NaNs
included; a conversion that would lose a value is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import Error, error
from shaderad.ir import types
from shaderad.language.structs import check_fields
from shaderad.runtime import capabilities
from shaderad.runtime.foreign_arrays import dtype_of, to_numpy

# The same as NDArray[Any], without importing numpy.typing.
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
    # Python and NumPy default to 64 bits, kernels to 32; values in range are converted.
    np.dtype(np.float64): types.FLOAT,
    np.dtype(np.bool_): types.BOOL,
    np.dtype(np.uint32): types.UINT,
    np.dtype(np.uint64): types.UINT,
}
_CHECKED_RANGE = {
    types.Kind.FLOAT: float(np.finfo(np.float32).max),
    types.Kind.HALF: float(np.finfo(np.float16).max),
}
WORD_BYTES = capabilities.WORD_BYTES
ELEMENT_COUNT_LIMIT = 2**31 - 1
"""Indices are signed 32-bit ints in kernels."""


def element_axes(t: types.Type) -> tuple[int, ...]:
    """The shape of one element of `t` in NumPy: ``(3,)`` for ``float3``."""
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
    """The dtype of the base of `t` on the device, struct padding included."""
    return _dtype(base_of(t), types.word_bytes(t), on_host=False)


@lru_cache(maxsize=256)
def host_dtype(t: types.Type) -> np.dtype[Any]:
    """The dtype of the base of `t` in arrays for users."""
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
        return np.dtype(fields)
    sizes = [-(-types.byte_count(f) // align) * align for _, f in t.fields]
    *offsets, itemsize = accumulate(sizes, initial=0)
    names, formats = [n for n, _, _ in fields], [(d, a) for _, d, a in fields]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})


def check_element_count(shape: tuple[int, ...]) -> None:
    """Raises SR0362 if indices would not fit a signed int."""
    if prod(shape) > ELEMENT_COUNT_LIMIT:
        raise error("SR0362", count=prod(shape), limit=ELEMENT_COUNT_LIMIT)


def byte_count(t: types.Type, count: int) -> int:
    """The size of `count` elements, rounded up to whole 32-bit words."""
    return capabilities.padded(types.byte_count(t) * count)


def inferred_type(data: AnyArray) -> types.Type:
    """The element type of an array that is created without a `dtype`.

    Raises:
        ShapeError: SR0350, if the dtype of `data` has no counterpart.
    """
    if data.dtype in _TYPE_BY_DTYPE:
        return _TYPE_BY_DTYPE[data.dtype]
    if np.issubdtype(data.dtype, np.integer):
        return types.INT
    raise error("SR0350", found=str(data.dtype))


_UNREADABLE = ("SR0450", "SR0321")
_ONE_ARRAY = (
    "make one array of it: `sad.float3(x, y, z)` of the parts of a vector, `sad.stack((x, y))` of "
    "arrays"
)


def as_numpy(data: Any, name: str) -> AnyArray:
    """Converts `data`, an array of any library or nested lists.

    Raises:
        ShapeError: SR0351, for ragged, masked and object data.
        DerivativeError: SR0476, for a tensor that PyTorch differentiates; SR0450, and
            LanguageError: SR0321, for a tuple or list that holds an array which cannot be read.
    """
    # Reading `np.ma` imports it, and only subclasses of arrays have a mask.
    if np.ndarray in type(data).__mro__[1:] and np.ma.is_masked(data):
        raise error("SR0351", name=name, found="found a masked array with masked elements")
    try:
        array = to_numpy(data, name)
    except Error as failure:
        if failure.code not in _UNREADABLE or not isinstance(data, tuple | list):
            raise
        kind = type(cast("object", data)).__name__
        what = f"conversion to NumPy of `{name}`, a `{kind}` that holds an array,"
        raise error(failure.code, failure.span, what=what).helped(_ONE_ARRAY) from None
    except Exception as failure:
        raise error("SR0351", name=name, found=_conversion_failure(failure)) from failure
    if array.dtype.kind not in "biufV":
        raise error("SR0351", name=name, found=_described(data, array))
    return array


def _conversion_failure(failure: Exception) -> str:
    """Why NumPy could not convert data: its own reason, or the exception of an ``__array__``."""
    if isinstance(failure, ValueError) and "inhomogeneous" in str(failure):
        return "found lists of different lengths"
    return f"its conversion to NumPy raised `{type(failure).__name__}: {failure}`"


def _described(data: Any, array: AnyArray) -> str:
    """Describes data that is not numeric."""
    if array.ndim == 0 and not isinstance(data, np.ndarray | np.generic):
        return f"found a `{type(data).__name__}`"
    if array.dtype.kind != "O" or not array.size:
        return f"found `{array.dtype}` values"
    value = next((v for v in array.flat if not isinstance(v, int | float)), array.flat[0])
    if isinstance(value, int):
        return f"found {value}, which is beyond 64 bits"
    return f"found a `{type(value).__name__}` among its values"


def to_storage(data: Any, t: types.Type, name: str) -> tuple[AnyArray, tuple[int, ...]]:
    """Converts array-like `data` to contiguous device storage of elements `t`.

    Args:
        data: Array-like; for structs a structured array or a dict of array-likes.
        t: The element type.
        name: The name of the data in messages.

    Returns:
        The storage, and the shape without element axes.

    Raises:
        ShapeError: SR0352 element axes, SR0353 kind, SR0354 range, SR0355 and SR0356 fields.
    """
    base = base_of(t)
    if isinstance(base, types.Struct):
        return _structs_to_storage(data, t, base, name)
    assert isinstance(base, types.Scalar)
    array = as_numpy(data, name)
    if array.shape == (0,):  # an empty list has no element axes
        array = array.reshape((0, *element_axes(t)))
    shape = _shape_of_elements(array.shape, t, name)
    check_element_count(shape)
    if array.dtype != _HOST[base.kind]:
        _check_conversion(array, base, name, dtype_of(data, array))
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(array, dtype=_STORAGE[base.kind], order="C"), shape


def _shape_of_elements(shape: tuple[int, ...], t: types.Type, name: str) -> tuple[int, ...]:
    """`shape` without the element axes of `t`; raises SR0352 if it does not end with them."""
    axes = element_axes(t)
    split = len(shape) - len(axes)
    if split < 0 or shape[split:] != axes:
        raise error("SR0352", name=name, type=t, axes=axes, shape=shape)
    return shape[:split]


_TAKES = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}


def _check_conversion(array: AnyArray, scalar: types.Scalar, name: str, dtype_name: str) -> None:
    target = _HOST[scalar.kind]
    if not array.size:
        return
    if array.dtype.kind not in _TAKES[target.kind]:
        raise error("SR0353", name=name, type=scalar, found=dtype_name)
    if target.kind in "iu":
        limits = np.iinfo(cast("np.dtype[np.integer[Any]]", target))
        outside = (array < limits.min) | (array > limits.max)
    elif scalar.kind in _CHECKED_RANGE and array.dtype.itemsize > target.itemsize:
        # Values that round to the largest float are in range; infinities and NaNs are kept.
        with np.errstate(over="ignore", invalid="ignore"):
            outside = np.isinf(array.astype(target)) & np.isfinite(array)
    else:
        return
    if outside.any():
        raise error("SR0354", name=name, type=scalar, value=array[outside].flat[0])


def _structs_to_storage(
    data: Any, t: types.Type, struct: types.Struct, name: str
) -> tuple[AnyArray, tuple[int, ...]]:
    columns = _columns(data, struct, name)
    parts: dict[str, AnyArray] = {}
    shape: tuple[int, ...] | None = None
    for field, field_type in struct.fields:
        parts[field], field_shape = to_storage(columns[field], field_type, f"{name}.{field}")
        if shape is not None and field_shape != shape:
            raise error("SR0356", name=name, field=field, found=field_shape, shape=shape)
        shape = field_shape
    shape = shape or ()
    storage = np.zeros(shape, storage_dtype(t))
    for field, part in parts.items():
        storage[field] = part
    return storage, _shape_of_elements(shape, t, name)


def _columns(data: Any, struct: types.Struct, name: str) -> Mapping[str, Any]:
    """One array-like per field, from a dict, a structured array, a struct or a list of structs."""
    check_fields(data, struct, name)
    wanted = [field for field, _ in struct.fields]
    columns: dict[Any, Any]
    names = _structured_names(data)
    if isinstance(data, Mapping):
        columns = dict(cast("Mapping[Any, Any]", data))
    elif names is not None:
        columns = {field: data[field] for field in names}
    elif isinstance(data, list | tuple):
        rows = [_columns(row, struct, name) for row in cast("list[Any]", data)]
        columns = {field: [row[field] for row in rows] for field in wanted}
    else:
        columns = {field: getattr(data, field) for field in wanted if hasattr(data, field)}
    if set(columns) != set(wanted):
        fields = ", ".join(map(str, columns)) or f"a `{type(cast('object', data)).__name__}`"
        raise error("SR0355", name=name, type=struct, wanted=", ".join(wanted), found=fields)
    return columns


def _structured_names(data: Any) -> tuple[str, ...] | None:
    """The fields of a structured NumPy array or scalar; `None` for other data."""
    if not isinstance(data, np.ndarray | np.void):
        return None
    return cast("AnyArray", data).dtype.names


def from_storage(raw: memoryview | bytes, t: types.Type, shape: tuple[int, ...]) -> AnyArray:
    """The inverse of `to_storage`: a writable host array."""
    axes = (*shape, *element_axes(t))
    return to_host(np.frombuffer(raw, storage_dtype(t), count=prod(axes)).reshape(axes), t)


def to_host(stored: AnyArray, t: types.Type) -> AnyArray:
    """Storage dtype -> host dtype: bools become one byte."""
    target = host_dtype(t)
    if stored.dtype == target:
        return stored.copy()
    if target.names is None:
        return stored.astype(target)
    struct = base_of(t)
    assert isinstance(struct, types.Struct)
    host = np.empty(stored.shape, target)
    for field, field_type in struct.fields:
        host[field] = to_host(stored[field], field_type)
    return host
