"""Functions of doubles at many points: what mpmath says they are, and what a device gives.

Errors are counted in units in the last place of what is right. Points are drawn where a function
is used, where its method changes or cancels, and over all exponents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.ir import ops
from shaderad.runtime import Runtime
from tests.shaders.op_functions import Functions

Array = np.ndarray
Rng = np.random.Generator
Real = Any
# log(1 + x) and what has sums of 1 and subnormal numbers in it must stay exact.
PRECISION = 220
WORKGROUP = 64
WORST_OF_SINE = 6381956970095103 * 2.0**797
"""The double closest to a multiple of pi/2: Muller, *Elementary Functions*, section 11.3."""


def spread(rng: Rng, n: int, low: int = -1074, high: int = 1023) -> Array:
    """Positive numbers of all exponents between these."""
    return np.ldexp(rng.uniform(1, 2, n), rng.integers(low, high + 1, n))


def signed(rng: Rng, x: Array) -> Array:
    return x * rng.choice([-1.0, 1.0], len(x))


def _between(low: float, high: float, least: int, most: int) -> Callable[[Rng, int], Array]:
    """Points of an interval, of [-2, 2] in it, and of exponents."""

    def draw(rng: Rng, n: int) -> Array:
        near = rng.uniform(max(low, -2), min(high, 2), n - 2 * (n // 3))
        far = signed(rng, spread(rng, n // 3, least, most))
        return np.concatenate([rng.uniform(low, high, n // 3), near, far])

    return draw


def _positive(rng: Rng, n: int) -> Array:
    near_1 = 1 + signed(rng, spread(rng, n // 3, -50, -2))
    return np.concatenate([rng.uniform(0, 3, n // 3), near_1, spread(rng, n - 2 * (n // 3))])


def _above_minus_1(rng: Rng, n: int) -> Array:
    rest = n - 3 * (n // 4)
    return np.concatenate([
        rng.uniform(-1, 3, n // 4), -1 + spread(rng, n // 4, -53, -1), spread(rng, n // 4),
        -spread(rng, rest, -1074, -1),
    ])  # fmt: skip


def _above_1(rng: Rng, n: int) -> Array:
    rest = n - 2 * (n // 3)
    near = 1 + spread(rng, n // 3, -52, 0)
    return np.concatenate([rng.uniform(1, 10, n // 3), near, spread(rng, rest, 1, 1023)])


def _up_to_1(rng: Rng, n: int) -> Array:
    near = signed(rng, 1 - spread(rng, n // 3, -53, -2))
    far = signed(rng, spread(rng, n - 2 * (n // 3), -1074, -1))
    return np.concatenate([rng.uniform(-1, 1, n // 3), near, far])


def _angle(rng: Rng, n: int) -> Array:
    quarter = n // 4
    of_pi = np.round(np.exp(rng.uniform(0, 30, quarter))) * (np.pi / 2)
    near = of_pi * (1 + rng.integers(-3, 4, quarter) * 2.0**-52)
    rest = n - 3 * quarter - 1
    return np.concatenate([
        rng.uniform(-10, 10, quarter), near, signed(rng, spread(rng, quarter, -1074, 1023)),
        rng.uniform(-1e6, 1e6, rest), [WORST_OF_SINE],
    ])  # fmt: skip


def _any(rng: Rng, n: int) -> Array:
    near = rng.uniform(-3, 3, n // 3)
    far = signed(rng, spread(rng, n - 2 * (n // 3), -1074, 1022))
    return np.concatenate([near, signed(rng, spread(rng, n // 3, -3, 3)), far])


def _powers(rng: Rng, n: int) -> list[Array]:
    """Bases, and exponents whose powers are mostly finite."""
    base = _positive(rng, n)
    with np.errstate(divide="ignore"):
        reach = np.minimum(1074 / np.abs(np.log2(base)), 1e17)
    far = rng.uniform(-1, 1, n) * reach
    return [base, np.where(rng.random(n) < 0.3, rng.uniform(-20, 20, n), far)]


def _by_length(y: Real, x: Real) -> Real:
    return x / (x * x + y * y)


@dataclass(frozen=True)
class Function:
    """An op of doubles, as mpmath has it, and its partial derivatives."""

    op: ops.Op
    exact: Callable[..., Real]
    draw: Callable[[Rng, int], Any]
    partials: tuple[Callable[..., Real], ...]
    flat: float = 0.0
    """Slopes below it are not looked at: they are differences of numbers that are nearly equal."""

    def points(self, count: int, seed: int = 7) -> list[Array]:
        rng = np.random.default_rng(seed)
        if self.op is ops.POW:
            return self.draw(rng, count)
        return [self.draw(rng, count) for _ in range(self.op.arity)]


def _root(x: Real) -> Real:
    return mp.sqrt((1 - x) * (1 + x))


FUNCTIONS = [
    Function(ops.EXP, mp.exp, _between(-745, 710, -1074, 9), (mp.exp,)),
    Function(ops.EXP2, lambda x: mp.power(2, x), _between(-1075, 1024, -1074, 10),
             (lambda x: mp.power(2, x) * mp.ln2,)),
    Function(ops.EXPM1, mp.expm1, _between(-60, 710, -1074, 9), (mp.exp,)),
    Function(ops.LOG, mp.log, _positive, (lambda x: 1 / x,)),
    Function(ops.LOG2, lambda x: mp.log(x, 2), _positive, (lambda x: 1 / (x * mp.ln2),)),
    Function(ops.LOG10, mp.log10, _positive, (lambda x: 1 / (x * mp.ln10),)),
    Function(ops.LOG1P, mp.log1p, _above_minus_1, (lambda x: 1 / (1 + x),)),
    Function(ops.SIN, mp.sin, _angle, (mp.cos,)),
    Function(ops.COS, mp.cos, _angle, (lambda x: -mp.sin(x),)),
    Function(ops.TAN, mp.tan, _angle, (lambda x: mp.sec(x) ** 2,)),
    Function(ops.ASIN, mp.asin, _up_to_1, (lambda x: 1 / _root(x),)),
    Function(ops.ACOS, mp.acos, _up_to_1, (lambda x: -1 / _root(x),)),
    Function(ops.ATAN, mp.atan, _any, (lambda x: 1 / (1 + x * x),)),
    Function(ops.ATAN2, mp.atan2, _any, (_by_length, lambda y, x: -_by_length(x, y))),
    Function(ops.SINH, mp.sinh, _between(-710.4, 710.4, -1074, 8), (mp.cosh,)),
    Function(ops.COSH, mp.cosh, _between(-710.4, 710.4, -1074, 8), (mp.sinh,)),
    Function(ops.TANH, mp.tanh, _between(-25, 25, -1074, 8), (lambda x: mp.sech(x) ** 2,),
             flat=0.05),
    Function(ops.ASINH, mp.asinh, _any, (lambda x: 1 / mp.sqrt(x * x + 1),)),
    Function(ops.ACOSH, mp.acosh, _above_1, (lambda x: 1 / mp.sqrt(x * x - 1),)),
    Function(ops.ATANH, mp.atanh, _up_to_1, (lambda x: 1 / _root(x) ** 2,)),
    Function(ops.ERF, mp.erf, _between(-6, 6, -1074, 3),
             (lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),)),
    Function(ops.ERFC, mp.erfc, _between(-6, 27, -1074, 4),
             (lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x),)),
    Function(ops.POW, mp.power, _powers, (lambda x, y: y * mp.power(x, y - 1),
             lambda x, y: mp.power(x, y) * mp.log(x))),
    Function(ops.HYPOT, mp.hypot, _any, (lambda x, y: x / mp.hypot(x, y),
             lambda x, y: y / mp.hypot(x, y))),
    Function(ops.SQRT, mp.sqrt, _positive, (lambda x: 1 / (2 * mp.sqrt(x)),)),
    Function(ops.RSQRT, lambda x: 1 / mp.sqrt(x), _positive,
             (lambda x: -1 / (2 * x * mp.sqrt(x)),)),
    Function(ops.RADIANS, mp.radians, _any, (lambda x: mp.pi / 180,)),
    Function(ops.DEGREES, mp.degrees, _any, (lambda x: 180 / mp.pi,)),
]  # fmt: skip


# -- what is right -----------------------------------------------------------------------------


def exact(function: Callable[..., Real], points: Sequence[Array]) -> tuple[Array, Array]:
    """Values as the nearest doubles, and what they lack; those beyond all doubles infinite."""
    with mp.workprec(PRECISION):
        found = [_parts(function, given) for given in zip(*points, strict=True)]
    nearest, lacking = np.array(found).T
    return nearest, lacking


def _parts(function: Callable[..., Real], given: Sequence[float]) -> tuple[float, float]:
    value = function(*(mp.mpf(float(x)) for x in given))
    if abs(value) > np.finfo(np.float64).max:
        return float(mp.sign(value)) * np.inf, 0.0
    # To the grid of subnormal numbers in one step.
    step = mp.mpf(2) ** (max(int(mp.frexp(value)[1]), -1021) - 53)
    nearest = mp.nint(value / step) * step
    return float(nearest), float(value - nearest)


def ulps(found: Array, nearest: Array, lacking: Array) -> Array:
    """How far off values are, in units in the last place; infinite where one is not finite."""
    with np.errstate(all="ignore"):
        error = np.abs((found - nearest) - lacking) / np.spacing(np.abs(nearest))
    error = np.where(np.isnan(error), np.inf, error)
    return np.where(np.isfinite(nearest), error, np.where(found == nearest, 0.0, np.inf))


def errors(
    found: Sequence[Array], expected: Sequence[tuple[Array, Array]], flat: float = 0.0
) -> list[Array]:
    """`ulps` of a value and its partial derivatives.

    Of the latter where they and the value are far from the ends of the range: formulas of the
    value have no more bits than it has.
    """
    value = np.abs(expected[0][0])
    result = [ulps(found[0], *expected[0])]
    for slope, right in zip(found[1:], expected[1:], strict=True):
        size = np.abs(right[0])
        is_ordinary = (np.minimum(value, size) > 1e-280) & (np.maximum(value, size) < 1e280)
        is_ordinary &= size >= flat
        result.append(np.where(is_ordinary, ulps(slope, *right), 0.0))
    return result


# -- what a device gives -----------------------------------------------------------------------


def evaluated(runtime: Runtime, op: ops.Op, points: Sequence[Array]) -> list[Array]:
    """Values and partial derivatives, in one dispatch."""
    n, count = len(points), len(points[0])
    rows = -(-count // WORKGROUP) * WORKGROUP
    given = np.zeros((rows, n))
    given[:count] = np.stack(points, axis=1)
    results = runtime.allocate(8 * rows * (n + 1))
    taken = runtime.allocate(given.nbytes)
    runtime.write(taken, 0, memoryview(given.ravel()).cast("B"))
    pipeline = runtime.pipeline(program(op))
    runtime.dispatch(pipeline, {0: taken, 1: results}, b"", (rows // WORKGROUP, 1, 1))
    (content,) = runtime.read([(results, 0, results.byte_count)])
    return list(np.frombuffer(content, np.float64).reshape(rows, n + 1)[:count].T)


def program(op: ops.Op) -> Program:
    """One thread a point: the value, then its derivative by each operand."""
    names = [f"x{k}" for k in range(op.arity)]
    reads = [
        f"    double {x} = doubleOf(words[{2 * op.arity}u * thread.x + {2 * k}u], "
        f"words[{2 * op.arity}u * thread.x + {2 * k + 1}u]);"
        for k, x in enumerate(names)
    ]
    functions = Functions()
    spelled = functions.spelled(op, "double", [()] * op.arity, ())
    arguments = ", ".join(names)
    values = [f"{spelled.value}({arguments})", *(f"pulled.item{k}" for k in range(op.arity))]
    writes = [
        f"    put({len(values)}u * thread.x + {k}u, {value});" for k, value in enumerate(values)
    ]
    pulled = f"    let pulled = {spelled.pull}({arguments}, 1.0lf);"
    body = "\n".join([*reads, pulled, *writes])
    text = f"""
import shaderad;
import safe_math;
import double_math;

[[vk::binding(0, 0)]] StructuredBuffer<uint> words;
[[vk::binding(1, 0)]] RWStructuredBuffer<uint> results;

void put(uint index, double value)
{{
    uint2 found = wordsOf(value);
    results[2u * index] = found.x;
    results[2u * index + 1u] = found.y;
}}

{functions.text}
[shader("compute")]
[numthreads({WORKGROUP}, 1, 1)]
void evaluate(uint3 thread : SV_DispatchThreadID)
{{
{body}
}}
"""
    return Program(
        name="evaluate",
        slang=text,
        workgroup=(WORKGROUP, 1, 1),
        bindings=(
            Binding(0, "words", BindingAccess.READ),
            Binding(1, "results", BindingAccess.WRITE),
        ),
        features=frozenset({"double"}),
    )
