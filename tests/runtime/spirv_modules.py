"""Modules of SPIR-V, word by word."""

from __future__ import annotations

import struct

HEADER = [0x07230203, 0x00010500, 0, 50, 0]
# OpFUnordNotEqual %3 %10 = %8 %9
UNORDERED = [5 << 16 | 183, 3, 10, 8, 9]

MALFORMED = {
    "no words": [0],
    "an instruction of no words": [*HEADER, 0, *UNORDERED],
    "more words than there are": [*HEADER, *UNORDERED[:3]],
    "a comparison without operands": [*HEADER, 1 << 16 | 183],
    "a comparison of five": [*HEADER, 6 << 16 | 183, 3, 10, 8, 9, 9],
    "no number is left": [*HEADER[:3], 0xFFFFFFFF, 0, *UNORDERED],
}


def module(*instructions: list[int]) -> bytes:
    flat = [*HEADER, *(word for instruction in instructions for word in instruction)]
    return struct.pack(f"<{len(flat)}I", *flat)


def words(found: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(found) // 4}I", found))
