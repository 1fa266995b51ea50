"""Keys -> words whose unsigned order is that of the sort, and the bytes by which it has to sort.

-0 becomes +0, so it keeps its place among zeros. Every NaN becomes the last word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import DOUBLE, FLOAT, HALF, INT, UINT, Type, Vector
from shaderad.plan.sorts.order import both, either

DIGIT_BITS = 8
DIGITS = 1 << DIGIT_BITS
_WORD_DIGITS = 4
_SIGN, _LAST = 0x80000000, 0xFFFFFFFF
_INFINITY, _DOUBLE_INFINITY = 0x7F800000, 0x7FF00000


@dataclass(frozen=True, slots=True)
class Digit:
    """A byte of keys.

    Attributes:
        word: The number of the word, the lowest first.
        place: The number of the byte in its word, the lowest first.
    """

    word: int
    place: int


def digits_of(keys: Type, bits: int | None) -> Sequence[Digit]:
    """The digits of keys, the lowest first.

    Args:
        keys: Their type.
        bits: The lowest bits of ints, if all others are known to be 0.
    """
    if bits is not None:
        return [Digit(0, k) for k in range(max(1, -(-bits // DIGIT_BITS)))]
    # The lowest bits of a half are 0 in the float of the same value.
    first, words = int(keys == HALF), 2 if keys == DOUBLE else 1
    return [Digit(word, k) for word in range(words) for k in range(first, _WORD_DIGITS)]


def ordered_word(key: Expr, word: int) -> Expr:
    """The word of a key with this number, the lowest first."""
    if key.type == UINT:
        return key
    if key.type == INT:
        return c.apply(ops.BIT_XOR, _bits(key), _word(_SIGN))
    if key.type == DOUBLE:
        return _word_of_double(key, word)
    bits = _bits(c.convert(FLOAT, key))
    is_nan = c.apply(ops.GT, _without_sign(bits), _word(_INFINITY))
    is_zero = c.apply(ops.EQ, bits, _word(_SIGN))
    ordered = c.apply(ops.BIT_XOR, bits, _flipped(bits, _SIGN))
    return c.select(is_nan, _word(_LAST), c.select(is_zero, _word(_SIGN), ordered))


def _word_of_double(key: Expr, word: int) -> Expr:
    bits = nodes.Bitcast(type=Vector(UINT, 2), value=key)
    low, high = c.component(bits, 0), c.component(bits, 1)
    rest, has_low = _without_sign(high), c.apply(ops.NE, low, _word(0))
    infinity = _word(_DOUBLE_INFINITY)
    is_infinite = c.apply(ops.EQ, rest, infinity)
    is_nan = either(c.apply(ops.GT, rest, infinity), both(is_infinite, has_low))
    is_zero = c.apply(ops.EQ, c.apply(ops.BIT_OR, rest, low), _word(0))
    part, mask, zero = (high, _SIGN, _SIGN) if word else (low, 0, 0)
    ordered = c.apply(ops.BIT_XOR, part, _flipped(high, mask))
    return c.select(is_nan, _word(_LAST), c.select(is_zero, _word(zero), ordered))


def _flipped(signed: Expr, mask: int) -> Expr:
    """The bits of a word to flip: all if the number is negative, else those of `mask`."""
    is_negative = c.apply(ops.GE, signed, _word(_SIGN))
    return c.select(is_negative, _word(_LAST), _word(mask))


def _without_sign(bits: Expr) -> Expr:
    return c.apply(ops.BIT_AND, bits, _word(_SIGN - 1))


def _bits(value: Expr) -> Expr:
    return nodes.Bitcast(type=UINT, value=value)


def _word(value: int) -> Expr:
    return c.number(UINT, value)


def digit_of(word: Expr, shift: Expr) -> Expr:
    """The digit of an ordered word that begins at a bit, as an int."""
    shifted = c.apply(ops.SHIFT_RIGHT, word, nodes.Cast(type=UINT, value=shift))
    byte = c.apply(ops.BIT_AND, shifted, _word(DIGITS - 1))
    return nodes.Cast(type=INT, value=byte)
