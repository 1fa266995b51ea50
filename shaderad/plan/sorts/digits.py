"""Sorts by digits: a pass for each byte of the keys, the lowest first.

A row is cut into tiles, each for one workgroup. A pass counts the digits of each tile. The scan of
the counts, digit by digit, says where the keys of a tile with a digit begin in the sorted row. Then
each workgroup sorts its tile in group memory, so that adjacent threads store adjacent keys. A pass
keeps the order of equal digits, so the sort is stable.

Source: Satish, Harris, Garland, *Designing Efficient Sorting Algorithms for Manycore GPUs*, IPDPS
2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, Node, Value
from shaderad.ir.sizes import Size
from shaderad.ir.types import INT, UINT
from shaderad.plan.nest.teams import Team
from shaderad.plan.sorts.keys import DIGITS, Digit


@dataclass(frozen=True, slots=True)
class DigitSharing:
    """The digits of a sort, and how threads share the keys.

    Attributes:
        digits: The digits by which passes sort, in order.
        team: All threads of a workgroup.
        item_count: The keys of each thread of a tile.
    """

    digits: tuple[Digit, ...]
    team: Team
    item_count: int

    @property
    def tile(self) -> int:
        """The keys of a tile."""
        return self.team.workgroup * self.item_count

    def tile_count(self, keys: Value) -> Size:
        """The tiles of a row."""
        return sizes.divide_up(keys.shape[-1], self.tile)


@dataclass(frozen=True, kw_only=True, eq=False)
class DigitCounts(Node):
    """The number of keys with each digit in each tile: ``[row, digit, tile]``."""

    digit: Digit
    sharing: DigitSharing

    def result_types(self) -> tuple[ArrayType, ...]:
        (keys,) = self.operands
        return (ArrayType(INT, (keys.shape[0], DIGITS, self.sharing.tile_count(keys))),)


@dataclass(frozen=True, kw_only=True, eq=False)
class SortedByDigit(Node):
    """The stable order of rows by a digit, and the words of the keys in that order.

    Operands: keys, the inclusive scan of the counts of each row, and the positions of the keys if
    they are not in their first order.
    """

    digit: Digit
    sharing: DigitSharing
    keeps_words: bool

    def result_types(self) -> tuple[ArrayType, ...]:
        shape = self.operands[0].shape
        return tuple(ArrayType(t, shape) for t in (INT, UINT)[: 1 + self.keeps_words])


def sort_by_digits(keys: Value, sharing: DigitSharing) -> Value:
    """The stable order of each row."""
    *rows, length = keys.shape
    x = b.reshape(keys, (sizes.product((*rows,)), length))
    order: Value | None = None
    for _, digits in groupby(sharing.digits, lambda digit: digit.word):
        order = _sorted_by_word(x if order is None else _taken(x, order), order, [*digits], sharing)
    assert order is not None
    return b.reshape(order, keys.shape)


def _taken(x: Value, positions: Value) -> Value:
    """The keys at positions of their rows."""
    return arrays.Gather(operands=(x, b.iota(x.shape, 0), positions), is_reported=False).result


def _sorted_by_word(
    keys: Value, order: Value | None, digits: Sequence[Digit], sharing: DigitSharing
) -> Value:
    """The order by the digits of one word, after `order`, in which the keys are."""
    for digit in digits:
        counts = DigitCounts(operands=(keys,), digit=digit, sharing=sharing).result
        row_count, *places = counts.shape
        ends = b.scan(ops.ADD, b.reshape(counts, (row_count, sizes.product((*places,)))))
        order, *words = SortedByDigit(
            operands=(keys, ends) if order is None else (keys, ends, order),
            digit=digit,
            sharing=sharing,
            keeps_words=digit is not digits[-1],
        ).results
        keys = words[0] if words else keys
    assert order is not None
    return order
