"""SPIR-V whose comparisons naga reads as they are meant, where one side is NaN.

The optimiser writes ``!(a >= b)`` and ``a != b`` as unordered comparisons, which hold for NaN.
naga knows one kind only and makes them ordered ones, which do not. Here each becomes the negation
of the opposite ordered comparison. Invariant: on every pair of floats the module does the same.
"""

from __future__ import annotations

import struct

from shaderad.runtime.spirv import (
    BOUND,
    HEADER_WORDS,
    LAST_ID,
    MalformedSpirvError,
    instructions,
    words_of,
)

_LOGICAL_NOT = 168
# FUnordEqual, NotEqual, LessThan, GreaterThan, LessThanEqual, GreaterThanEqual -> the ordered
# comparison that holds exactly where it does not.
_OPPOSITES = {181: 182, 183: 180, 185: 190, 187: 188, 189: 186, 191: 184}


def with_ordered_comparisons(module: bytes) -> bytes:
    """The module without unordered comparisons; one that is malformed stays as it is."""
    try:
        return _rewritten(words_of(module))
    except MalformedSpirvError:
        return module


def _rewritten(words: tuple[int, ...]) -> bytes:
    bound = words[BOUND]
    out = list(words[:HEADER_WORDS])
    for opcode, operands in instructions(words):
        opposite = _OPPOSITES.get(opcode)
        if opposite is None:
            out += [(len(operands) + 1) << 16 | opcode, *operands]
            continue
        if len(operands) != 4 or bound == LAST_ID:
            raise MalformedSpirvError(f"a comparison of {len(operands)} operands")
        result_type, result, left, right = operands
        out += [5 << 16 | opposite, result_type, bound, left, right]
        out += [4 << 16 | _LOGICAL_NOT, result_type, result, bound]
        bound += 1
    out[BOUND] = bound
    return struct.pack(f"<{len(out)}I", *out)
