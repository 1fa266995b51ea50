"""Rows of the derivative tables, and those of the ops that mix components.

Both the jvp and the vjp of an op follow from its row. Rows work on NumPy arrays of any float type;
leading axes are batches. A row by component gives the partials by all operands, and `ZERO` for one
that is zero by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shaderad.ir import ops

Array = np.ndarray[Any, Any]


class ZeroPartial:
    """The type of `ZERO`: a partial that is zero by definition, like that of `floor`."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = ZeroPartial()
Partial = Array | float | ZeroPartial


@dataclass(frozen=True, slots=True)
class ByComponent:
    """``partials(y, *args)`` gives dy/da for each operand, by component.

    jvp: ``sum(partial * tangent)``; vjp: ``partial * cotangent``. Operands have one shape.
    """

    partials: Callable[..., tuple[Partial, ...]]
    zero_wins: bool = True
    """True if 0 times infinity is 0; False for the IEEE product, where it is NaN."""

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        y_dot = np.zeros_like(y)
        for partial, x_dot in zip(self._partials(y, args), args_dot, strict=True):
            if not isinstance(partial, ZeroPartial):
                with np.errstate(over="ignore", invalid="ignore"):  # infinities of two operands
                    y_dot = y_dot + self._times(partial, x_dot)
        return y_dot

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        return tuple(
            np.zeros_like(y_bar)
            if isinstance(partial, ZeroPartial)
            else self._times(partial, y_bar)
            for partial in self._partials(y, args)
        )

    def _times(self, partial: Array | float, d: Array) -> Array:
        if self.zero_wins:
            return times(partial, d)
        with np.errstate(all="ignore"):
            return partial * d

    def _partials(self, y: Array, args: Sequence[Array]) -> tuple[Partial, ...]:
        with np.errstate(all="ignore"):
            return self.partials(y, *args)


@dataclass(frozen=True, slots=True)
class WholeValue:
    """An op that mixes components, with both formulas written out.

    ``push(y, args, args_dot)`` and ``pull(y, args, y_bar)``; tests compare them with each other and
    with central differences.
    """

    push: Callable[[Array, Sequence[Array], Sequence[Array]], Array]
    pull: Callable[[Array, Sequence[Array], Array], tuple[Array, ...]]

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        with np.errstate(all="ignore"):
            return self.push(y, args, args_dot)

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return self.pull(y, args, y_bar)


Row = ByComponent | WholeValue
"""``jvp(y, args, args_dot)`` is the tangent of ``y = op(*args)``; ``vjp(y, args, y_bar)`` gives the
cotangents of `args`, each in the shape of its operand."""


def times(partial: Array | float, d: Array) -> Array:
    """``partial * d`` with 0 times infinity = 0 (docs/conventions.md, "zero wins")."""
    with np.errstate(all="ignore"):
        product = partial * d
        is_void = np.isnan(product) & ((partial == 0) | (d == 0))
    return np.where(is_void, product.dtype.type(0), product)


def unary(partial: Callable[[Array, Array], Partial]) -> ByComponent:
    """A row of one operand: ``partial(y, x)`` is dy/dx."""

    def partials(y: Array, x: Array) -> tuple[Partial]:
        return (partial(y, x),)

    return ByComponent(partials)


def binary(partials: Callable[[Array, Array, Array], tuple[Partial, Partial]]) -> ByComponent:
    """A row of two operands: ``partials(y, a, b)`` is ``(dy/da, dy/db)``."""
    return ByComponent(partials)


def ternary(
    partials: Callable[[Array, Array, Array, Array], tuple[Partial, Partial, Partial]],
) -> ByComponent:
    """A row of three operands: ``partials(y, a, b, c)`` is ``(dy/da, dy/db, dy/dc)``."""
    return ByComponent(partials)


def ieee(row: ByComponent) -> ByComponent:
    """The row of an op that targets differentiate natively: 0 times infinity is NaN."""
    return replace(row, zero_wins=False)


# -- ops that mix components ---------------------------------------------------------------------
# Vectors lie along the last axis, matrices along the last two; <a, b> is the sum over components.
# The derivative of a length at 0 is defined as 0 (docs/conventions.md).

Arrays = Sequence[Array]


def _dot(a: Array, b: Array) -> Array:
    return np.sum(a * b, axis=-1)


def _column(scalar: Array) -> Array:
    """An array of scalars, broadcastable against vectors."""
    return np.expand_dims(scalar, -1)


