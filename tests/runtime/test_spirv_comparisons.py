"""Unordered comparisons are rewritten word by word; everything else stays as it is."""

from __future__ import annotations

import struct

import pytest

from shaderad.runtime.spirv_comparisons import with_ordered_comparisons
from shaderad.runtime.spirv_loops import leaves_loop_from_switch
from tests.runtime.spirv_modules import HEADER, MALFORMED, UNORDERED, module, words

# OpLabel %7, OpFUnordNotEqual %3 %10 = %8 %9, OpFOrdLessThan %3 %11 = %8 %9, OpReturn.
LABEL, ORDERED, RETURN = [2 << 16 | 248, 7], [5 << 16 | 184, 3, 11, 8, 9], [1 << 16 | 253]


def test_an_unordered_comparison_becomes_the_negated_opposite() -> None:
    found = words(with_ordered_comparisons(module(LABEL, UNORDERED, ORDERED, RETURN)))
    equal, negation = [5 << 16 | 180, 3, 50, 8, 9], [4 << 16 | 168, 3, 10, 50]
    assert found == [*HEADER[:3], 51, 0, *LABEL, *equal, *negation, *ORDERED, *RETURN]


def test_a_module_without_them_is_unchanged() -> None:
    given = module(LABEL, ORDERED, RETURN)
    assert with_ordered_comparisons(given) == given


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_module_is_left_to_naga(name: str) -> None:
    given = struct.pack(f"<{len(MALFORMED[name])}I", *MALFORMED[name])
    assert with_ordered_comparisons(given) == given
    assert not leaves_loop_from_switch(given)


def test_a_module_that_ends_inside_a_word_is_left_to_naga() -> None:
    given = module(LABEL, UNORDERED)[:-1]
    assert with_ordered_comparisons(given) == given
    assert not leaves_loop_from_switch(given)


def test_a_switch_to_a_block_that_is_missing_leaves_no_loop() -> None:
    switch, merge = [3 << 16 | 251, 1, 99], [3 << 16 | 247, 98, 0]
    assert not leaves_loop_from_switch(module(LABEL, merge, switch))
    assert not leaves_loop_from_switch(module(LABEL, merge, [1 << 16 | 251]))
