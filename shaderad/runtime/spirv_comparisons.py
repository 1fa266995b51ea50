"""SPIR-V whose comparisons naga reads as they are meant, where one side is NaN.

The optimiser writes ``!(a >= b)`` and ``a != b`` as unordered comparisons, which hold for NaN.
naga knows one kind only and makes them ordered ones, which do not. Here each becomes the negation
of the opposite ordered comparison. Invariant: on every pair of floats the module does the same.
"""

from __future__ import annotations

import struct

_HEADER_WORDS, _BOUND = 5, 3
_LOGICAL_NOT = 168
# FUnordEqual, NotEqual, LessThan, GreaterThan, LessThanEqual, GreaterThanEqual -> the ordered
# comparison that holds exactly where it does not.
_OPPOSITES = {181: 182, 183: 180, 185: 190, 187: 188, 189: 186, 191: 184}


def with_ordered_comparisons(module: bytes) -> bytes:
    """The module without unordered comparisons."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    bound = words[_BOUND]
    out = list(words[:_HEADER_WORDS])
    at = _HEADER_WORDS
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        opposite = _OPPOSITES.get(opcode)
        if opposite is None:
            out += words[at : at + count]
        else:
            result_type, result, left, right = words[at + 1 : at + count]
            out += [count << 16 | opposite, result_type, bound, left, right]
            out += [4 << 16 | _LOGICAL_NOT, result_type, result, bound]
            bound += 1
        at += count
    out[_BOUND] = bound
    return struct.pack(f"<{len(out)}I", *out)
