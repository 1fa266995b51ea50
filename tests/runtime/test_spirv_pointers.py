"""Access chains are made in the blocks that use them."""

from __future__ import annotations

import struct

import pytest

from shaderad.compiler.artifact import Code
from shaderad.runtime.routes import readable_by_naga
from shaderad.runtime.spirv_pointers import with_pointers_in_place
from tests.runtime.spirv_modules import HEADER, MALFORMED, module, words

FIRST, SECOND = [2 << 16 | 248, 7], [2 << 16 | 248, 8]
# OpAccessChain %20 = %5 [%6], and %21 = %20 [%6]
CHAIN, INNER = [5 << 16 | 65, 4, 20, 5, 6], [5 << 16 | 65, 4, 21, 20, 6]


def load(result: int, pointer: int) -> list[int]:
    return [4 << 16 | 61, 3, result, pointer]


def store(pointer: int, value: int) -> list[int]:
    return [3 << 16 | 62, pointer, value]


def test_a_pointer_of_another_block_is_made_again_once() -> None:
    found = with_pointers_in_place(
        module(FIRST, CHAIN, load(30, 20), SECOND, load(31, 20), store(20, 31))
    )
    copy = [5 << 16 | 65, 4, 50, 5, 6]
    blocks = [FIRST, CHAIN, load(30, 20), SECOND, copy, load(31, 50), store(50, 31)]
    assert words(found) == [*HEADER[:3], 51, 0, *(word for one in blocks for word in one)]


def test_what_a_pointer_is_made_of_is_made_again_too() -> None:
    call = [5 << 16 | 57, 3, 40, 41, 21]
    found = with_pointers_in_place(module(FIRST, CHAIN, INNER, SECOND, call))
    chain, inner = [5 << 16 | 65, 4, 51, 5, 6], [5 << 16 | 65, 4, 50, 51, 6]
    blocks = [FIRST, CHAIN, INNER, SECOND, chain, inner, [5 << 16 | 57, 3, 40, 41, 50]]
    assert words(found) == [*HEADER[:3], 52, 0, *(word for one in blocks for word in one)]


def test_a_module_whose_pointers_stay_in_their_blocks_is_unchanged() -> None:
    given = module(FIRST, CHAIN, INNER, load(30, 21), SECOND, load(31, 5))
    assert with_pointers_in_place(given) == given


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_module_is_left_to_naga(name: str) -> None:
    given = struct.pack(f"<{len(MALFORMED[name])}I", *MALFORMED[name])
    assert readable_by_naga(Code("spirv", given)).content == given


def test_an_operand_that_is_missing_leaves_the_module_to_naga() -> None:
    given = module(FIRST, [2 << 16 | 61, 3])
    assert with_pointers_in_place(given) == given
