"""Numbers and structs -> the words of uniforms.

There is one word per scalar leaf in the order of `ir/types.leaves`: half as float, double as two
words, bool as 0 or 1.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.runtime import buffers

_PACKED = {types.Kind.DOUBLE: "<d", types.Kind.INT: "<i", types.Kind.UINT: "<I"}
_INT_RANGE = {types.INT: range(-(2**31), 2**31), types.UINT: range(2**32)}


def uniform_words(value: Any, t: types.Type, name: str) -> bytes:
    """The words of uniform `name` of type `t`.

    Raises:
        ShapeError: SR0352 to SR0356, as for arrays.
    """
    if t == types.FLOAT and type(value) is float:
        return _float_word(value, name)
    if type(value) is int and isinstance(t, types.Scalar) and t in _INT_RANGE:
        if value not in _INT_RANGE[t]:
            raise error("SR0354", name=name, type=t, value=value)
        return struct.pack(_PACKED[t.kind], value)
    storage, shape = buffers.to_storage(value, t, name)
    if shape:
        raise error("SR0357", name=name, type=t, shape=shape)
    return words_of(storage, t)


def words_of(storage: np.ndarray[Any, Any], t: types.Type) -> bytes:
    """The words of an element of type `t`, of which `storage` is the content in device memory."""
    raw = storage.tobytes()
    return b"".join(_leaf_words(raw, leaf) for leaf in types.leaves(t))


def _float_word(value: float, name: str) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        raise error("SR0354", name=name, type=types.FLOAT, value=value) from None


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
