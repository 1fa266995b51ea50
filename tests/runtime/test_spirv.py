"""SPIR-V is rewritten in one pass; everything else stays as it is."""

from __future__ import annotations

import struct

import pytest

from shaderad.runtime.spirv import readable_spirv

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


def rewritten(given: bytes) -> bytes:
    return readable_spirv(given).content


def with_immediates(given: bytes) -> bytes:
    return readable_spirv(given, with_immediates=True).content


def leaves_loop(given: bytes) -> bool:
    return readable_spirv(given).leaves_loop_from_switch


def words(found: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(found) // 4}I", found))


# OpLabel %7, OpFUnordNotEqual %3 %10 = %8 %9, OpFOrdLessThan %3 %11 = %8 %9, OpReturn.
LABEL, ORDERED, RETURN = [2 << 16 | 248, 7], [5 << 16 | 184, 3, 11, 8, 9], [1 << 16 | 253]


def test_an_unordered_comparison_becomes_the_negated_opposite() -> None:
    found = words(rewritten(module(LABEL, UNORDERED, ORDERED, RETURN)))
    equal, negation = [5 << 16 | 180, 3, 50, 8, 9], [4 << 16 | 168, 3, 10, 50]
    assert found == [*HEADER[:3], 51, 0, *LABEL, *equal, *negation, *ORDERED, *RETURN]


def test_a_module_without_them_is_unchanged() -> None:
    given = module(LABEL, ORDERED, RETURN)
    assert rewritten(given) == given


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_module_is_left_to_naga(name: str) -> None:
    given = struct.pack(f"<{len(MALFORMED[name])}I", *MALFORMED[name])
    assert rewritten(given) == given
    assert not leaves_loop(given)


def test_a_module_that_ends_inside_a_word_is_left_to_naga() -> None:
    given = module(LABEL, UNORDERED)[:-1]
    assert rewritten(given) == given
    assert not leaves_loop(given)


def test_a_switch_to_a_block_that_is_missing_leaves_no_loop() -> None:
    switch, merge = [3 << 16 | 251, 1, 99], [3 << 16 | 247, 98, 0]
    assert not leaves_loop(module(LABEL, merge, switch))
    assert not leaves_loop(module(LABEL, merge, [1 << 16 | 251]))


FIRST, SECOND = [2 << 16 | 248, 7], [2 << 16 | 248, 8]
# OpAccessChain %20 = %5 [%6], and %21 = %20 [%6]
CHAIN, INNER = [5 << 16 | 65, 4, 20, 5, 6], [5 << 16 | 65, 4, 21, 20, 6]


def load(result: int, pointer: int) -> list[int]:
    return [4 << 16 | 61, 3, result, pointer]


def store(pointer: int, value: int) -> list[int]:
    return [3 << 16 | 62, pointer, value]


def test_a_pointer_of_another_block_is_made_again_once() -> None:
    found = rewritten(module(FIRST, CHAIN, load(30, 20), SECOND, load(31, 20), store(20, 31)))
    copy = [5 << 16 | 65, 4, 50, 5, 6]
    blocks = [FIRST, CHAIN, load(30, 20), SECOND, copy, load(31, 50), store(50, 31)]
    assert words(found) == [*HEADER[:3], 51, 0, *(word for one in blocks for word in one)]


def test_what_a_pointer_is_made_of_is_made_again_too() -> None:
    call = [5 << 16 | 57, 3, 40, 41, 21]
    found = rewritten(module(FIRST, CHAIN, INNER, SECOND, call))
    chain, inner = [5 << 16 | 65, 4, 51, 5, 6], [5 << 16 | 65, 4, 50, 51, 6]
    blocks = [FIRST, CHAIN, INNER, SECOND, chain, inner, [5 << 16 | 57, 3, 40, 41, 50]]
    assert words(found) == [*HEADER[:3], 52, 0, *(word for one in blocks for word in one)]


def test_a_module_whose_pointers_stay_in_their_blocks_is_unchanged() -> None:
    given = module(FIRST, CHAIN, INNER, load(30, 21), SECOND, load(31, 5))
    assert rewritten(given) == given


def test_an_operand_that_is_missing_leaves_the_module_to_naga() -> None:
    given = module(FIRST, [2 << 16 | 61, 3])
    assert rewritten(given) == given


# OpTypeInt %5 of 32 bits with sign, OpTypeVector %6 of two of them, and OpTypeImage %8 of %9: a
# plane, or planes.
INT, PAIR = [4 << 16 | 21, 5, 32, 1], [4 << 16 | 23, 6, 5, 2]
PLANE, PLANES = ([9 << 16 | 25, 8, 9, 1, 2, layers, 0, 1, 0] for layers in (0, 1))


def test_a_module_with_layers_gets_the_type_of_two_ints() -> None:
    found = words(rewritten(module(INT, PLANES, LABEL, RETURN)))
    added = [4 << 16 | 23, 50, 5, 2]
    assert found == [*HEADER[:3], 51, 0, *INT, *added, *PLANES, *LABEL, *RETURN]


@pytest.mark.parametrize("types", [[INT, PLANE], [INT, PAIR, PLANES], [PLANES]])
def test_a_module_that_needs_no_type_of_two_ints_is_unchanged(types: list[list[int]]) -> None:
    given = module(*types, LABEL, RETURN)
    assert rewritten(given) == given


@pytest.mark.parametrize("cut", [[4 << 16 | 25, 8, 9, 1], [2 << 16 | 23, 6]])
def test_a_module_with_types_cut_short_is_left_to_naga(cut: list[int]) -> None:
    given = module(INT, cut, LABEL)
    assert rewritten(given) == given


# -- constant buffers ------------------------------------------------------------------------------

# OpDecorate %20 Binding 0, %20 DescriptorSet 0, %21 Binding 1; OpTypePointer %30 Uniform %3,
# %31 StorageBuffer %4; OpVariable %30 %20 Uniform, %31 %21 StorageBuffer.
PLACES = [[4 << 16 | 71, 20, 33, 0], [4 << 16 | 71, 20, 34, 0]]
OTHER_PLACE = [4 << 16 | 71, 21, 33, 1]
OTHER = [[4 << 16 | 32, 31, 12, 4], [4 << 16 | 59, 31, 21, 12]]


def test_a_constant_buffer_becomes_push_constants_without_a_binding() -> None:
    constants = [[4 << 16 | 32, 30, 2, 3], [4 << 16 | 59, 30, 20, 2]]
    pushed = [[4 << 16 | 32, 30, 9, 3], [4 << 16 | 59, 30, 20, 9]]
    given = module(*PLACES, OTHER_PLACE, *constants, *OTHER, RETURN)
    assert with_immediates(given) == module(OTHER_PLACE, *pushed, *OTHER, RETURN)


def test_a_module_without_a_constant_buffer_is_unchanged() -> None:
    given = module(OTHER_PLACE, *OTHER, RETURN)
    assert with_immediates(given) == given


@pytest.mark.parametrize("name", ["no words", "an instruction of no words"])
def test_a_malformed_module_with_constants_is_left_to_naga(name: str) -> None:
    given = struct.pack(f"<{len(MALFORMED[name])}I", *MALFORMED[name])
    assert with_immediates(given) == given


def test_one_pass_makes_every_change() -> None:
    constants = [[4 << 16 | 32, 30, 2, 3], [4 << 16 | 59, 30, 20, 2]]
    pushed = [[4 << 16 | 32, 30, 9, 3], [4 << 16 | 59, 30, 20, 9]]
    given = module(*PLACES, INT, PLANES, *constants, FIRST, CHAIN, UNORDERED, SECOND, load(31, 20))
    pair = [4 << 16 | 23, 52, 5, 2]
    compared = [[5 << 16 | 180, 3, 50, 8, 9], [4 << 16 | 168, 3, 10, 50]]
    copied = [[5 << 16 | 65, 4, 51, 5, 6], load(31, 51)]
    wanted = module(INT, pair, PLANES, *pushed, FIRST, CHAIN, *compared, SECOND, *copied)
    found = words(with_immediates(given))
    assert (found[3], found[5:]) == (53, words(wanted)[5:])
