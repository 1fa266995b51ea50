"""Partial derivatives of the primitives: the only definition in Python.

With ``y = op(a, b)``, a row gives ``dy/da, dy/db``. The jvp (``sum(partial * tangent)``) and the
vjp (``partial * cotangent``) follow from the row; neither is written by hand. A derivative that is
zero on purpose is written `ZERO`. Values at singular points are those of docs/conventions.md, and
the Slang library is tested against these rows.
"""

from __future__ import annotations

import numpy as np

from shaderad.ir import ops
from shaderad.ir.tables import check_rows
from shaderad.rules.rows import (
    MIXING,
    ZERO,
    Array,
    Row,
    ZeroPartial,
    binary,
    ieee,
    ternary,
    unary,
)

LN2, LN10 = np.log(2.0), np.log(10.0)


def _pow(y: Array, x: Array, p: Array) -> tuple[Array, Array]:
    """By x: ``p x^(p - 1)``, whose own derivatives follow from the same row.

    At x = 0 it is 1 for p = 1 and, by definition, 0 for p < 1. For 1 < p < 2 it is 0 with an
    infinite derivative, like that of a square root.
    """
    # x == 0 and p < 2: naga refuses `and` of vectors of bools in SPIR-V.
    is_edge = np.where(p < 2, x, 1.0) == 0
    at_edge = np.where(p > 1, np.sqrt(x), np.where(p == 1, 1.0, 0.0))
    by_x = np.where(is_edge, at_edge, p * np.power(np.where(is_edge, 1, x), p - 1))
    return by_x, np.where(x > 0, y * np.log(np.where(x > 0, x, 1)), 0)


def _powi(_: Array, x: Array, n: Array) -> tuple[Array, ZeroPartial]:
    return np.where(n == 0, 0, n * np.power(x, np.where(n == 0, 1, n) - 1.0)), ZERO


def _by_length(part: Array, y: Array) -> Array:
    return np.where(y == 0, 0, part / np.where(y == 0, 1, y))


def _positive_zero(x: Array) -> Array:
    """`x`, with 0 in place of -0."""
    return np.where(x == 0, x + np.abs(x), x)  # Its slope is 1 at 0, too.


def _atan2(_: Array, p: Array, q: Array) -> tuple[Array, Array]:
    r = np.hypot(p, q)
    return _by_length(_by_length(q, r), r), _by_length(_by_length(-p, r), r)


def _first_is_min(a: Array, b: Array) -> Array:
    return (a <= b) | np.isnan(b)


def _first_is_max(a: Array, b: Array) -> Array:
    return (a >= b) | np.isnan(b)


