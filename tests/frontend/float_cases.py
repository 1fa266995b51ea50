"""Functions of two floats, each one feature of the language; plain Python says what they give."""

from __future__ import annotations

import enum
import math
import math as maths
from math import sqrt as root

import shaderad as sad


class Mode(enum.IntEnum):
    SLOW = 2
    FAST = 5


class Shape(enum.Enum):
    ROUND = 0.25


class Settings:
    gain = 1.5
    flags = (True, False)


@sad.function
def modules_and_functions_under_other_names(x: float, y: float) -> float:
    return maths.sqrt(y) + root(y) + maths.pi


@sad.function
def ints_mix_into_floats(x: float, y: float) -> float:
    n = 3
    s = x * n + 1
    s += n
    return s / 2 - n


@sad.function
def floor_division(x: float, y: float) -> float:
    return x // y * 10.0 + x % y


@sad.function
def division_of_ints_is_true_division(x: float, y: float) -> float:
    n, m = 7, 2
    return n / m + x * (1 / 3) + n // m


@sad.function
def whole_powers_of_negative_numbers(x: float, y: float) -> float:
    return x**2 + (-x) ** 3 + x**2.0 + y**-2 + (-y) ** -1 + x**0


@sad.function
def real_powers(x: float, y: float) -> float:
    return abs(x) ** 0.5 + y**x + 2.0**x + y**1.5


@sad.function
def whole_powers_known_at_run_time(x: float, y: float) -> float:
    n = 3 if y > 0.0 else 2
    return (abs(x) + 1.0) ** n


@sad.function
def powers_of_ints_with_float_exponents(x: float, y: float) -> float:
    n = int(y) + 2
    return n**2.0 / 3 + n**0.5 + n**-1


@sad.function
def unary_operators(x: float, y: float) -> float:
    return -x + +y - -x * 3.0


@sad.function
def comparison_chain(x: float, y: float) -> float:
    return 1.0 if -1.0 < x < y <= 2.0 or x > y > 0 else 0.0


@sad.function
def squared(x: float) -> float:
    return x * x


@sad.function
def comparison_chain_of_a_call_in_a_loop(x: float, y: float) -> float:
    while 0.1 < squared(x) < 9.0:
        x *= 0.5
    return x


@sad.function
def builtin_functions(x: float, y: float) -> float:
    return abs(x) + min(x, y, 1) * 10.0 + max(x, 0.0) * 100.0 + round(x) + int(y) + float(3)


@sad.function
def math_functions(x: float, y: float) -> float:
    s = math.sin(x) + math.cos(x) + math.tan(x * 0.5) + math.asin(x * 0.2) + math.acos(x * 0.2)
    s += math.atan(x) + math.atan2(x, y) + math.sinh(x) + math.cosh(x) + math.tanh(x)
    return s + math.asinh(x) + math.acosh(y + 1.0) + math.atanh(x * 0.2)


@sad.function
def math_logarithms(x: float, y: float) -> float:
    s = math.exp(x) + math.exp2(x) + math.expm1(x) + math.log(y) + math.log(y, 3) + math.log2(y)
    return s + math.log10(y) + math.log1p(y) + math.sqrt(y) + math.cbrt(x) + math.erf(x)


@sad.function
def math_rest(x: float, y: float) -> float:
    s = math.fabs(x) + math.fmod(x, y) + math.hypot(x, y) + math.copysign(y, x)
    s += math.degrees(x) + math.radians(x) + math.pow(y, x) + math.pow(x, 2) + math.erfc(x)
    return s + math.floor(x) + math.ceil(x) + math.trunc(x) + math.pi + math.e + math.tau


@sad.function
def math_tests(x: float, y: float) -> float:
    s = 0.0 if math.isnan(x) else 1.0
    s += 2.0 if math.isfinite(y) else 0.0
    return s + (4.0 if math.isinf(x) else 0.0) + (8.0 if math.isinf(math.inf) else 0.0)


@sad.function
def math_of_ints(x: float, y: float) -> float:
    n = 2
    return math.sqrt(n) + math.sin(n + 1) * x + math.pow(n, 3)


@sad.function
def sums_over_a_loop(x: float, y: float) -> float:
    s = 0.0
    term = 1.0
    for k in range(1, 12):
        term *= x / k
        s += term
    return s


@sad.function
def newton(x: float, y: float) -> float:
    guess = y
    for _ in range(20):
        following = 0.5 * (guess + y / guess)
        if abs(following - guess) < 1e-3:
            return following
        guess = following
    return guess


@sad.function
def captured_enums_and_classes(x: float, y: float) -> float:
    scale = 1.0 * Mode.FAST if x > 0.0 else Mode.SLOW
    scale += Shape.ROUND.value + Mode.SLOW.value
    return x * scale + Settings.gain + (1.0 if Settings.flags[0] else 0.0)


@sad.function
def recursion_free_calls(x: float, y: float) -> float:
    return newton(y, newton(x, y)) + sums_over_a_loop(x, y)


@sad.function
def three_results(x: float) -> tuple[float, float, int]:
    return x + 1.0, x * 2, 3


@sad.function
def results_in_expressions(x: float, y: float) -> float:
    a, b, n = three_results(x)
    return a * b + n + three_results(y)[0]


@sad.function
def conditional_of_int_and_float(x: float, y: float) -> float:
    return (1 if x > y else 2.5) + (x if x > 0 else 0)


@sad.function
def only_the_chosen_side_is_evaluated(x: float, y: float) -> float:
    return math.sqrt(x) if x > 0.0 else 1.0


@sad.function
def returns_nested_in_branches(x: float, y: float) -> float:
    if x > 0.0:
        if y > 1.0:
            return 1.0
        else:
            return 2
    elif x > -1.0:
        return x
    else:
        x = x * 2.0
    return x + y


@sad.function
def floats_of_everything(x: float, y: float) -> float:
    return float(x > 0.0) + float(int(x)) + float(True) + float(2)


@sad.function
def many_locals_of_one_name_in_branches(x: float, y: float) -> float:
    if x > 0.0:
        t = x
        u = t * t
    else:
        t = y
        u = t + t
    return t + 10.0 * u
