"""The primitives: documentation, type rule, Slang spelling, NumPy function, test domain.

One row per op. ``rules/partials.py`` holds the derivatives, also one row per op. Every op works on
scalars and, where its rule says so, by component on vectors and matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

import numpy as np

from shaderad.ir.tables import check_rows
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    UINT,
    Matrix,
    Type,
    Vector,
    is_bool,
    is_float,
    is_integer,
    scalar_of,
    with_scalar,
)

_BY_COMPONENT = "scalars, vectors or matrices of one type, by component"


@unique
class Rule(Enum):
    """The rule for the result type of operands that share one type; the value documents it."""

    FLOATS = f"Takes and gives floats (float, half, double): {_BY_COMPONENT}."
    NUMBERS = f"Takes and gives numbers (floats, int, uint): {_BY_COMPONENT}."
    INTEGERS = f"Takes and gives integers: {_BY_COMPONENT}."
    BITS = f"Takes and gives integers or bools: {_BY_COMPONENT}."
    COMPARE = "Takes numbers of one type and gives bools, by component."
    EQUAL = "Takes numbers or bools of one type and gives bools, by component."
    BOOLS = "Takes and gives bools, by component."
    TEST = "Takes floats and gives bools, by component."
    REDUCE_BOOL = "Takes a bool vector and gives a bool."
    DOT = "Takes two vectors of floats and gives a scalar."
    NORM = "Takes vectors of floats and gives a scalar."
    VECTORS = "Takes and gives vectors of floats."
    VECTOR3 = "Takes and gives vectors of three floats."
    REFRACT = "Takes two vectors of floats and a scalar, and gives a vector."
    MATMUL = "Takes two matrices of floats, or a matrix and a vector."
    TRANSPOSE = "Takes and gives a matrix."
    DETERMINANT = "Takes a square matrix of floats and gives a scalar."
    SQUARE = "Takes and gives a square matrix of floats."
    POWER = "Takes a number and an int scalar, and gives the type of the first."
    SELECT = "Takes a bool, or one a component, and two values of one type, which it gives."
    TO_INT = "Takes floats and gives ints, by component."
    HASH = "Takes and gives a uint."
    UNIFORM01 = "Takes a uint and gives a float."


Domain = tuple[float, float]
ANY: Domain = (-3.0, 3.0)
POSITIVE: Domain = (0.1, 3.0)


@dataclass(frozen=True)
class Op:
    """A primitive. Compared by name."""

    name: str
    """The ``sad.*`` name, or the word used in messages for operators."""
    parameters: tuple[str, ...]
    value: str
    """A description of its result; empty where it has no ``sad.*`` name."""
    derivative: str
    """The derivative by each parameter, singular points included; empty if it has none."""
    rule: Rule
    slang: str
    """``{0} + {1}`` for operators, a function name of Slang or of our library otherwise."""
    numpy: Callable[..., object]
    domain: tuple[Domain, ...] = ()
    """Open intervals from which tests draw each operand, away from kinks."""
    double: str = ""
    """The library's function of doubles, if GPUs run Slang's own in 32 bits only."""

    @property
    def arity(self) -> int:
        return len(self.parameters)

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameters)})"

    @property
    def documentation(self) -> str:
        """The docstring of ``sad.<name>``."""
        derived = f"Derivative: {self.derivative}." if self.derivative else "No derivative."
        return f"{self.signature}\n\n{self.value}\n\n{self.rule.value}\n{derived}"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.name == self.name

    def __repr__(self) -> str:
        return f"ops.{self.name}"


TABLE: dict[str, Op] = {}
_NumPy = Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]


def _function(
    signature: str,
    value: str,
    derivative: str,
    rule: Rule,
    slang: str,
    numpy: _NumPy,
    *domain: Domain,
    double: str = "",
) -> Op:
    """A row: the text of ``help``, type rule, Slang spelling, NumPy function and domain."""
    name, _, parameters = signature.removesuffix(")").partition("(")
    names = tuple(parameters.split(", "))
    op = Op(name, names, value, derivative, rule, slang, numpy, domain, double)
    TABLE[name] = op
    return op


def _operator(signature: str, rule: Rule, slang: str, numpy: _NumPy, *domain: Domain) -> Op:
    """A row without a ``sad.*`` name: the front end or derivatives make it."""
    return _function(signature, "", "", rule, slang, numpy, *domain)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(x * x, axis=-1))


def _normalize(x: np.ndarray) -> np.ndarray:
    length = _norm(x)[..., None]
    return np.where(length > 0, x / np.where(length > 0, length, 1), 0)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=-1)


def _refract(i: np.ndarray, n: np.ndarray, eta: np.ndarray) -> np.ndarray:
    cosine = _dot(n, i)
    k = 1 - eta * eta * (1 - cosine * cosine)
    out = eta[..., None] * i - (eta * cosine + np.sqrt(np.maximum(k, 0)))[..., None] * n
    return np.where((k < 0)[..., None], 0, out)


def _smoothstep(low: np.ndarray, high: np.ndarray, x: np.ndarray) -> np.ndarray:
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def _each(function: Callable[[float], float]) -> Callable[..., object]:
    """A function of Python numbers, by element."""
    return np.vectorize(function, otypes=[np.float64])


def _pcg(x: np.ndarray) -> np.ndarray:
    state = x.astype(np.uint32) * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    return (word >> np.uint32(22)) ^ word


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        product = np.multiply(a, b)
    return np.where(np.equal(a, 0) | np.equal(b, 0), product.dtype.type(0), product)


def _nothing(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))


# fmt: off
# Operators: the front end reaches them through Python syntax.
ADD = _function("add(a, b)", "``a + b``, to be named in reductions and scans.", "1, 1",
    Rule.NUMBERS, "{0} + {1}", np.add, ANY, ANY)
SUB = _operator("subtract(a, b)", Rule.NUMBERS, "{0} - {1}", np.subtract, ANY, ANY)
MUL = _function("mul(a, b)", "``a * b`` by component, to be named in reductions and scans; the "
    "matrix product is `matmul`.", "b, a",
    Rule.NUMBERS, "{0} * {1}", np.multiply, ANY, ANY)
DIV = _operator("divide(a, b)", Rule.FLOATS, "{0} / {1}", np.divide, ANY, POSITIVE)
NEG = _operator("negate(x)", Rule.NUMBERS, "-{0}", np.negative, ANY)
# `//` and `%` floor as in Python; by 0 the integer forms give 0 and are reported.
FLOOR_DIV = _operator(
    "floor_divide(a, b)", Rule.NUMBERS, "floorDivide", np.floor_divide, (1.1, 1.9), (0.2, 0.24))
MOD = _operator("mod(a, b)", Rule.NUMBERS, "floorModulo", np.mod, (1.1, 1.9), (0.52, 0.54))
# Whole constant exponents never arrive here: the front end emits `POWI`.
POW = _function("pow(x, y)", "``x ** y``; NaN for a negative x and a y that is not whole.",
    "``y * x ** (y - 1)`` by x, ``x ** y * log(x)`` by y; 0 by y where x is 0",
    Rule.FLOATS, "safePow", np.power, POSITIVE, ANY, double="doublePow")
BIT_AND = _operator("bit_and(a, b)", Rule.BITS, "{0} & {1}", np.bitwise_and)
BIT_OR = _operator("bit_or(a, b)", Rule.BITS, "{0} | {1}", np.bitwise_or)
BIT_XOR = _operator("bit_xor(a, b)", Rule.BITS, "{0} ^ {1}", np.bitwise_xor)
BIT_NOT = _operator("bit_not(x)", Rule.BITS, "~{0}", np.invert)
# Shift counts are taken modulo 32.
SHIFT_LEFT = _operator("shift_left(x, count)", Rule.INTEGERS, "shiftLeft", np.left_shift)
SHIFT_RIGHT = _operator("shift_right(x, count)", Rule.INTEGERS, "shiftRight", np.right_shift)
NOT = _operator("not(x)", Rule.BOOLS, "!{0}", np.logical_not)
EQ = _operator("equal(a, b)", Rule.EQUAL, "{0} == {1}", np.equal)
NE = _operator("not_equal(a, b)", Rule.EQUAL, "{0} != {1}", np.not_equal)
LT = _operator("less(a, b)", Rule.COMPARE, "{0} < {1}", np.less)
LE = _operator("less_equal(a, b)", Rule.COMPARE, "{0} <= {1}", np.less_equal)
GT = _operator("greater(a, b)", Rule.COMPARE, "{0} > {1}", np.greater)
GE = _operator("greater_equal(a, b)", Rule.COMPARE, "{0} >= {1}", np.greater_equal)
MATMUL = _function("matmul(a, b)", "The matrix product ``a @ b``, also with a vector on either "
    "side.", "``out_bar @ transpose(b)``, ``transpose(a) @ out_bar``",
    Rule.MATMUL, "mul", np.matmul, ANY, ANY)

# By component. Names as in Slang and HLSL.
ABS = _function("abs(x)", "The absolute value.", "the sign of x; 0 at 0",
    Rule.NUMBERS, "absOf", np.abs, POSITIVE)
SIGN = _function("sign(x)", "-1, 0 or 1.", "0",
    Rule.NUMBERS, "signOf", np.sign, POSITIVE)
FLOOR = _function("floor(x)", "The largest whole number that is not above x, as a float.", "0",
    Rule.FLOATS, "floorOf", np.floor, (1.1, 1.9))
CEIL = _function("ceil(x)", "The smallest whole number that is not below x, as a float.", "0",
    Rule.FLOATS, "ceilOf", np.ceil, (1.1, 1.9))
ROUND = _function("round(x)", "The nearest whole number, as a float; halves go to even.", "0",
    Rule.FLOATS, "roundOf", np.round, (1.6, 2.4))
TRUNC = _function("trunc(x)", "x without its fraction, as a float.", "0",
    Rule.FLOATS, "truncOf", np.trunc, (1.1, 1.9))
FRAC = _function("frac(x)", "``x - floor(x)``.", "1",
    Rule.FLOATS, "fracOf", lambda x: x - np.floor(x), (1.1, 1.9))
SQRT = _function("sqrt(x)", "The square root; NaN below 0.", "``1 / (2 sqrt(x))``; +inf at 0",
    Rule.FLOATS, "safeSqrt", np.sqrt, POSITIVE)
RSQRT = _function("rsqrt(x)", "``1 / sqrt(x)``.", "``-rsqrt(x) / (2 x)``; -inf at 0",
    Rule.FLOATS, "safeRsqrt", lambda x: 1 / np.sqrt(x), POSITIVE)
RCP = _function("rcp(x)", "``1 / x``.", "``-1 / x ** 2``; -inf at 0",
    Rule.FLOATS, "safeRcp", np.reciprocal, POSITIVE)
EXP = _function("exp(x)", "e to the power of x.", "``exp(x)``",
    Rule.FLOATS, "exp", np.exp, ANY, double="doubleExp")
EXP2 = _function("exp2(x)", "2 to the power of x.", "``log(2) exp2(x)``",
    Rule.FLOATS, "exp2", np.exp2, ANY, double="doubleExp2")
EXPM1 = _function("expm1(x)", "``exp(x) - 1``, exact near 0.", "``exp(x)``",
    Rule.FLOATS, "expm1Of", np.expm1, ANY, double="doubleExpm1")
LOG = _function("log(x)", "The natural logarithm; -inf at 0, NaN below.", "``1 / x``; +inf at 0",
    Rule.FLOATS, "safeLog", np.log, POSITIVE, double="doubleLog")
LOG2 = _function("log2(x)", "The logarithm to base 2.", "``1 / (x log(2))``; +inf at 0",
    Rule.FLOATS, "safeLog2", np.log2, POSITIVE, double="doubleLog2")
LOG10 = _function("log10(x)", "The logarithm to base 10.", "``1 / (x log(10))``; +inf at 0",
    Rule.FLOATS, "safeLog10", np.log10, POSITIVE, double="doubleLog10")
LOG1P = _function("log1p(x)", "``log(1 + x)``, exact near 0.", "``1 / (1 + x)``; +inf at -1",
    Rule.FLOATS, "log1pOf", np.log1p, (-0.5, 3.0), double="doubleLog1p")
SIN = _function("sin(x)", "The sine of an angle in radians.", "``cos(x)``",
    Rule.FLOATS, "sin", np.sin, ANY, double="doubleSin")
COS = _function("cos(x)", "The cosine of an angle in radians.", "``-sin(x)``",
    Rule.FLOATS, "cos", np.cos, ANY, double="doubleCos")
TAN = _function("tan(x)", "The tangent of an angle in radians.", "``1 + tan(x) ** 2``",
    Rule.FLOATS, "tan", np.tan, (-1.2, 1.2), double="doubleTan")
ASIN = _function("asin(x)", "The angle from -pi/2 to pi/2 whose sine is x.",
    "``1 / sqrt(1 - x ** 2)``; +inf at -1 and 1",
    Rule.FLOATS, "safeAsin", np.arcsin, (-0.9, 0.9), double="doubleAsin")
ACOS = _function("acos(x)", "The angle from 0 to pi whose cosine is x.",
    "``-1 / sqrt(1 - x ** 2)``; -inf at -1 and 1",
    Rule.FLOATS, "safeAcos", np.arccos, (-0.9, 0.9), double="doubleAcos")
ATAN = _function("atan(x)", "The angle from -pi/2 to pi/2 whose tangent is x.",
    "``1 / (1 + x ** 2)``",
    Rule.FLOATS, "atan", np.arctan, ANY, double="doubleAtan")
SINH = _function("sinh(x)", "The hyperbolic sine.", "``cosh(x)``",
    Rule.FLOATS, "sinh", np.sinh, ANY, double="doubleSinh")
COSH = _function("cosh(x)", "The hyperbolic cosine.", "``sinh(x)``",
    Rule.FLOATS, "cosh", np.cosh, ANY, double="doubleCosh")
TANH = _function("tanh(x)", "The hyperbolic tangent.", "``1 - tanh(x) ** 2``",
    Rule.FLOATS, "tanh", np.tanh, ANY, double="doubleTanh")
ASINH = _function("asinh(x)", "The inverse of the hyperbolic sine.", "``1 / sqrt(x ** 2 + 1)``",
    Rule.FLOATS, "asinhOf", np.arcsinh, ANY, double="doubleAsinh")
ACOSH = _function("acosh(x)", "The inverse of the hyperbolic cosine; NaN below 1.",
    "``1 / sqrt(x ** 2 - 1)``; +inf at 1",
    Rule.FLOATS, "safeAcosh", np.arccosh, (1.2, 3.0), double="doubleAcosh")
ATANH = _function("atanh(x)", "The inverse of the hyperbolic tangent.",
    "``1 / (1 - x ** 2)``; +inf at -1 and 1",
    Rule.FLOATS, "safeAtanh", np.arctanh, (-0.9, 0.9), double="doubleAtanh")
ERF = _function("erf(x)",
    "The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to x.",
    "``2 / sqrt(pi) exp(-x ** 2)``",
    Rule.FLOATS, "erfOf", _each(math.erf), ANY, double="doubleErf")
ERFC = _function("erfc(x)",
    "The complementary error function ``1 - erf(x)``; its tail keeps its relative precision.",
    "``-2 / sqrt(pi) exp(-x ** 2)``",
    Rule.FLOATS, "erfcOf", _each(math.erfc), ANY, double="doubleErfc")
RADIANS = _function("radians(x)", "Degrees as radians, ``x pi / 180``.", "``pi / 180``",
    Rule.FLOATS, "radians", np.radians, ANY, double="doubleRadians")
DEGREES = _function("degrees(x)", "Radians as degrees, ``x 180 / pi``.", "``180 / pi``",
    Rule.FLOATS, "degrees", np.degrees, ANY, double="doubleDegrees")
SATURATE = _function("saturate(x)", "``clamp(x, 0, 1)``.", "1 from 0 to 1, both included, else 0",
    Rule.FLOATS, "saturateOf", lambda x: np.clip(x, 0, 1), (0.1, 0.9))
ATAN2 = _function("atan2(y, x)", "The angle of the point (x, y), from -pi to pi.",
    "``x / (x ** 2 + y ** 2)`` by y, ``-y / (x ** 2 + y ** 2)`` by x; 0 at the origin",
    Rule.FLOATS, "safeAtan2", np.arctan2, POSITIVE, ANY, double="doubleAtan2")
FMOD = _function("fmod(x, y)", "``x - y trunc(x / y)``: the remainder with the sign of x, as in C.",
    "1 by x, ``-trunc(x / y)`` by y",
    Rule.FLOATS, "fmodOf", np.fmod, (1.1, 1.9), (0.52, 0.54))
HYPOT = _function("hypot(x, y)", "``sqrt(x ** 2 + y ** 2)``, which neither overflows nor vanishes "
    "before its result does.", "``x / hypot(x, y)``, ``y / hypot(x, y)``; 0 at the origin",
    Rule.FLOATS, "hypotOf", np.hypot, POSITIVE, POSITIVE)
COPYSIGN = _function("copysign(x, y)", "The absolute value of x with the sign of y.",
    "1 by x where the signs agree, else -1; 0 by y",
    Rule.FLOATS, "copysignOf", np.copysign, POSITIVE, POSITIVE)
# The rounding error of a float product, with which a long product is carried in two floats.
PRODUCT_ERROR = _operator("product_error(a, b)", Rule.FLOATS, "productErrorOf", _nothing, ANY, ANY)
# The product in derivatives: zero times infinity is zero.
TIMES = _operator("times(partial, d)", Rule.FLOATS, "timesOf", _times, ANY, ANY)
STEP = _function("step(edge, x)", "1 where ``x >= edge``, else 0.", "0",
    Rule.FLOATS, "stepOf", lambda edge, x: (x >= edge) * 1.0, (-2.0, -1.0), POSITIVE)
# The first operand that attains the result takes the whole derivative; NaN never wins.
MIN = _function("min(a, b)", "The smaller of two; of one array its least element, over ``axis``. "
    "NaN never wins.", "1 by the first operand that attains it, 0 by the other",
    Rule.NUMBERS, "minFirst", np.fmin, (1.0, 2.0), (2.5, 3.0))
MAX = _function("max(a, b)", "The larger of two; of one array its greatest element, over "
    "``axis``. NaN never wins.", "1 by the first operand that attains it, 0 by the other",
    Rule.NUMBERS, "maxFirst", np.fmax, (1.0, 2.0), (2.5, 3.0))
CLAMP = _function("clamp(x, lo, hi)", "``min(max(x, lo), hi)``.",
    "1 by x from lo to hi, both included; else 1 by the bound that is taken",
    Rule.NUMBERS, "clampFirst", lambda x, low, high: np.fmin(np.fmax(x, low), high),
    (1.0, 2.0), (-1.0, 0.0), (2.5, 3.0))
LERP = _function("lerp(a, b, t)", "``a + (b - a) t``.", "``1 - t``, ``t``, ``b - a``",
    Rule.FLOATS, "lerpOf", lambda a, b, t: a + (b - a) * t, ANY, ANY, ANY)
SMOOTHSTEP = _function("smoothstep(lo, hi, x)",
    "``t ** 2 (3 - 2 t)`` with ``t = clamp((x - lo) / (hi - lo), 0, 1)``.",
    "``6 t (1 - t)`` times that of t; 0 outside of lo to hi",
    Rule.FLOATS, "smoothstepOf", _smoothstep, (-1.0, 0.0), (2.0, 3.0), (0.1, 1.9))
MAD = _function("mad(a, b, c)", "``a * b + c``.", "b, a, 1",
    Rule.NUMBERS, "madOf", lambda a, b, c: a * b + c, ANY, ANY, ANY)
# Exact for negative bases; the exponent is a `Const` int.
POWI = _operator("powi(x, n)", Rule.POWER, "powi", np.power, (-3.0, -0.2), ANY)
SELECT = _function("select(c, a, b)", "a where c holds, else b; both are evaluated.",
    "1 by the one that is taken, 0 by the other",
    Rule.SELECT, "selectOf", np.where, ANY, ANY, ANY)
ISNAN = _function("isnan(x)", "Whether the bits of x are those of a NaN.", "",
    Rule.TEST, "isNan", np.isnan, ANY)
ISINF = _function("isinf(x)", "Whether x is an infinity.", "",
    Rule.TEST, "isInfinite", np.isinf, ANY)
ISFINITE = _function("isfinite(x)", "Whether x is neither infinite nor NaN.", "",
    Rule.TEST, "isFinite", np.isfinite, ANY)
ANY_OF = _function("any(v)", "Whether a component of a bool vector holds; of an array whether an "
    "element does, over ``axis``.", "",
    Rule.REDUCE_BOOL, "any", np.any, ANY)
ALL_OF = _function("all(v)", "Whether all components of a bool vector hold; of an array whether "
    "all elements do, over ``axis``.", "",
    Rule.REDUCE_BOOL, "all", np.all, ANY)
# float -> int, as Python's int(), round(), math.floor(), math.ceil() give ints.
ROUND_INT = _operator("round_int(x)", Rule.TO_INT, "roundToInt", np.round, ANY)
FLOOR_INT = _operator("floor_int(x)", Rule.TO_INT, "floorToInt", np.floor, ANY)
CEIL_INT = _operator("ceil_int(x)", Rule.TO_INT, "ceilToInt", np.ceil, ANY)

# Vectors and matrices.
DOT = _function("dot(a, b)", "The sum of ``a[k] * b[k]`` over the components of two vectors.",
    "b, a",
    Rule.DOT, "dot", _dot, ANY, ANY)
CROSS = _function("cross(a, b)", "The vector at right angles to both, ``|a| |b|`` times the sine "
    "of their angle long.", "``cross(b, out_bar)``, ``cross(out_bar, a)``",
    Rule.VECTOR3, "cross", np.cross, ANY, ANY)
LENGTH = _function("length(v)", "``sqrt(dot(v, v))``.", "``v / length(v)``; 0 at length 0",
    Rule.NORM, "lengthOf", _norm, ANY)
DISTANCE = _function("distance(a, b)", "``length(a - b)``.",
    "that of `length`; 0 where both are one point",
    Rule.NORM, "distanceOf", lambda a, b: _norm(a - b), ANY, ANY)
NORMALIZE = _function("normalize(v)", "``v / length(v)``; 0 at length 0.",
    "what ``out_bar / length(v)`` has at right angles to v; 0 at length 0",
    Rule.VECTORS, "normalizeOf", _normalize, ANY)
REFLECT = _function("reflect(i, n)", "``i - 2 dot(n, i) n``: i, reflected by a plane of unit "
    "normal n.", "that of the formula",
    Rule.VECTORS, "reflectOf", lambda i, n: i - 2 * _dot(n, i)[..., None] * n, ANY, ANY)
REFRACT = _function("refract(i, n, eta)", "The direction i after a boundary of unit normal n and "
    "ratio of indices eta; 0 at total reflection.", "that of the formula; 0 at total reflection",
    Rule.REFRACT, "refractOf", _refract, ANY, ANY, (0.3, 0.6))
TRANSPOSE = _function("transpose(m)", "Rows as columns.", "``transpose(out_bar)``",
    Rule.TRANSPOSE, "transpose", lambda m: np.swapaxes(m, -1, -2), ANY)
DETERMINANT = _function("determinant(m)", "The determinant of a square matrix.",
    "the matrix of cofactors",
    Rule.DETERMINANT, "determinantOf", np.linalg.det, ANY)
INVERSE = _function("inverse(m)", "The inverse of a square matrix.",
    "``-transpose(inverse(m)) @ out_bar @ transpose(inverse(m))``",
    Rule.SQUARE, "inverseOf", np.linalg.inv, ANY)

# Random numbers: Jarzynski, Olano, "Hash Functions for GPU Rendering", JCGT 9(3), 2020.
PCG = _function("pcg(seed)", "A hash of a ``uint``, for random numbers (Jarzynski and Olano, Hash "
    "Functions for GPU Rendering, JCGT 9(3), 2020).", "",
    Rule.HASH, "pcg", _pcg)
UNIFORM01 = _function("uniform01(bits)", "The upper 24 bits of a ``uint`` as a float from 0 to "
    "below 1.", "",
    Rule.UNIFORM01, "uniform01", lambda x: (x >> 8) * 2.0**-24)
# fmt: on


def result_type(op: Op, types: tuple[Type, ...]) -> Type | None:
    """The type of ``op(*types)``; `None` where the op's rule does not admit them.

    Operands have been converted and splatted already. The front end makes this check before it
    builds a node, and the verifier repeats it.
    """
    if len(types) != op.arity:
        return None
    return _RESULT[op.rule](types)


def _same(types: tuple[Type, ...], test: Callable[[Type], bool]) -> Type | None:
    return types[0] if test(types[0]) and all(t == types[0] for t in types) else None


def _compare(types: tuple[Type, ...], test: Callable[[Type], bool]) -> Type | None:
    shared = _same(types, test)
    return None if shared is None else with_scalar(shared, BOOL)


def _is_number(t: Type) -> bool:
    return is_float(t) or is_integer(t)


def _is_float_vector(t: Type) -> bool:
    return isinstance(t, Vector) and is_float(t)


def _norm_type(types: tuple[Type, ...]) -> Type | None:
    shared = _same(types, _is_float_vector)
    return None if shared is None else scalar_of(shared)


def _cross_type(types: tuple[Type, ...]) -> Type | None:
    shared = _same(types, _is_float_vector)
    return shared if isinstance(shared, Vector) and shared.count == 3 else None


def _refract_type(types: tuple[Type, ...]) -> Type | None:
    shared = _same(types[:2], _is_float_vector)
    return shared if shared is not None and types[2] == scalar_of(shared) else None


def _matmul_type(types: tuple[Type, ...]) -> Type | None:
    a, b = types
    if scalar_of(a) != scalar_of(b) or not is_float(a):
        return None
    if isinstance(a, Matrix) and isinstance(b, Matrix) and a.column_count == b.row_count:
        return Matrix(a.element, a.row_count, b.column_count)
    if isinstance(a, Matrix) and isinstance(b, Vector) and a.column_count == b.count:
        return Vector(a.element, a.row_count)
    if isinstance(a, Vector) and isinstance(b, Matrix) and a.count == b.row_count:
        return Vector(a.element, b.column_count)
    return None


def _transpose_type(types: tuple[Type, ...]) -> Type | None:
    (m,) = types
    return Matrix(m.element, m.column_count, m.row_count) if isinstance(m, Matrix) else None


def _square_type(types: tuple[Type, ...]) -> Type | None:
    (m,) = types
    is_square = isinstance(m, Matrix) and m.row_count == m.column_count and is_float(m)
    return m if is_square else None


def _determinant_type(types: tuple[Type, ...]) -> Type | None:
    square = _square_type(types)
    return None if square is None else scalar_of(square)


def _select_type(types: tuple[Type, ...]) -> Type | None:
    condition, a, b = types
    if a != b:
        return None
    by_component = isinstance(a, Vector) and condition == Vector(BOOL, a.count)
    return a if condition == BOOL or by_component else None


_RESULT: dict[Rule, Callable[[tuple[Type, ...]], Type | None]] = {
    Rule.FLOATS: lambda ts: _same(ts, is_float),
    Rule.NUMBERS: lambda ts: _same(ts, _is_number),
    Rule.INTEGERS: lambda ts: _same(ts, is_integer),
    Rule.BITS: lambda ts: _same(ts, lambda t: is_integer(t) or is_bool(t)),
    Rule.COMPARE: lambda ts: _compare(ts, _is_number),
    Rule.EQUAL: lambda ts: _compare(ts, lambda t: scalar_of(t) is not None),
    Rule.BOOLS: lambda ts: _same(ts, is_bool),
    Rule.TEST: lambda ts: _compare(ts, is_float),
    Rule.REDUCE_BOOL: lambda ts: BOOL if isinstance(ts[0], Vector) and is_bool(ts[0]) else None,
    Rule.DOT: _norm_type,
    Rule.NORM: _norm_type,
    Rule.VECTORS: lambda ts: _same(ts, _is_float_vector),
    Rule.VECTOR3: _cross_type,
    Rule.REFRACT: _refract_type,
    Rule.MATMUL: _matmul_type,
    Rule.TRANSPOSE: _transpose_type,
    Rule.DETERMINANT: _determinant_type,
    Rule.SQUARE: _square_type,
    Rule.POWER: lambda ts: ts[0] if _is_number(ts[0]) and ts[1] == INT else None,
    Rule.SELECT: _select_type,
    Rule.TO_INT: lambda ts: with_scalar(ts[0], INT) if is_float(ts[0]) else None,
    Rule.HASH: lambda ts: UINT if ts[0] == UINT else None,
    Rule.UNIFORM01: lambda ts: FLOAT if ts[0] == UINT else None,
}
check_rows(_RESULT, Rule)


def slang_function(op: Op, t: Type) -> str:
    """The Slang spelling of `op` for operands of type `t`."""
    return op.double if op.double and scalar_of(t) == DOUBLE else op.slang


PUBLIC = {name: op for name, op in TABLE.items() if op.value}

SYNONYMS = {"maximum": MAX, "minimum": MIN, "clip": CLAMP}
"""Further names, which always work by element; ``max(x)`` and ``min(x)`` reduce an array."""


def synonym_signature(name: str) -> str:
    """The signature of a name in `SYNONYMS`."""
    return f"{name}({', '.join(SYNONYMS[name].parameters)})"


def synonym_value(name: str) -> str:
    """The description of a name in `SYNONYMS`."""
    op = SYNONYMS[name]
    extra = "of arrays, `None` is no bound" if op == CLAMP else "it never reduces an array"
    return f"``{op.signature}``, by element; {extra}."
