"""Numbers and structs -> the words of uniforms.

There is one word per scalar leaf in the order of `ir/types.leaves`: half as float, double as two
words, bool as 0 or 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.language.annotations import HostVector
from shaderad.language.structs import info_of
from shaderad.runtime import buffers

_PACKED = {types.Kind.DOUBLE: "<d", types.Kind.INT: "<i", types.Kind.UINT: "<I"}
_INT_RANGE = {types.INT: range(-(2**31), 2**31), types.UINT: range(2**32)}


def uniform_words(value: Any, t: types.Type, name: str) -> bytes:
    """The words of uniform `name` of type `t`.

    Raises:
        ShapeError: SR0352 to SR0356, as for arrays.
    """
    words = _plain_words(value, t)
    if words is not None:
        return words
    storage, shape = buffers.to_storage(value, t, name)
    if shape:
        raise error("SR0357", name=name, type=t, shape=shape)
    return words_of(storage, t)


def words_of(storage: np.ndarray[Any, Any], t: types.Type) -> bytes:
    """The words of an element of type `t`, of which `storage` is the content in device memory."""
    raw = storage.tobytes()
    return b"".join(_leaf_words(raw, leaf) for leaf in types.leaves(t))


def _plain_words(value: Any, t: types.Type) -> bytes | None:
    """The words of a value that is what it should be; `None` for one to convert or to refuse.

    Every call with numbers comes here, so it asks NumPy for as little as it can.
    """
    kind = cast("type[object]", type(value))
    if t == types.FLOAT:
        return _packed_floats((value,)) if kind is float else None
    if isinstance(t, types.Scalar):
        is_in_range = kind is int and t in _INT_RANGE and value in _INT_RANGE[t]
        return struct.pack(_PACKED[t.kind], value) if is_in_range else None
    if isinstance(t, types.Struct):
        info = info_of(value)
        if info is None or info.cls is value or info.ir_type != t:
            return None
        parts = [_plain_words(getattr(value, name, None), part) for name, part in t.fields]
        return None if None in parts else b"".join(cast("list[bytes]", parts))
    if not isinstance(t, types.Vector | types.Matrix) or t.element != types.FLOAT:
        return None
    if kind is np.ndarray or kind is HostVector:
        return _array_words(value, buffers.element_axes(t))
    is_plain = kind is tuple and isinstance(t, types.Vector) and len(value) == t.count
    is_plain = is_plain and all(type(x) is float for x in value)
    return _packed_floats(value) if is_plain else None


def _packed_floats(values: Sequence[float]) -> bytes | None:
    try:
        return struct.pack(f"<{len(values)}f", *values)
    except OverflowError:
        return None


def _array_words(array: np.ndarray[Any, Any], axes: tuple[int, ...]) -> bytes | None:
    """The words of a vector or matrix; `None` where it has another form or does not fit."""
    if array.shape != axes or array.dtype.char not in "fd":
        return None
    if array.dtype.char == "f":
        return array.tobytes()
    values = array.ravel().tolist()
    # Infinities and values beyond the range of floats are told apart elsewhere.
    return _packed_floats(values)


def _leaf_words(raw: bytes, leaf: types.Leaf) -> bytes:
    if leaf.scalar.kind is types.Kind.HALF:
        half = np.frombuffer(raw, np.float16, 1, leaf.offset)
        return half.astype(np.float32).tobytes()
    return raw[leaf.offset : leaf.offset + types.byte_count(leaf.scalar)]


def storage_of_words(words: bytes, t: types.Type) -> bytes:
    """The bytes of an element of type `t` in device memory, of which `words` are the words."""
    content = bytearray(buffers.byte_count(t, 1))
    start = 0
    for leaf in types.leaves(t):
        size = types.byte_count(leaf.scalar)
        if leaf.scalar.kind is types.Kind.HALF:
            word = np.frombuffer(words, np.float32, 1, start).astype(np.float16).tobytes()
            start += 4
        else:
            word = words[start : start + size]
            start += size
        content[leaf.offset : leaf.offset + size] = word
    return bytes(content)
