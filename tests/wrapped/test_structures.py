"""What tells the structures of arguments apart."""

from __future__ import annotations

from enum import Enum, IntEnum
from itertools import combinations

from shaderad.wrapped.structures import Forms, Leaves, structure_of, tree_of


class Count(IntEnum):
    ONE = 1


class Side(IntEnum):
    LEFT = 1


class Fraction(float, Enum):
    WHOLE = 1.0


CONSTANTS = (True, Count.ONE, Side.LEFT, Fraction.WHOLE)


def test_constants_that_are_equal_but_of_different_types_have_forms_of_their_own() -> None:
    assert all(a == b for a, b in combinations(CONSTANTS, 2))
    forms, leaves = Forms(), Leaves()
    structures = [structure_of([one], leaves.number, "x") for one in CONSTANTS]
    numbers = [forms.number(one) for one in structures]
    assert numbers == [0, 1, 2, 3]
    none = iter(())
    for constant, number in zip(CONSTANTS, numbers, strict=True):
        (found,) = tree_of(forms[number], none, none, none)
        assert found is constant
