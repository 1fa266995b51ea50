"""What ``help`` says of the primitives: parameters, value, and derivative at singular points too.

One row an op of ``ir/ops.py``; what it takes and gives follows from its type rule.
"""

from __future__ import annotations

from shaderad.ir import ops
from shaderad.ir.ops import Rule

_BY_COMPONENT = "scalars, vectors or matrices of one type, by component"
_TYPES = {
    Rule.FLOATS: f"Takes and gives floats (float, half, double): {_BY_COMPONENT}.",
    Rule.NUMBERS: f"Takes and gives numbers (floats, int, uint): {_BY_COMPONENT}.",
    Rule.TEST: "Takes floats and gives bools, by component.",
    Rule.REDUCE_BOOL: "Takes a bool vector and gives a bool.",
    Rule.DOT: "Takes two vectors of floats and gives a scalar.",
    Rule.NORM: "Takes vectors of floats and gives a scalar.",
    Rule.VECTORS: "Takes and gives vectors of floats.",
    Rule.VECTOR3: "Takes and gives vectors of three floats.",
    Rule.REFRACT: "Takes two vectors of floats and a scalar, and gives a vector.",
    Rule.MATMUL: "Takes two matrices of floats, or a matrix and a vector.",
    Rule.TRANSPOSE: "Takes and gives a matrix.",
    Rule.DETERMINANT: "Takes a square matrix of floats and gives a scalar.",
    Rule.SQUARE: "Takes and gives a square matrix of floats.",
    Rule.SELECT: "Takes a bool, or one a component, and two values of one type, which it gives.",
    Rule.HASH: "Takes and gives a uint.",
    Rule.UNIFORM01: "Takes a uint and gives a float.",
}

