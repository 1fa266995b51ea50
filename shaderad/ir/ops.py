"""The primitives: names, type rule, Slang spelling, NumPy function, test domain.

One row an op. ``rules/partials.py`` holds the derivatives, one row each. Every op works on
scalars and, where its rule says so, by component on vectors and matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

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


class Rule(Enum):
    """How the result type follows from operands that already share one type (if not said else)."""

    FLOATS = auto()  # float operands of one type -> that type
    NUMBERS = auto()  # float or integer operands of one type -> that type
    INTEGERS = auto()  # integer operands of one type -> that type
    BITS = auto()  # integer or bool operands of one type -> that type
    COMPARE = auto()  # numbers of one type -> bool by component
    EQUAL = auto()  # numbers or bools of one type -> bool by component
    BOOLS = auto()  # bools -> bools
    TEST = auto()  # one float -> bool by component
    REDUCE_BOOL = auto()  # one bool vector -> bool
    DOT = auto()  # two float vectors -> scalar
    NORM = auto()  # one or two float vectors -> scalar
    VECTORS = auto()  # float vectors of one type -> that type
    VECTOR3 = auto()  # two float3 -> float3
    REFRACT = auto()  # vector, vector, scalar -> vector
    MATMUL = auto()  # matrix @ matrix, matrix @ vector, vector @ matrix
    TRANSPOSE = auto()  # matrix -> matrix
    DETERMINANT = auto()  # square matrix -> scalar
    SQUARE = auto()  # square matrix -> the same
    POWER = auto()  # number, int scalar -> type of the first
    SELECT = auto()  # bool (scalar or by component), a, b -> type of a
    TO_INT = auto()  # float -> int by component
    HASH = auto()  # uint -> uint
    UNIFORM01 = auto()  # uint -> float


Domain = tuple[float, float]
ANY: Domain = (-3.0, 3.0)
POSITIVE: Domain = (0.1, 3.0)


@dataclass(frozen=True)
class Op:
    """A primitive. Compared by name."""

    name: str
    """The ``sad.*`` name, or the word used in messages for operators."""
    rule: Rule
    arity: int
    slang: str
    """``{0} + {1}`` for operators, a function name of Slang or of our library otherwise."""
    numpy: Callable[..., object]
    domain: tuple[Domain, ...] = ()
    """Open intervals from which tests draw each operand, away from kinks."""
    is_public: bool = True
    """Whether ``sad.<name>`` exists."""

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.name == self.name

    def __repr__(self) -> str:
        return f"ops.{self.name}"


TABLE: dict[str, Op] = {}


def _op(
    name: str,
    rule: Rule,
    slang: str,
    function: Callable[..., object],
    *domain: Domain,
    public: bool = True,
) -> Op:
    count = len(domain) or (function.nin if isinstance(function, np.ufunc) else 1)
    op = Op(name, rule, count, slang, function, domain, public)
    TABLE[name] = op
    return op


def _frac(x: np.ndarray) -> np.ndarray:
    return x - np.floor(x)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(x * x, axis=-1))


def _normalize(x: np.ndarray) -> np.ndarray:
    length = _norm(x)[..., None]
    return np.where(length > 0, x / np.where(length > 0, length, 1), 0)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=-1)


def _reflect(i: np.ndarray, n: np.ndarray) -> np.ndarray:
    return i - 2 * _dot(n, i)[..., None] * n


def _refract(i: np.ndarray, n: np.ndarray, eta: np.ndarray) -> np.ndarray:
    cosine = _dot(n, i)
    k = 1 - eta * eta * (1 - cosine * cosine)
    out = eta[..., None] * i - (eta * cosine + np.sqrt(np.maximum(k, 0)))[..., None] * n
    return np.where((k < 0)[..., None], 0, out)


def _smoothstep(low: np.ndarray, high: np.ndarray, x: np.ndarray) -> np.ndarray:
    t = np.clip((x - low) / (high - low), 0, 1)
    return t * t * (3 - 2 * t)


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _saturate(x: np.ndarray) -> np.ndarray:
    return np.clip(x, 0, 1)


def _step(edge: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (x >= edge) * 1.0


def _clamp(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.fmin(np.fmax(x, low), high)


def _lerp(a: np.ndarray, b: np.ndarray, t: np.ndarray) -> np.ndarray:
    return a + (b - a) * t


def _mad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a * b + c


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _norm(a - b)


def _transpose(m: np.ndarray) -> np.ndarray:
    return np.swapaxes(m, -1, -2)


def _uniform01(x: np.ndarray) -> np.ndarray:
    return (x >> 8) * 2.0**-24


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x)


def _pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.power(x, y)


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


def _floor_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.floor_divide(a, b)


# Operators: the front end reaches them through Python syntax.
ADD = _op("add", Rule.NUMBERS, "{0} + {1}", np.add, ANY, ANY)
SUB = _op("subtract", Rule.NUMBERS, "{0} - {1}", np.subtract, ANY, ANY, public=False)
MUL = _op("mul", Rule.NUMBERS, "{0} * {1}", np.multiply, ANY, ANY)
DIV = _op("divide", Rule.FLOATS, "{0} / {1}", np.divide, ANY, POSITIVE, public=False)
NEG = _op("negate", Rule.NUMBERS, "-{0}", np.negative, ANY, public=False)
# `//` and `%` floor as in Python; by 0 the integer forms give 0 and are reported.
FLOOR_DIV = _op("floor_divide", Rule.NUMBERS, "floorDivide", _floor_divide, (1.1, 1.9), (0.2, 0.24),
                public=False)  # fmt: skip
MOD = _op("mod", Rule.NUMBERS, "floorModulo", np.mod, (1.1, 1.9), (0.52, 0.54), public=False)
# Whole constant exponents never arrive here: the front end emits `POWI`.
POW = _op("pow", Rule.FLOATS, "safePow", _pow, POSITIVE, ANY)
BIT_AND = _op("bit_and", Rule.BITS, "{0} & {1}", np.bitwise_and, public=False)
BIT_OR = _op("bit_or", Rule.BITS, "{0} | {1}", np.bitwise_or, public=False)
BIT_XOR = _op("bit_xor", Rule.BITS, "{0} ^ {1}", np.bitwise_xor, public=False)
BIT_NOT = _op("bit_not", Rule.BITS, "~{0}", np.invert, public=False)
# Shift counts are taken modulo 32.
SHIFT_LEFT = _op("shift_left", Rule.INTEGERS, "shiftLeft", np.left_shift, public=False)
SHIFT_RIGHT = _op("shift_right", Rule.INTEGERS, "shiftRight", np.right_shift, public=False)
NOT = _op("not", Rule.BOOLS, "!{0}", np.logical_not, public=False)
EQ = _op("equal", Rule.EQUAL, "{0} == {1}", np.equal, public=False)
NE = _op("not_equal", Rule.EQUAL, "{0} != {1}", np.not_equal, public=False)
LT = _op("less", Rule.COMPARE, "{0} < {1}", np.less, public=False)
LE = _op("less_equal", Rule.COMPARE, "{0} <= {1}", np.less_equal, public=False)
GT = _op("greater", Rule.COMPARE, "{0} > {1}", np.greater, public=False)
GE = _op("greater_equal", Rule.COMPARE, "{0} >= {1}", np.greater_equal, public=False)
MATMUL = _op("matmul", Rule.MATMUL, "mul", np.matmul, ANY, ANY)

# By component. Names as in Slang and HLSL.
ABS = _op("abs", Rule.NUMBERS, "absOf", np.abs, POSITIVE)
SIGN = _op("sign", Rule.NUMBERS, "signOf", np.sign, POSITIVE)
FLOOR = _op("floor", Rule.FLOATS, "floorOf", np.floor, (1.1, 1.9))
CEIL = _op("ceil", Rule.FLOATS, "ceilOf", np.ceil, (1.1, 1.9))
ROUND = _op("round", Rule.FLOATS, "roundOf", np.round, (1.6, 2.4))  # halves to even
TRUNC = _op("trunc", Rule.FLOATS, "truncOf", np.trunc, (1.1, 1.9))
FRAC = _op("frac", Rule.FLOATS, "fracOf", _frac, (1.1, 1.9))
SQRT = _op("sqrt", Rule.FLOATS, "safeSqrt", np.sqrt, POSITIVE)
RSQRT = _op("rsqrt", Rule.FLOATS, "safeRsqrt", _rsqrt, POSITIVE)
RCP = _op("rcp", Rule.FLOATS, "safeRcp", np.reciprocal, POSITIVE)
EXP = _op("exp", Rule.FLOATS, "exp", np.exp, ANY)
EXP2 = _op("exp2", Rule.FLOATS, "exp2", np.exp2, ANY)
EXPM1 = _op("expm1", Rule.FLOATS, "expm1Of", np.expm1, ANY)
LOG = _op("log", Rule.FLOATS, "safeLog", np.log, POSITIVE)
LOG2 = _op("log2", Rule.FLOATS, "safeLog2", np.log2, POSITIVE)
LOG10 = _op("log10", Rule.FLOATS, "safeLog10", np.log10, POSITIVE)
LOG1P = _op("log1p", Rule.FLOATS, "log1pOf", np.log1p, (-0.5, 3.0))
SIN = _op("sin", Rule.FLOATS, "sin", np.sin, ANY)
COS = _op("cos", Rule.FLOATS, "cos", np.cos, ANY)
TAN = _op("tan", Rule.FLOATS, "tan", np.tan, (-1.2, 1.2))
ASIN = _op("asin", Rule.FLOATS, "safeAsin", np.arcsin, (-0.9, 0.9))
ACOS = _op("acos", Rule.FLOATS, "safeAcos", np.arccos, (-0.9, 0.9))
ATAN = _op("atan", Rule.FLOATS, "atan", np.arctan, ANY)
SINH = _op("sinh", Rule.FLOATS, "sinh", np.sinh, ANY)
COSH = _op("cosh", Rule.FLOATS, "cosh", np.cosh, ANY)
TANH = _op("tanh", Rule.FLOATS, "tanh", np.tanh, ANY)
ASINH = _op("asinh", Rule.FLOATS, "asinhOf", np.arcsinh, ANY)
ACOSH = _op("acosh", Rule.FLOATS, "safeAcosh", np.arccosh, (1.2, 3.0))
ATANH = _op("atanh", Rule.FLOATS, "safeAtanh", np.arctanh, (-0.9, 0.9))
ERF = _op("erf", Rule.FLOATS, "erfOf", _erf, ANY)
RADIANS = _op("radians", Rule.FLOATS, "radians", np.radians, ANY)
DEGREES = _op("degrees", Rule.FLOATS, "degrees", np.degrees, ANY)
SATURATE = _op("saturate", Rule.FLOATS, "saturateOf", _saturate, (0.1, 0.9))
ATAN2 = _op("atan2", Rule.FLOATS, "safeAtan2", np.arctan2, POSITIVE, ANY)
FMOD = _op("fmod", Rule.FLOATS, "fmodOf", np.fmod, (1.1, 1.9), (0.52, 0.54))
HYPOT = _op("hypot", Rule.FLOATS, "hypotOf", np.hypot, POSITIVE, POSITIVE)
COPYSIGN = _op("copysign", Rule.FLOATS, "copysignOf", np.copysign, POSITIVE, POSITIVE)
# What a float product loses in rounding: with it a long product can be carried in two floats.
PRODUCT_ERROR = _op("product_error", Rule.FLOATS, "productErrorOf", _nothing, ANY, ANY,
                    public=False)  # fmt: skip
# What derivatives multiply by: zero times infinity is zero.
TIMES = _op("times", Rule.FLOATS, "timesOf", _times, ANY, ANY, public=False)
STEP = _op("step", Rule.FLOATS, "stepOf", _step, (-2.0, -1.0), POSITIVE)
# The first operand that attains the result takes the whole derivative; NaN never wins.
MIN = _op("min", Rule.NUMBERS, "minFirst", np.fmin, (1.0, 2.0), (2.5, 3.0))
MAX = _op("max", Rule.NUMBERS, "maxFirst", np.fmax, (1.0, 2.0), (2.5, 3.0))
# clamp(x, lo, hi) = min(max(x, lo), hi), derivatives too.
CLAMP = _op("clamp", Rule.NUMBERS, "clampFirst", _clamp,
            (1.0, 2.0), (-1.0, 0.0), (2.5, 3.0))  # fmt: skip
LERP = _op("lerp", Rule.FLOATS, "lerpOf", _lerp, ANY, ANY, ANY)
SMOOTHSTEP = _op("smoothstep", Rule.FLOATS, "smoothstepOf", _smoothstep,
                 (-1.0, 0.0), (2.0, 3.0), (0.1, 1.9))  # fmt: skip
MAD = _op("mad", Rule.NUMBERS, "madOf", _mad, ANY, ANY, ANY)
# Exact for negative bases; the exponent is a `Const` int.
POWI = _op("powi", Rule.POWER, "powi", _pow, (-3.0, -0.2), ANY,
           public=False)  # fmt: skip
SELECT = _op("select", Rule.SELECT, "selectOf", np.where, ANY, ANY, ANY)
ISNAN = _op("isnan", Rule.TEST, "isNan", np.isnan, ANY)
ISINF = _op("isinf", Rule.TEST, "isInfinite", np.isinf, ANY)
ISFINITE = _op("isfinite", Rule.TEST, "isFinite", np.isfinite, ANY)
ANY_OF = _op("any", Rule.REDUCE_BOOL, "any", np.any, ANY)
ALL_OF = _op("all", Rule.REDUCE_BOOL, "all", np.all, ANY)
# float -> int, as Python's int(), round(), math.floor(), math.ceil() give ints.
ROUND_INT = _op("round_int", Rule.TO_INT, "roundToInt", np.round, ANY, public=False)
FLOOR_INT = _op("floor_int", Rule.TO_INT, "floorToInt", np.floor, ANY, public=False)
CEIL_INT = _op("ceil_int", Rule.TO_INT, "ceilToInt", np.ceil, ANY, public=False)

# Vectors and matrices.
DOT = _op("dot", Rule.DOT, "dot", _dot, ANY, ANY)
CROSS = _op("cross", Rule.VECTOR3, "cross", np.cross, ANY, ANY)
LENGTH = _op("length", Rule.NORM, "lengthOf", _norm, ANY)
DISTANCE = _op("distance", Rule.NORM, "distanceOf", _distance, ANY, ANY)
NORMALIZE = _op("normalize", Rule.VECTORS, "normalizeOf", _normalize, ANY)
REFLECT = _op("reflect", Rule.VECTORS, "reflectOf", _reflect, ANY, ANY)
REFRACT = _op("refract", Rule.REFRACT, "refractOf", _refract, ANY, ANY, (0.3, 0.6))
TRANSPOSE = _op("transpose", Rule.TRANSPOSE, "transpose",
                _transpose, ANY)  # fmt: skip
DETERMINANT = _op("determinant", Rule.DETERMINANT, "determinantOf", np.linalg.det, ANY)
INVERSE = _op("inverse", Rule.SQUARE, "inverseOf", np.linalg.inv, ANY)

# Random numbers: Jarzynski, Olano, "Hash Functions for GPU Rendering", JCGT 9(3), 2020.
PCG = _op("pcg", Rule.HASH, "pcg", _pcg)
UNIFORM01 = _op("uniform01", Rule.UNIFORM01, "uniform01", _uniform01)


def result_type(op: Op, types: tuple[Type, ...]) -> Type | None:
    """The type of ``op(*types)``; `None` where the op's rule does not admit them.

    Operands have been converted and splatted already: this is the check that the front end
    asks before it builds a node and that the verifier repeats.
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


def _to_int(types: tuple[Type, ...]) -> Type | None:
    (t,) = types
    return with_scalar(t, INT) if is_float(t) else None


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
    Rule.TO_INT: _to_int,
    Rule.HASH: lambda ts: UINT if ts[0] == UINT else None,
    Rule.UNIFORM01: lambda ts: FLOAT if ts[0] == UINT else None,
}


def slang_function(op: Op, t: Type) -> str:
    """How Slang spells `op` of operands of type `t`: GPUs have some functions in 32 bits only."""
    if op in _OWN_IN_DOUBLE and scalar_of(t) == DOUBLE:
        return f"double{op.name.capitalize()}"
    return op.slang


_OWN_IN_DOUBLE = frozenset(
    {
        EXP, EXP2, EXPM1, LOG, LOG2, LOG10, LOG1P, SIN, COS, TAN, ASIN, ACOS, ATAN, ATAN2,
        SINH, COSH, TANH, ASINH, ACOSH, ATANH, ERF, POW, RADIANS, DEGREES,
    }
)  # fmt: skip

PUBLIC = {name: op for name, op in TABLE.items() if op.is_public}