def _clamp(_: Array, x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    raised = np.fmax(x, low)
    is_x, is_raised = _first_is_max(x, low), _first_is_min(raised, high)
    return 1.0 * (is_raised & is_x), 1.0 * (is_raised & ~is_x), 1.0 * ~is_raised


def _smoothstep(_: Array, low: Array, high: Array, x: Array) -> tuple[Array, Array, Array]:
    t = np.clip((x - low) / (high - low), 0, 1)
    slope = 6 * t * (1 - t) / (high - low)
    return slope * (t - 1), -slope * t, slope


PARTIALS: dict[ops.Op, Row] = {
    # -- operators -----------------------------------------------------------------------------
    ops.ADD: binary(lambda y, a, b: (1.0, 1.0)),
    ops.SUB: binary(lambda y, a, b: (1.0, -1.0)),
    ops.MUL: ieee(binary(lambda y, a, b: (b, a))),
    ops.DIV: binary(lambda y, a, b: (1 / b, -y / b)),
    ops.NEG: unary(lambda y, x: -1.0),
    ops.FLOOR_DIV: binary(lambda y, a, b: (ZERO, ZERO)),
    ops.MOD: binary(lambda y, a, b: (1.0, -np.round((a - y) / b))),
    ops.FMOD: binary(lambda y, a, b: (1.0, -np.round((a - y) / b))),
    ops.POW: binary(_pow),
    ops.POWI: binary(_powi),
    # -- roundings -----------------------------------------------------------------------------
    ops.FLOOR: unary(lambda y, x: ZERO),
    ops.CEIL: unary(lambda y, x: ZERO),
    ops.ROUND: unary(lambda y, x: ZERO),
    ops.TRUNC: unary(lambda y, x: ZERO),
    ops.SIGN: unary(lambda y, x: ZERO),
    ops.PRODUCT_ERROR: binary(lambda y, a, b: (ZERO, ZERO)),
    ops.TIMES: binary(lambda y, a, b: (b, a)),
    ops.STEP: binary(lambda y, edge, x: (ZERO, ZERO)),
    ops.FRAC: unary(lambda y, x: 1.0),
    # -- roots, exponentials, logarithms; -0 is treated as 0 --------------------------------------
    ops.SQRT: unary(lambda y, x: 0.5 / _positive_zero(y)),
    ops.RSQRT: unary(lambda y, x: -0.5 * np.abs(y) / _positive_zero(x)),
    ops.RCP: unary(lambda y, x: -y * y),
    ops.EXP: ieee(unary(lambda y, x: y)),
    ops.EXP2: ieee(unary(lambda y, x: y * LN2)),
    ops.EXPM1: unary(lambda y, x: np.exp(x)),
    ops.LOG: unary(lambda y, x: 1 / _positive_zero(x)),
    ops.LOG2: unary(lambda y, x: 1 / (_positive_zero(x) * LN2)),
    ops.LOG10: unary(lambda y, x: 1 / (_positive_zero(x) * LN10)),
    ops.LOG1P: unary(lambda y, x: 1 / (1 + x)),
    ops.ERF: unary(lambda y, x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
    ops.ERFC: unary(lambda y, x: -2 / np.sqrt(np.pi) * np.exp(-x * x)),
    # -- angles --------------------------------------------------------------------------------
    ops.SIN: ieee(unary(lambda y, x: np.cos(x))),
    ops.COS: ieee(unary(lambda y, x: -np.sin(x))),
    ops.TAN: ieee(unary(lambda y, x: 1 + y * y)),
    ops.ASIN: unary(lambda y, x: 1 / np.sqrt((1 - x) * (1 + x))),
    ops.ACOS: unary(lambda y, x: -1 / np.sqrt((1 - x) * (1 + x))),
    ops.ATAN: ieee(unary(lambda y, x: 1 / (1 + x * x))),
    ops.ATAN2: binary(_atan2),
    ops.SINH: ieee(unary(lambda y, x: np.cosh(x))),
    ops.COSH: ieee(unary(lambda y, x: np.sinh(x))),
    ops.TANH: ieee(unary(lambda y, x: 1 - y * y)),
    # No squares, which would overflow.
    ops.ASINH: unary(lambda y, x: 1 / np.hypot(x, 1.0)),
    ops.ACOSH: unary(lambda y, x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1))),
    ops.ATANH: unary(lambda y, x: 1 / ((1 - x) * (1 + x))),
    ops.RADIANS: unary(lambda y, x: np.pi / 180),
    ops.DEGREES: unary(lambda y, x: 180 / np.pi),
    # -- choices: the first operand wins a tie; a NaN never wins ---------------------------------
    ops.ABS: unary(lambda y, x: np.sign(x)),
    ops.MIN: binary(lambda y, a, b: (1.0 * _first_is_min(a, b), 1.0 * ~_first_is_min(a, b))),
    ops.MAX: binary(lambda y, a, b: (1.0 * _first_is_max(a, b), 1.0 * ~_first_is_max(a, b))),
    ops.CLAMP: ternary(_clamp),
    ops.SATURATE: unary(lambda y, x: 1.0 * ((x >= 0) & (x <= 1))),
    ops.COPYSIGN: binary(lambda y, a, b: (np.sign(a) * np.copysign(1.0, b), ZERO)),
    ops.SELECT: ternary(
        lambda y, c, a, b: (ZERO, 1.0 * np.asarray(c, bool), 1.0 * ~np.asarray(c, bool))
    ),
    # -- mixtures ------------------------------------------------------------------------------
    ops.HYPOT: binary(lambda y, a, b: (_by_length(a, y), _by_length(b, y))),
    ops.LERP: ternary(lambda y, a, b, t: (1 - t, t, b - a)),
    ops.MAD: ternary(lambda y, a, b, c: (b, a, 1.0)),
    ops.SMOOTHSTEP: ternary(_smoothstep),
    # -- vectors and matrices --------------------------------------------------------------------
    **MIXING,
}

_WITHOUT_FLOATS = frozenset(
    {
        ops.Rule.INTEGERS,
        ops.Rule.BITS,
        ops.Rule.COMPARE,
        ops.Rule.EQUAL,
        ops.Rule.BOOLS,
        ops.Rule.TEST,
        ops.Rule.REDUCE_BOOL,
        ops.Rule.TO_INT,
        ops.Rule.HASH,
        ops.Rule.UNIFORM01,
    }
)


def carries_derivative(op: ops.Op) -> bool:
    """True if `op` maps floats to floats, so that it needs a row."""
    return op.rule not in _WITHOUT_FLOATS


check_rows(PARTIALS, filter(carries_derivative, ops.TABLE.values()))
