"""Rewrites the unordered comparisons of SPIR-V, which naga misreads for NaN operands.

The optimiser writes ``!(a >= b)`` and ``a != b`` as unordered comparisons, which are true for NaN.
naga reads them as ordered comparisons, which are false. Each becomes the negation of the opposite
ordered comparison. Invariant: the result is the same for every pair of floats.
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
# FUnordEqual, NotEqual, LessThan, GreaterThan, LessThanEqual, GreaterThanEqual -> the opposite
# ordered comparison.
_OPPOSITES = {181: 182, 183: 180, 185: 190, 187: 188, 189: 186, 191: 184}


def with_ordered_comparisons(module: bytes) -> bytes:
    """`module` without unordered comparisons; a malformed module is returned unchanged."""
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