def _over(v: Array, scalar: Array) -> Array:
    """``v / scalar``; 0 where the scalar is 0."""
    divisor = _column(scalar)
    return np.where(divisor == 0, 0, v / np.where(divisor == 0, 1, divisor))


def _transposed(m: Array) -> Array:
    return np.swapaxes(m, -1, -2)


def _pull_distance(y: Array, args: Arrays, y_bar: Array) -> tuple[Array, ...]:
    a_bar = _column(y_bar) * _over(args[0] - args[1], y)
    return a_bar, -a_bar


def _across(y: Array, v: Array, x: Array) -> Array:
    """``(x - y <y, x>) / |v|``: symmetric in `x`, so it serves both directions."""
    return _over(x - y * _column(_dot(y, x)), np.sqrt(_dot(v, v)))


def _push_reflect(_: Array, args: Arrays, dots: Arrays) -> Array:
    (i, n), (i_dot, n_dot) = args, dots
    slope = _dot(n_dot, i) + _dot(n, i_dot)
    return i_dot - 2 * (_column(slope) * n + _column(_dot(n, i)) * n_dot)


def _pull_reflect(_: Array, args: Arrays, y_bar: Array) -> tuple[Array, ...]:
    i, n = args
    along = _column(_dot(n, y_bar))
    return y_bar - 2 * along * n, -2 * (along * i + _column(_dot(n, i)) * y_bar)


def _refract_parts(args: Arrays) -> tuple[Array, Array, Array]:
    """``c = <n, i>``, ``sqrt(k)`` with ``k = 1 - eta^2 (1 - c^2)``, and the mask ``k < 0``."""
    i, n, eta = args
    c = _dot(n, i)
    k = 1 - eta * eta * (1 - c * c)
    return c, np.sqrt(np.fmax(k, 0)), k < 0


def _push_refract(_: Array, args: Arrays, dots: Arrays) -> Array:
    i, n, eta = args
    i_dot, n_dot, eta_dot = dots
    c, r, is_total = _refract_parts(args)
    c_dot = _dot(n_dot, i) + _dot(n, i_dot)
    k_dot = -2 * eta * eta_dot * (1 - c * c) + 2 * eta * eta * c * c_dot
    s_dot = eta_dot * c + eta * c_dot + times(0.5 / r, k_dot)
    y_dot = (
        _column(eta_dot) * i
        + _column(eta) * i_dot
        - _column(s_dot) * n
        - _column(eta * c + r) * n_dot
    )
    return np.where(_column(is_total), 0, y_dot)


def _pull_refract(_: Array, args: Arrays, y_bar: Array) -> tuple[Array, ...]:
    i, n, eta = args
    c, r, is_total = _refract_parts(args)
    y_bar = np.where(_column(is_total), 0, y_bar)
    s_bar = -_dot(n, y_bar)
    k_bar = times(0.5 / r, s_bar)
    c_bar = s_bar * eta + k_bar * 2 * eta * eta * c
    eta_bar = _dot(i, y_bar) + s_bar * c - k_bar * 2 * eta * (1 - c * c)
    i_bar = _column(eta) * y_bar + _column(c_bar) * n
    n_bar = -_column(eta * c + r) * y_bar + _column(c_bar) * i
    return i_bar, n_bar, eta_bar


def matrix_product(a: Array, b: Array) -> Array:
    """``a @ b`` of matrices or of a matrix and a vector, with the same leading batch axes."""
    if a.ndim == b.ndim:
        return np.matmul(a, b)
    if a.ndim > b.ndim:
        return np.matmul(a, b[..., None])[..., 0]
    return np.matmul(a[..., None, :], b)[..., 0, :]


def _pull_matmul(_: Array, args: Arrays, y_bar: Array) -> tuple[Array, ...]:
    a, b = args
    if a.ndim == b.ndim:
        return np.matmul(y_bar, _transposed(b)), np.matmul(_transposed(a), y_bar)
    if a.ndim > b.ndim:
        return y_bar[..., :, None] * b[..., None, :], matrix_product(_transposed(a), y_bar)
    return matrix_product(y_bar, _transposed(b)), a[..., :, None] * y_bar[..., None, :]


def _minor(m: Array, row: int, column: int) -> list[list[Array]]:
    """The entries of `m` without one row and one column."""
    size = m.shape[-1]
    columns = [c for c in range(size) if c != column]
    return [[m[..., r, c] for c in columns] for r in range(size) if r != row]


