"""Functions of two ints, each one feature of the language; plain Python says what they give."""

from __future__ import annotations

import math

import shaderad as sad

ONE, TABLE = 1, (3, 5, 7)


@sad.function
def floor_division_and_remainder(a: int, b: int) -> int:
    return 100 * (a // b) + a % b


@sad.function
def floor_division_by_negative_constants(a: int, b: int) -> int:
    return (a // -3) * 100 + a % -3 + b // 4 + b % 4


@sad.function
def constants_are_folded_as_python_does(a: int, b: int) -> int:
    return a + (-7 // 2) * 10 + -7 % 3 + 2**10 + (7 & 12 | 3) + (1 << 5 >> 2) + int(-7 / 2)


@sad.function
def whole_powers(a: int, b: int) -> int:
    return a**3 + b**2 + a**1 + b**0


@sad.function
def precedence(a: int, b: int) -> int:
    return -(a**2) + a - b - 2 * a + (a - (b - 3)) + ~a * 2 - (-b)


@sad.function
def bitwise(a: int, b: int) -> int:
    return (a & b) + (a | b) * 3 + (a ^ b) * 5 + ~a


@sad.function
def shifts(a: int, b: int) -> int:
    return (a << 3) + (a >> 2) + (b >> 1)


@sad.function
def multiplication_wraps(a: int, b: int) -> int:
    return a * 1103515245 + b * 12345 + 2147483647


@sad.function
def chained_comparison(a: int, b: int) -> int:
    return 1 if -3 < a <= b < 5 else 0


@sad.function
def chained_comparison_of_expressions(a: int, b: int) -> int:
    return 1 if a - 4 < a * b - 1 < 7 != b else 0


@sad.function
def nested_conditional(a: int, b: int) -> int:
    return 1 if a > b else 2 if a == b else 3


@sad.function
def and_or_not(a: int, b: int) -> int:
    both = a > 0 and b > 0
    some = a > 0 or b > 0 or not a == b
    return int(both) + 2 * int(some) + 4 * int(not both)


@sad.function
def short_circuit_guards_the_division(a: int, b: int) -> int:
    return 1 if b != 0 and a % b == 0 else 0


@sad.function
def bools_compare_and_combine(a: int, b: int) -> int:
    p, q = a > 1, b > 1
    return int(p == q) + 2 * int(p != q) + 4 * int(p & q) + 8 * int(p | q) + 16 * int(p ^ q)


@sad.function
def augmented_assignment(a: int, b: int) -> int:
    s = a
    s += b
    s -= 3
    s *= 2
    s //= 3
    s %= 17
    s <<= 2
    s >>= 1
    s |= 8
    s &= 61
    s ^= 5
    s **= 2
    return s


@sad.function
def swap(a: int, b: int) -> int:
    x, y = a, b
    x, y = y, x
    x, y = y + 10 * x, x
    return x * 100 + y


@sad.function
def nested_unpacking(a: int, b: int) -> int:
    (x, y), z = (a, b), a + b
    [x, y] = y, x
    return x + 10 * y + 100 * z


@sad.function
def chained_assignment(a: int, b: int) -> int:
    x = y = a + b
    x += 1
    return x * 10 + y


@sad.function
def rebound_parameters(a: int, b: int) -> int:
    a = a + 1
    b += a
    return a * 10 + b


@sad.function
def loop_variable_after_the_loop(a: int, b: int) -> int:
    k = 7
    for k in range(a):  # noqa: B007
        pass
    return k


@sad.function
def loop_variable_assigned_in_the_body(a: int, b: int) -> int:
    s = 0
    for k in range(6):
        k = k * 2
        s += k
    return s + k + a


@sad.function
def loop_bounds_are_read_once(a: int, b: int) -> int:
    n, s = 4, 0
    for k in range(n):
        n = n + 1
        s += k
    return s * 10 + n


@sad.function
def negative_step(a: int, b: int) -> int:
    s = 0
    for k in range(9, a, -2):
        s = s * 3 + k
    return s


@sad.function
def step_known_at_run_time(a: int, b: int) -> int:
    s = 0
    step = 2 if a > b else -3
    for k in range(a, b, step):
        s = s * 3 + k
    return s


@sad.function
def step_does_not_divide_the_range(a: int, b: int) -> int:
    s = 0
    for k in range(-5, 6, 4):
        s = s * 7 + k + a
    return s


@sad.function
def break_leaves_the_inner_loop(a: int, b: int) -> int:
    s = 0
    for k in range(5):
        for j in range(5):
            if j > k or k * j > a:
                break
            s += 10 * k + j
    return s


@sad.function
def continue_skips(a: int, b: int) -> int:
    s = 0
    for k in range(8):
        if k % 3 == 1:
            continue
        s = s * 2 + k
        if s > 50 + a:
            continue
        s += b
    return s


@sad.function
def return_from_nested_loops(a: int, b: int) -> int:
    for k in range(6):
        for j in range(6):
            if k * j == a:
                return 10 * k + j
            if k + j > 9:
                break
    return -1


@sad.function
def while_loop(a: int, b: int) -> int:
    n = abs(a) + 3
    steps = 0
    while n != 1 and steps < 30:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@sad.function
def endless_while_with_break(a: int, b: int) -> int:
    k = 0
    while True:
        k += 1
        if k * k > a + 10:
            last = k
            break
    return last


@sad.function
def while_with_continue(a: int, b: int) -> int:
    k = s = 0
    while k < 9:
        k += 1
        if k % 2 == 0:
            continue
        s += k * a
    return s


@sad.function
def while_whose_condition_compares_a_chain(a: int, b: int) -> int:
    k = 0
    while 0 <= k * k < a + 4:
        k += 1
    return k


@sad.function
def static_loop(a: int, b: int) -> int:
    s = 0
    for k in range(len(TABLE)):
        s += k * a
    return s + TABLE[0] * TABLE[-1] + len(TABLE)


@sad.function
def elif_chain(a: int, b: int) -> int:
    if a < 0:
        r = 1
    elif a == 0:
        r = 2
    elif a < b:
        r = 3
    else:
        r = 4
    return r


@sad.function
def early_return(a: int, b: int) -> int:
    if a < 0:
        return -a
    if b < 0:
        if a > 2:
            return a * 100
        b = -b
    return a * 10 + b


@sad.function
def unreachable_code_is_allowed(a: int, b: int) -> int:
    return a
    b = 3  # noqa: F841


@sad.function
def name_assigned_in_a_loop_that_runs(a: int, b: int) -> int:
    for k in range(1, 4):
        last = k * a
    return last


@sad.function
def minimum_and_maximum(a: int, b: int) -> int:
    return min(a, b) + 10 * max(a, b, 2) + 100 * min(a, 3, b, 1) + max(2, 7)


@sad.function
def absolute(a: int, b: int) -> int:
    return abs(a) * 10 + abs(b - 4) + abs(-3)


@sad.function
def math_of_ints_gives_ints(a: int, b: int) -> int:
    return math.floor(a / 2) + 10 * math.ceil(b / 4) + 100 * math.trunc(a / 3) + math.floor(a)


@sad.function
def truncation(a: int, b: int) -> int:
    return int(a / 2) + 100 * int(-b * 0.75)


@sad.function
def halves_round_to_even(a: int, b: int) -> int:
    return round(a / 2) + 100 * round(b / 4) + round(2.5) + round(a)  # noqa: RUF057


@sad.function
def captured_numbers(a: int, b: int) -> int:
    return a * ONE + b


@sad.function
def calls_other_functions(a: int, b: int) -> int:
    return swap(a, early_return(b, a)) + whole_powers(b, 1)


@sad.function
def two_results(c: int, d: int) -> tuple[int, int]:
    return c // 2, c * d


@sad.function
def unpacks_results(a: int, b: int) -> int:
    q, p = two_results(a, b)
    return 10 * q + p + two_results(b, a)[1]


@sad.function
def annotated_locals(a: int, b: int) -> int:
    total: int = a
    other: int
    other = b
    return total - other


@sad.function
def bool_locals_and_loops(a: int, b: int) -> int:
    found = False
    where = -1
    for k in range(7):
        if not found and k * k >= a:
            found = True
            where = k
    return where if found else 100


@sad.function
def constant_conditions(a: int, b: int) -> int:
    if ONE == 1:
        s = a
    else:
        s = b
    return s if ONE > 2 or True else undefined_but_never_read  # noqa: F821


@sad.function
def integer_of_bool(a: int, b: int) -> int:
    return int(a > b) - int(a < b) + int(True)


@sad.function
def bool_of_numbers(a: int, b: int) -> int:
    return (1 if bool(a) else 0) + (2 if bool(b * 0.5) else 0) + int(bool(3))