_ROWS: dict[str, tuple[str, str, str]] = {
    "add": ("a, b", "``a + b``.", "1, 1"),
    "mul": ("a, b", "``a * b`` by component; the matrix product is `matmul`.", "b, a"),
    "pow": (
        "x, y",
        "``x ** y``; NaN for a negative x and a y that is not whole.",
        "``y * x ** (y - 1)`` by x, ``x ** y * log(x)`` by y; 0 by y where x is 0",
    ),
    "matmul": (
        "a, b",
        "The matrix product ``a @ b``, also with a vector on either side.",
        "``out_bar @ transpose(b)``, ``transpose(a) @ out_bar``",
    ),
    "abs": ("x", "The absolute value.", "the sign of x; 0 at 0"),
    "sign": ("x", "-1, 0 or 1.", "0"),
    "floor": ("x", "The largest whole number that is not above x, as a float.", "0"),
    "ceil": ("x", "The smallest whole number that is not below x, as a float.", "0"),
    "round": ("x", "The nearest whole number, as a float; halves go to even.", "0"),
    "trunc": ("x", "x without its fraction, as a float.", "0"),
    "frac": ("x", "``x - floor(x)``.", "1"),
    "sqrt": ("x", "The square root; NaN below 0.", "``1 / (2 sqrt(x))``; +inf at 0"),
    "rsqrt": ("x", "``1 / sqrt(x)``.", "``-rsqrt(x) / (2 x)``; -inf at 0"),
    "rcp": ("x", "``1 / x``.", "``-1 / x ** 2``; -inf at 0"),
    "exp": ("x", "e to the power of x.", "``exp(x)``"),
    "exp2": ("x", "2 to the power of x.", "``log(2) exp2(x)``"),
    "expm1": ("x", "``exp(x) - 1``, exact near 0.", "``exp(x)``"),
    "log": ("x", "The natural logarithm; -inf at 0, NaN below.", "``1 / x``; +inf at 0"),
    "log2": ("x", "The logarithm to base 2.", "``1 / (x log(2))``; +inf at 0"),
    "log10": ("x", "The logarithm to base 10.", "``1 / (x log(10))``; +inf at 0"),
    "log1p": ("x", "``log(1 + x)``, exact near 0.", "``1 / (1 + x)``; +inf at -1"),
    "sin": ("x", "The sine of an angle in radians.", "``cos(x)``"),
    "cos": ("x", "The cosine of an angle in radians.", "``-sin(x)``"),
    "tan": ("x", "The tangent of an angle in radians.", "``1 + tan(x) ** 2``"),
    "asin": (
        "x",
        "The angle from -pi/2 to pi/2 whose sine is x.",
        "``1 / sqrt(1 - x ** 2)``; +inf at -1 and 1",
    ),
    "acos": (
        "x",
        "The angle from 0 to pi whose cosine is x.",
        "``-1 / sqrt(1 - x ** 2)``; -inf at -1 and 1",
    ),
    "atan": ("x", "The angle from -pi/2 to pi/2 whose tangent is x.", "``1 / (1 + x ** 2)``"),
    "sinh": ("x", "The hyperbolic sine.", "``cosh(x)``"),
    "cosh": ("x", "The hyperbolic cosine.", "``sinh(x)``"),
    "tanh": ("x", "The hyperbolic tangent.", "``1 - tanh(x) ** 2``"),
    "asinh": ("x", "The inverse of the hyperbolic sine.", "``1 / sqrt(x ** 2 + 1)``"),
    "acosh": (
        "x",
        "The inverse of the hyperbolic cosine; NaN below 1.",
        "``1 / sqrt(x ** 2 - 1)``; +inf at 1",
    ),
    "atanh": (
        "x",
        "The inverse of the hyperbolic tangent.",
        "``1 / (1 - x ** 2)``; +inf at -1 and 1",
    ),
    "erf": (
        "x",
        "The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` from 0 to x.",
        "``2 / sqrt(pi) exp(-x ** 2)``",
    ),
    "radians": ("x", "Degrees as radians, ``x pi / 180``.", "``pi / 180``"),
    "degrees": ("x", "Radians as degrees, ``x 180 / pi``.", "``180 / pi``"),
    "saturate": ("x", "``clamp(x, 0, 1)``.", "1 from 0 to 1, both included, else 0"),
    "atan2": (
        "y, x",
        "The angle of the point (x, y), from -pi to pi.",
        "``x / (x ** 2 + y ** 2)`` by y, ``-y / (x ** 2 + y ** 2)`` by x; 0 at the origin",
    ),
    "fmod": (
        "x, y",
        "``x - y trunc(x / y)``: the remainder with the sign of x, as in C.",
        "1 by x, ``-trunc(x / y)`` by y",
    ),
    "hypot": (
        "x, y",
        "``sqrt(x ** 2 + y ** 2)``, which neither overflows nor vanishes before its result does.",
        "``x / hypot(x, y)``, ``y / hypot(x, y)``; 0 at the origin",
    ),
    "copysign": (
        "x, y",
        "The absolute value of x with the sign of y.",
        "1 by x where the signs agree, else -1; 0 by y",
    ),
    "step": ("edge, x", "1 where ``x >= edge``, else 0.", "0"),
    "min": (
        "a, b",
        "The smaller of two; of one array its least element, over ``axis``. NaN never wins.",
        "1 by the first operand that attains it, 0 by the other",
    ),
    "max": (
        "a, b",
        "The larger of two; of one array its greatest element, over ``axis``. NaN never wins.",
        "1 by the first operand that attains it, 0 by the other",
    ),
    "clamp": (
        "x, lo, hi",
        "``min(max(x, lo), hi)``.",
        "1 by x from lo to hi, both included; else 1 by the bound that is taken",
    ),
    "lerp": ("a, b, t", "``a + (b - a) t``.", "``1 - t``, ``t``, ``b - a``"),
    "smoothstep": (
        "lo, hi, x",
        "``t ** 2 (3 - 2 t)`` with ``t = clamp((x - lo) / (hi - lo), 0, 1)``.",
        "``6 t (1 - t)`` times that of t; 0 outside of lo to hi",
    ),
    "mad": ("a, b, c", "``a * b + c``.", "b, a, 1"),
    "select": (
        "c, a, b",
        "a where c holds, else b; both are evaluated.",
        "1 by the one that is taken, 0 by the other",
    ),
    "isnan": ("x", "Whether the bits of x are those of a NaN.", ""),
    "isinf": ("x", "Whether x is an infinity.", ""),
    "isfinite": ("x", "Whether x is neither infinite nor NaN.", ""),
    "any": (
        "v",
        "Whether a component of a bool vector holds; of an array whether an element does, over "
        "``axis``.",
        "",
    ),
    "all": (
        "v",
        "Whether all components of a bool vector hold; of an array whether all elements do, "
        "over ``axis``.",
        "",
    ),
    "dot": ("a, b", "The sum of ``a[k] * b[k]`` over the components of two vectors.", "b, a"),
    "cross": (
        "a, b",
        "The vector at right angles to both, ``|a| |b|`` times the sine of their angle long.",
        "``cross(b, out_bar)``, ``cross(out_bar, a)``",
    ),
    "length": ("v", "``sqrt(dot(v, v))``.", "``v / length(v)``; 0 at length 0"),
    "distance": ("a, b", "``length(a - b)``.", "that of `length`; 0 where both are one point"),
    "normalize": (
        "v",
        "``v / length(v)``; 0 at length 0.",
        "what ``out_bar / length(v)`` has at right angles to v; 0 at length 0",
    ),
    "reflect": (
        "i, n",
        "``i - 2 dot(n, i) n``: i, reflected by a plane of unit normal n.",
        "that of the formula",
    ),
    "refract": (
        "i, n, eta",
        "The direction i after a boundary of unit normal n and ratio of indices eta; 0 at total "
        "reflection.",
        "that of the formula; 0 at total reflection",
    ),
    "transpose": ("m", "Rows as columns.", "``transpose(out_bar)``"),
    "determinant": ("m", "The determinant of a square matrix.", "the matrix of cofactors"),
    "inverse": (
        "m",
        "The inverse of a square matrix.",
        "``-transpose(inverse(m)) @ out_bar @ transpose(inverse(m))``",
    ),
    "pcg": (
        "seed",
        "A hash of a ``uint``, for random numbers (Jarzynski and Olano, Hash Functions for GPU "
        "Rendering, JCGT 9(3), 2020).",
        "",
    ),
    "uniform01": ("bits", "The upper 24 bits of a ``uint`` as a float from 0 to below 1.", ""),
}
"""By op: its parameters, its value, and its derivative by each; empty where it has none."""


def documentation(op: ops.Op) -> str:
    """The docstring of a public primitive."""
    parameters, value, derivative = _ROWS[op.name]
    derived = f"Derivative: {derivative}." if derivative else "No derivative."
    return f"{op.name}({parameters})\n\n{value}\n\n{_TYPES[op.rule]}\n{derived}"
