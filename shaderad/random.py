"""Random numbers from keys: the same key gives the same words, on every device and runtime.

A key is one ``uint2``. A block cipher, Threefry2x32 with 20 rounds, turns the position of each
element into its random words. Draws share no state, so they may be made in any order, in graphs,
loops and mapped functions. Use a key for one draw; `split` and `fold_in` make further, independent
keys from it. Keys and words are those of `jax.random`.

Source: Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from shaderad.arrays.arrays import Array
from shaderad.arrays.dtypes import element_type
from shaderad.arrays.traced_sizes import shape_of, size_or_none
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error, text_of
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend import conversions
from shaderad.functions.elements import where
from shaderad.functions.indexing import gather
from shaderad.functions.layout import moved_axis
from shaderad.functions.sorting import argsort
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops, sizes
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.sizes import Shape
from shaderad.ir.types import DOUBLE, FLOAT, FLOAT_KINDS, HALF, INT, UINT, Scalar, Vector
from shaderad.language.values import Value as Operand
from shaderad.trace.elements import as_array, cast_to, conform, primitive, selected
from shaderad.trace.primitives import (
    as_number,
    axis_of,
    elementwise,
    known_shape,
    made,
    repeats_to,
    spread,
    traced,
)
from shaderad.trace.traced import TracedArray

__all__ = ["fold_in", "key", "normal", "permutation", "split", "uniform"]

_PAIR = Vector(UINT, 2)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
"""The third word of a key is the exclusive or of this and the two others."""


# -- keys -------------------------------------------------------------------------------------


@api_boundary
def key(seed: Any) -> Array:
    """The key of a seed.

    Args:
        seed: A whole number from 0 to below 2**64, or an array of ints, of which each makes a key.

    Returns:
        A ``uint2``, which carries no derivative.

    Raises:
        ShapeError: SR0330 for an array of other elements, SR0801 for a number out of range.
    """
    words = _words_of("seed", seed, 2)
    return _key_of_word(seed) if words is None else _key_of_words(words)


@array_function
def _key_of_words(words: Any) -> Array:
    return conform(words, _PAIR, "seed")


@array_function
def _key_of_word(seed: Any) -> Array:
    return _pairs(0, _ints(seed, "seed"))


@array_function
def split(key: Any, n: Any = 2) -> Array:
    """Independent keys made from one.

    ``split(key, n)[i]`` is ``fold_in(key, i)``.

    Args:
        key: One key, which serves for nothing else from then on.
        n: How many keys: a number, a size, or a shape of them.

    Returns:
        Keys of this shape, which carry no derivative.

    Raises:
        ShapeError: SR0330 for an invalid key, SR0370 and SR0371 for another `n`, SR0802 for several
            keys.
    """
    return _blocks(key, shape_of(n, "n"))


@api_boundary
def fold_in(key: Any, data: Any) -> Array:
    """An independent key for each number: of a step, an epoch, a counter of a loop.

    Args:
        key: A key, or several.
        data: A whole number from 0 to below 2**32, or ints; they broadcast with the keys.

    Returns:
        A key for each, which carries no derivative.

    Raises:
        ShapeError: SR0330 for anything but keys and ints, SR0379, where the shapes do not
            broadcast, SR0801 for a number out of range.
    """
    words = _words_of("data", data, 1)
    return _folded(key, data if words is None else words.reshape(()))


@array_function
def _folded(key: Any, data: Any) -> Array:
    return elementwise(_cipher, _keys(key), _pairs(0, _ints(data, "data")))


def _keys(x: Any) -> TracedArray:
    """Keys as pairs of words."""
    return conform(as_array(x), _PAIR, "key")


def _words_of(name: str, value: Any, count: int) -> np.ndarray[Any, Any] | None:
    """A Python number as words of 32 bits, the highest first; `None` for anything else.

    Raises:
        ShapeError: SR0801 unless the number is whole and fits in `count` words.
    """
    plain = as_number(value)
    if plain is None:
        return None
    number = size_or_none(plain)
    if not isinstance(number, int) or not 0 <= number < 2 ** (32 * count):
        raise error("SR0801", name=name, found=text_of(value), bits=32 * count)
    words = [number >> 32 * k & 0xFFFFFFFF for k in reversed(range(count))]
    return np.array(words, np.uint32)


def _ints(x: Any, name: str) -> TracedArray:
    """Integers as words of 32 bits."""
    integers = as_array(x)
    if integers.element not in (INT, UINT):
        raise error("SR0330", user_span(), name=name, found=integers.element, wanted=INT)
    return cast_to(integers, UINT)


# -- draws ------------------------------------------------------------------------------------


@array_function
def uniform(
    key: Any, shape: Any = (), dtype: Any = float, low: Any = 0.0, high: Any = 1.0
) -> Array:
    """Numbers that are uniformly distributed from `low` to below `high`.

    ``low + u * (high - low)`` for a multiple u of 2**-23 (half: 2**-10, double: 2**-52) from 0 to
    below 1; `low` where this would round to `high`, and where `high` is not above `low`.

    Args:
        key: One key, which serves for nothing else.
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        dtype: ``float``, `half` or `double`.
        low: Numbers that broadcast to `shape`.
        high: Likewise; ``high - low`` is finite.

    Raises:
        ShapeError: SR0326 for another `dtype`, SR0330 for an invalid key, and limits of another
            type, SR0358 for an invalid element type, SR0370 and SR0371 for an invalid extent,
            SR0379, where limits do not broadcast to `shape`, SR0802 for several keys.

    Differentiable in `low` and `high`, with factors 1 - u and u.
    """
    extents, scalar = shape_of(shape), _floats("uniform", dtype)
    lowest, highest = (_limit(x, scalar, extents, n) for x, n in ((low, "low"), (high, "high")))
    u = _fraction(_blocks(key, extents), scalar)
    numbers = lowest + u * (highest - lowest)
    return where(numbers < highest, numbers, lowest)


@array_function
def normal(key: Any, shape: Any = (), dtype: Any = float) -> Array:
    """Numbers that are normally distributed, with mean 0 and variance 1.

    ``sqrt(-2 log u) cos(2 pi v)`` for uniform u in (0, 1] and v in [0, 1]; it is finite, and at
    most 6.8, or 9.5 of `double`. Halves are rounded from floats.

    Args:
        key: One key, which serves for nothing else.
        shape: Extents: a number, or a tuple or list of numbers and sizes.
        dtype: ``float``, `half` or `double`.

    Returns:
        Numbers that carry no derivative, and of one key differ between devices as `log` and `cos`
        do, in their last bits.

    Raises:
        ShapeError: SR0326 for another `dtype`, SR0330 for an invalid key, SR0358 for an invalid
            element type, SR0370 and SR0371 for an invalid extent, SR0802 for several keys.

    Source: Box, Muller, *A note on the generation of random normal deviates*, Annals of
    Mathematical Statistics 29 (1958).
    """
    extents, scalar = shape_of(shape), _floats("normal", dtype)
    if scalar == HALF:
        return cast_to(normal(key, shape), HALF)
    blocks = _blocks(key, extents)
    if scalar == DOUBLE:
        u, v = _long_unit(blocks), _long_unit(_blocks(key, extents, stream=1))
    else:
        u, v = (_unit(selected(blocks, part)) for part in "xy")
    # The rounded logarithm of 1 may be above 0.
    square = primitive(ops.MAX, -2.0 * primitive(ops.LOG, u), 0.0)
    return primitive(ops.SQRT, square) * primitive(ops.COS, 2.0 * math.pi * v)


@array_function
def permutation(key: Any, x: Any, axis: int = 0) -> Array:
    """Positions 0, 1, ..., n - 1, or the elements or rows of an array, in random order.

    They are sorted by random words of 32 bits. Two that draw the same word, with a probability of
    2**-32, keep their order.

    Args:
        key: One key, which serves for nothing else.
        x: How many positions, a number or a size; or an array with elements of any type.
        axis: The axis of an array along which its elements are put in another order.

    Raises:
        ShapeError: SR0323 for an axis, SR0330 for an invalid key, SR0371 for a negative number,
            SR0802 for several keys.

    Differentiable in an array: a cotangent goes back to where its element came from.
    """
    if as_number(x) is not None or size_or_none(x) is not None:
        return argsort(_drawn(key, shape_of(x, "x")))
    operand = traced(x, "x")
    position = axis_of(axis, len(operand.extents))
    order = argsort(_drawn(key, (operand.extents[position],)))
    rows = moved_axis(operand, position, 0)
    return moved_axis(traced(gather(rows, order, "ignore")), 0, position)


def _floats(name: str, dtype: Any) -> Scalar:
    scalar = element_type(dtype)
    if isinstance(scalar, Vector):
        raise error("SR0312", user_span(), name=name, found=f"`dtype={scalar}`",
                    help="draw the components along an axis, and make vectors of them: "
                         f"`sad.{scalar}(u[:, 0], u[:, 1], ...)`")  # fmt: skip
    if not isinstance(scalar, Scalar) or scalar.kind not in FLOAT_KINDS:
        raise error("SR0326", user_span(), name=name, takes="`float`, `half` or `double`",
                    element=scalar)  # fmt: skip
    return scalar


def _limit(x: Any, scalar: Scalar, shape: Shape, name: str) -> TracedArray:
    """A limit in the type of the numbers, broadcast to their shape."""
    limit = conform(x, scalar, name)
    if not repeats_to(limit.extents, shape):
        raise error("SR0379", user_span(), left=known_shape(limit.extents),
                    right=known_shape(shape))  # fmt: skip
    return made(spread(limit, shape))


def _drawn(key: Any, shape: Shape) -> TracedArray:
    """One random word for each position of a shape."""
    blocks = _blocks(key, shape)
    return traced(selected(blocks, "x") ^ selected(blocks, "y"))


def _fraction(blocks: TracedArray, t: Scalar) -> Array:
    """Equally probable numbers from 0 to below 1, with as many bits as the fraction of `t`."""
    x, y = selected(blocks, "x"), selected(blocks, "y")
    if t == DOUBLE:
        return cast_to(x, DOUBLE) * 2.0**-32 + cast_to(y >> 12, DOUBLE) * 2.0**-52
    if t == HALF:
        return cast_to(cast_to((x ^ y) >> 6 & 0x3FF, FLOAT) * 2.0**-10, HALF)
    return cast_to((x ^ y) >> 9, FLOAT) * 2.0**-23


def _unit(word: TracedArray) -> Array:
    """A number above 0 and at most 1, rounded from 2**32 equally probable ones."""
    return (cast_to(word, FLOAT) + 0.5) * 2.0**-32


def _long_unit(blocks: TracedArray) -> Array:
    """Like `_unit`, but a double rounded from 2**64 equally probable numbers."""
    x, y = (cast_to(selected(blocks, part), DOUBLE) for part in "xy")
    return (x + (y + 0.5) * 2.0**-32) * 2.0**-32


# -- the cipher -------------------------------------------------------------------------------


def _blocks(key: Any, shape: Shape, stream: int = 0) -> TracedArray:
    """Two random words for each position of a shape.

    Raises:
        ShapeError: SR0330 for an invalid key, SR0802 for several.
    """
    words = _keys(key)
    if words.extents:
        raise error("SR0802", user_span(), shape=known_shape(words.extents))
    positions = b.reshape(b.iota((sizes.product(shape),), 0), shape)
    return elementwise(_cipher, words, _pairs(stream, cast_to(made(positions), UINT)))


def _pairs(high: int, low: TracedArray) -> TracedArray:
    """Two words, of which the first is a number."""

    def make(span: Span, of: Sequence[Operand]) -> Expr:
        return nodes.Construct(type=_PAIR, parts=(_word(high), conversions.expr(of[0], span)))

    return elementwise(make, low)


def _cipher(span: Span, of: Sequence[Operand]) -> Expr:
    """The cipher block of each key and counter."""
    args = tuple(conversions.expr(x, span) for x in of)
    return nodes.Call(type=_PAIR, function=threefry2x32(), args=args, span=span)


@cache
def threefry2x32() -> nodes.Function:
    """The cipher as a function of kernels: the block of a key and a counter.

    A round adds the second word to the first, rotates the second, and combines it with the first by
    exclusive or. Words of the key are added before the first round and after each fourth.
    """
    key, counter = (c.variable(name, _PAIR) for name in ("key", "counter"))
    x, y, third = (c.variable(name, UINT) for name in ("x", "y", "third"))
    keys = (*c.components(key), third)
    parity = c.apply(ops.BIT_XOR, c.apply(ops.BIT_XOR, keys[0], keys[1]), _word(_PARITY))
    body: list[Stmt] = [Assign(name=third.name, value=parity)]
    body += [
        _set(v, ops.ADD, p, q) for v, p, q in zip((x, y), c.components(counter), keys, strict=False)
    ]
    for group in range(5):
        for count in _ROTATIONS[group % 2]:
            body += [_set(x, ops.ADD, x, y), _set(y, ops.BIT_XOR, _rotated(y, count), x)]
        body.append(_set(x, ops.ADD, x, keys[(group + 1) % 3]))
        added = c.apply(ops.ADD, keys[(group + 2) % 3], _word(group + 1))
        body.append(_set(y, ops.ADD, y, added))
    body.append(nodes.Return(value=nodes.Construct(type=_PAIR, parts=(x, y))))
    return nodes.Function(
        name="threefry2x32",
        parameters=tuple(nodes.Parameter(name=v.name, type=_PAIR) for v in (key, counter)),
        result=_PAIR,
        body=tuple(body),
        local_types={v.name: UINT for v in (x, y, third)},
    )


def _set(target: nodes.Var, op: ops.Op, a: Expr, b: Expr) -> Stmt:
    """``target = a op b``."""
    return Assign(name=target.name, value=c.apply(op, a, b))


def _word(number: int) -> Expr:
    return c.number(UINT, number)


def _rotated(x: Expr, count: int) -> Expr:
    left = c.apply(ops.SHIFT_LEFT, x, _word(count))
    return c.apply(ops.BIT_OR, left, c.apply(ops.SHIFT_RIGHT, x, _word(32 - count)))
