"""What one dispatch is told -> the bytes of its constant buffer.

``Lowered.words`` says what each 32-bit word is; a `Packer` reads that once, so that a call only
joins bytes. Uniforms arrive as bytes already: one word a scalar leaf in the order of
`ir/types.leaves`, half as float, double as two words, bool as 0 or 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.lower.bindings import Lowered, Role, Word, WordKind
from shaderad.runtime import buffers

_WORD = struct.Struct("<I")
_MASK = 0xFFFFFFFF


@dataclass(slots=True)
class Facts:
    """What the words of one dispatch are made of."""

    dim: tuple[int, ...]
    thread_count: int
    launch: int
    """The number of this dispatch on its device."""
    groups: tuple[int, int, int]
    shapes: Mapping[str, tuple[int, ...]]
    """Of each array of the kernel."""
    offsets: Mapping[tuple[Role, str], int]
    """Where an array starts in the buffer that is bound for it, in its storage words."""
    uniforms: Mapping[str, Any]
    """Bytes, or a device array where the uniform is bound as a buffer."""


_Value = Callable[[Facts], int]


class Packer:
    """The constant buffer of one lowered program."""

    def __init__(self, lowered: Lowered, site_base: int) -> None:
        group_size = lowered.program.workgroup[0]
        self._parts = [
            part for run in _runs(lowered.words) for part in _parts(run, site_base, group_size)
        ]

    def pack(self, facts: Facts) -> bytes:
        """All words in order."""
        return b"".join([part(facts) for part in self._parts])


def _runs(words: tuple[Word, ...]) -> list[list[Word]]:
    """Words that follow each other in one uniform are copied as one run."""
    runs: list[list[Word]] = []
    for word in words:
        last = runs[-1][-1] if runs else None
        continues = (
            last is not None
            and word.kind is last.kind is WordKind.UNIFORM
            and word.name == last.name
            and word.index == last.index + 1
        )
        if continues:
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _parts(run: list[Word], site_base: int, group_size: int) -> list[Callable[[Facts], bytes]]:
    word = run[0]
    if word.kind is WordKind.UNIFORM:
        name, start, stop = word.name, 4 * word.index, 4 * (word.index + len(run))
        return [lambda facts: facts.uniforms[name][start:stop]]
    if word.kind is WordKind.BITS:
        bits = _WORD.pack(word.index & _MASK)
        return [lambda facts: bits]
    if word.kind is WordKind.SITE_BASE:
        base = _WORD.pack(site_base)
        return [lambda facts: base]
    value = _value(word, group_size)
    return [lambda facts: _WORD.pack(value(facts) & _MASK)]


def _value(word: Word, group_size: int) -> _Value:
    name, index, role = word.name, word.index, word.role
    values: dict[WordKind, _Value] = {
        WordKind.THREAD_COUNT: lambda facts: facts.thread_count,
        WordKind.LAUNCH: lambda facts: facts.launch,
        WordKind.TILE: lambda facts: _tile(facts, group_size),
        WordKind.GROUP_COUNT_X: lambda facts: facts.groups[0],
        WordKind.DIM: lambda facts: facts.dim[index],
        WordKind.COUNT: lambda facts: prod(facts.shapes[name]),
        WordKind.SHAPE: lambda facts: facts.shapes[name][index],
    }
    if word.kind is WordKind.OFFSET:
        if role is None:
            raise ValueError(f"offset word of {name} has no role")
        key = (role, name)
        return lambda facts: facts.offsets.get(key, 0)
    return values[word.kind]


def _tile(facts: Facts, group_size: int) -> int:
    """Indices of each group: as many for all, in whole workgroups."""
    return -(-facts.thread_count // (prod(facts.groups) * group_size)) * group_size


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
    raw = storage.tobytes()
    return b"".join(_leaf_words(raw, leaf) for leaf in types.leaves(t))


def _float_word(value: float, name: str) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        raise error("SR0354", name=name, type=types.FLOAT, value=value) from None


def _leaf_words(raw: bytes, leaf: types.Leaf) -> bytes:
    if leaf.scalar.kind is types.Kind.HALF:
        found = np.frombuffer(raw, np.float16, 1, leaf.offset)
        return found.astype(np.float32).tobytes()
    return raw[leaf.offset : leaf.offset + types.byte_count(leaf.scalar)]
