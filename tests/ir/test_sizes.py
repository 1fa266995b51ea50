"""Sizes as expressions: what they come to, and other names in place of theirs."""

from __future__ import annotations

import pytest

from shaderad.ir import sizes
from shaderad.ir.sizes import Size

N, M = sizes.symbol("n"), sizes.symbol("m")


def cases() -> list[tuple[Size, int]]:
    square = sizes.multiply(N, N)
    return [
        (sizes.minimum(N, M), 3),
        (sizes.maximum(sizes.add(N, 1), M), 8),
        (sizes.floor_divide(sizes.subtract(square, 1), M), 16),
        (sizes.square_root(sizes.multiply(N, M)), 4),
        (sizes.multiply(sizes.minimum(N, 2), sizes.divide_up(N, M)), 6),
    ]


@pytest.mark.parametrize("k", range(5))
def test_a_size_with_other_names_comes_to_the_same(k: int) -> None:
    size, expected = cases()[k]
    assert sizes.evaluate(size, {"n": 7, "m": 3}) == expected
    renamed = sizes.substituted(size, {"n": sizes.symbol("a"), "m": sizes.symbol("b")})
    assert sizes.symbols(renamed) == {"a" if s == "n" else "b" for s in sizes.symbols(size)}
    assert sizes.evaluate(renamed, {"a": 7, "b": 3}) == expected
    assert sizes.substituted(size, {"n": 7, "m": 3}) == expected


def test_the_larger_and_smaller_of_sizes_that_differ_by_a_number_is_one_of_them() -> None:
    assert sizes.minimum(N, sizes.add(N, 2)) == N
    assert sizes.maximum(N, sizes.add(N, 2)) == sizes.add(N, 2)
    assert sizes.minimum(4, 9) == 4
