"""Unordered comparisons are rewritten word by word; everything else stays as it is."""

from __future__ import annotations

import struct

from shaderad.runtime.spirv_comparisons import with_ordered_comparisons

HEADER = [0x07230203, 0x00010500, 0, 50, 0]
# OpLabel %7, OpFUnordNotEqual %3 %10 = %8 %9, OpFOrdLessThan %3 %11 = %8 %9, OpReturn.
LABEL, ORDERED, RETURN = [2 << 16 | 248, 7], [5 << 16 | 184, 3, 11, 8, 9], [1 << 16 | 253]
UNORDERED = [5 << 16 | 183, 3, 10, 8, 9]


def test_an_unordered_comparison_becomes_the_negated_opposite() -> None:
    found = words(with_ordered_comparisons(module(LABEL, UNORDERED, ORDERED, RETURN)))
    equal, negation = [5 << 16 | 180, 3, 50, 8, 9], [4 << 16 | 168, 3, 10, 50]
    assert found == [*HEADER[:3], 51, 0, *LABEL, *equal, *negation, *ORDERED, *RETURN]


def test_a_module_without_them_is_unchanged() -> None:
    given = module(LABEL, ORDERED, RETURN)
    assert with_ordered_comparisons(given) == given


def module(*instructions: list[int]) -> bytes:
    flat = [*HEADER, *(word for instruction in instructions for word in instruction)]
    return struct.pack(f"<{len(flat)}I", *flat)


def words(found: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(found) // 4}I", found))