def _determinant(entries: list[list[Array]]) -> Array | float:
    """Laplace expansion along the first row; 1 for an empty matrix."""
    if not entries:
        return 1.0
    total: Array | float = 0.0
    for k, entry in enumerate(entries[0]):
        rest = [[x for c, x in enumerate(row) if c != k] for row in entries[1:]]
        total = total + (-1.0) ** k * entry * _determinant(rest)
    return total


def _cofactors(m: Array) -> Array:
    """The cofactor matrix: ``det(m) inv(m)^T``, extended to singular `m`."""
    size = range(m.shape[-1])
    rows = [
        np.stack([(-1.0) ** (r + c) * _determinant(_minor(m, r, c)) for c in size], axis=-1)
        for r in size
    ]
    return np.stack(rows, axis=-2)


# -- the rows ------------------------------------------------------------------------------------

MIXING: dict[ops.Op, Row] = {
    # y = <a, b>          y_dot = <a_dot, b> + <a, b_dot>      a_bar = y_bar b, b_bar = y_bar a
    ops.DOT: WholeValue(
        lambda y, args, dots: _dot(dots[0], args[1]) + _dot(args[0], dots[1]),
        lambda y, args, y_bar: (_column(y_bar) * args[1], _column(y_bar) * args[0]),
    ),
    # y = a x b           y_dot = a_dot x b + a x b_dot        a_bar = b x y_bar, b_bar = y_bar x a
    ops.CROSS: WholeValue(
        lambda y, args, dots: np.cross(dots[0], args[1]) + np.cross(args[0], dots[1]),
        lambda y, args, y_bar: (np.cross(args[1], y_bar), np.cross(y_bar, args[0])),
    ),
    # y = |v|             y_dot = <v, v_dot> / y               v_bar = y_bar v / y
    ops.LENGTH: WholeValue(
        lambda y, args, dots: _dot(_over(args[0], y), dots[0]),
        lambda y, args, y_bar: (_column(y_bar) * _over(args[0], y),),
    ),
    # y = |a - b|         y_dot = <a - b, a_dot - b_dot> / y   a_bar = y_bar (a - b) / y = -b_bar
    ops.DISTANCE: WholeValue(
        lambda y, args, dots: _dot(_over(args[0] - args[1], y), dots[0] - dots[1]),
        _pull_distance,
    ),
    # y = v / |v|         y_dot = (v_dot - y <y, v_dot>) / |v|, and v_bar for y_bar in the same way
    ops.NORMALIZE: WholeValue(
        lambda y, args, dots: _across(y, args[0], dots[0]),
        lambda y, args, y_bar: (_across(y, args[0], y_bar),),
    ),
    # y = i - 2 <n, i> n
    # y_dot = i_dot - 2 (<n_dot, i> + <n, i_dot>) n - 2 <n, i> n_dot
    # i_bar = y_bar - 2 <n, y_bar> n          n_bar = -2 (<n, y_bar> i + <n, i> y_bar)
    ops.REFLECT: WholeValue(_push_reflect, _pull_reflect),
    # y = eta i - s n, s = eta c + sqrt(k), c = <n, i>, k = 1 - eta^2 (1 - c^2); 0 where k < 0
    ops.REFRACT: WholeValue(_push_refract, _pull_refract),
    # y = a b             y_dot = a_dot b + a b_dot            a_bar = y_bar b^T, b_bar = a^T y_bar
    ops.MATMUL: WholeValue(
        lambda y, args, dots: matrix_product(dots[0], args[1]) + matrix_product(args[0], dots[1]),
        _pull_matmul,
    ),
    # y = m^T             y_dot = m_dot^T                      m_bar = y_bar^T
    ops.TRANSPOSE: WholeValue(
        lambda y, args, dots: _transposed(dots[0]),
        lambda y, args, y_bar: (_transposed(y_bar),),
    ),
    # y = det m           y_dot = <cof(m), m_dot>              m_bar = y_bar cof(m)
    ops.DETERMINANT: WholeValue(
        lambda y, args, dots: np.sum(_cofactors(args[0]) * dots[0], axis=(-2, -1)),
        lambda y, args, y_bar: (_column(_column(y_bar)) * _cofactors(args[0]),),
    ),
    # y = m^-1            y_dot = -y m_dot y                   m_bar = -y^T y_bar y^T
    ops.INVERSE: WholeValue(
        lambda y, args, dots: -y @ dots[0] @ y,
        lambda y, args, y_bar: (-_transposed(y) @ y_bar @ _transposed(y),),
    ),
}
