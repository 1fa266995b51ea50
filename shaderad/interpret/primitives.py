"""Primitives and conversions on NumPy arrays, with the semantics of the kernel language.

Ops compute with the NumPy function of their row in ``ir/ops.py``, except where the language
differs: ints wrap at 32 bits, dividing them by 0 gives 0, shift counts are taken
modulo 32, and a float outside the range of ints converts to the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from shaderad.interpret.cells import AnyArray
from shaderad.ir import ops
from shaderad.rules.linear import matrix_product


def evaluate(op: ops.Op, args: Sequence[AnyArray], dtype: np.dtype[Any]) -> AnyArray:
    """``op(*args)`` for arrays whose axis 0 counts threads."""
    is_integer = args[0].dtype.kind in "iu"
    special = (_ON_INTEGERS.get(op) if is_integer else None) or _SPECIAL.get(op)
    with np.errstate(all="ignore"):
        data = np.asarray(op.numpy(*args) if special is None else special(*args))
        if dtype.kind in "iu" and data.dtype.kind == "f":
            return to_integer(data, dtype)
        return data.astype(dtype, copy=False)


def by_component(args: Sequence[AnyArray]) -> list[AnyArray]:
    """Operands in one shape: the scalar of each thread is repeated in every component."""
    rank = max(a.ndim for a in args)
    shape = next(a.shape for a in args if a.ndim == rank)
    return [
        a if a.ndim == rank else np.broadcast_to(a.reshape(a.shape + (1,) * (rank - a.ndim)), shape)
        for a in args
    ]


def converted(data: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """A `Cast` to scalars of `dtype`."""
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and data.dtype.kind == "f":
            return to_integer(data, dtype)
        return data != 0 if dtype.kind == "b" else data.astype(dtype)


def to_integer(data: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Floats truncated and clamped to the range of `dtype`; NaN gives 0."""
    limits = np.iinfo(dtype)
    whole = np.clip(np.trunc(data.astype(np.float64)), limits.min, limits.max)
    return np.where(np.isnan(whole), 0, whole).astype(dtype)


def reread(data: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """The same 32 bits read as another scalar type; floats count as ``float``."""
    bits = data.astype(np.float32) if data.dtype.kind == "f" else data
    target = np.float32 if dtype.kind == "f" else dtype
    return np.ascontiguousarray(bits).view(target).astype(dtype)


def divides_by_zero(op: ops.Op, args: Sequence[AnyArray]) -> AnyArray:
    """The rows of `args` that divide an int by 0."""
    if op not in (ops.FLOOR_DIV, ops.MOD) or args[1].dtype.kind not in "iu":
        return np.zeros(0, np.intp)
    return np.flatnonzero(np.any((args[1] == 0).reshape(len(args[1]), -1), axis=1))


def _floor_divide(a: AnyArray, b: AnyArray) -> AnyArray:
    if a.dtype.kind == "u":
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b))
    # The smallest int divided by -1 wraps.
    plain = (b != 0) & (b != -1)
    return np.where(plain, a // np.where(plain, b, 1), np.where(b == 0, 0, np.negative(a)))


def _modulo(a: AnyArray, b: AnyArray) -> AnyArray:
    plain = b != 0
    if a.dtype.kind == "i":
        plain &= b != -1
    return np.where(plain, a % np.where(plain, b, 1), 0)


def _shift_left(a: AnyArray, count: AnyArray) -> AnyArray:
    return np.left_shift(a, count & 31)


def _shift_right(a: AnyArray, count: AnyArray) -> AnyArray:
    return np.right_shift(a, count & 31)


def _inverse(m: AnyArray) -> AnyArray:
    is_singular = (np.linalg.det(m) == 0)[..., None, None]
    inverse = np.linalg.inv(np.where(is_singular, np.eye(m.shape[-1], dtype=m.dtype), m))
    return np.where(is_singular, np.nan, inverse)


_ON_INTEGERS: dict[ops.Op, Callable[..., Any]] = {
    ops.FLOOR_DIV: _floor_divide,
    ops.MOD: _modulo,
    ops.SHIFT_LEFT: _shift_left,
    ops.SHIFT_RIGHT: _shift_right,
}
_SPECIAL: dict[ops.Op, Callable[..., Any]] = {
    ops.MATMUL: matrix_product,
    ops.INVERSE: _inverse,
    ops.ANY_OF: partial(np.any, axis=-1),
    ops.ALL_OF: partial(np.all, axis=-1),
}
