"""Loops that carry arrays, and branches by element."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from tests.conformance.programs.program import over_arrays


def power(x: Any, n: Any) -> Any:
    """`n` is a value on the device, hence the limit."""

    def step(carry: Any) -> Any:
        k, acc = carry
        return k + 1, acc * x

    return sad.while_loop(lambda carry: carry[0] < n, step, (0, 1.0), 16)[1]


def powers(x: Any) -> Any:
    return sad.fori_loop(3, lambda _, a: a * x, sad.full(x.shape, 1.0))


def square_of_last(x: Any) -> Any:
    return sad.loop(lambda _, e: (e * e, e), 1.0, x)[0]


def squared(x: Any) -> Any:
    """An array changed in place is one whose elements a loop makes anew."""
    return sad.loop(lambda carry, e: (carry, e * e), 0, x)[1]


def squares_in_turn(x: Any) -> Any:
    def step(last: Any, _: Any) -> Any:
        return last * last, last * last

    rest = sad.loop(step, x[0], sad.iota(x.shape[0] - 1))[1]
    return sad.concatenate([x[:1], rest])


def carry_two(x: Any) -> Any:
    return sad.fori_loop(3, lambda _, pair: (2.0 * pair[0], pair[1] + 1.0), (x, x))


def million_factors(x: Any) -> Any:
    return sad.fori_loop(1_000_000, lambda _, acc: acc * x, 1.0)


def lotka_volterra(p: Any) -> Any:
    birth, predation, growth, loss = (p[k] for k in range(2, 6))

    def slope(prey: Any, predator: Any) -> Any:
        return (birth - predation * predator) * prey, (growth * prey - loss) * predator

    def step(state: Any, _: Any) -> Any:
        a = slope(*state)
        b = slope(*(s + 0.05 * d for s, d in zip(state, a, strict=True)))
        c = slope(*(s + 0.05 * d for s, d in zip(state, b, strict=True)))
        d = slope(*(s + 0.1 * d for s, d in zip(state, c, strict=True)))
        mixed = [w + 2.0 * x + 2.0 * y + z for w, x, y, z in zip(a, b, c, d, strict=True)]
        moved = tuple(s + 0.1 / 6.0 * m for s, m in zip(state, mixed, strict=True))
        return moved, sad.stack(list(moved))

    return sad.loop(step, (p[0], p[1]), sad.iota(12))[1]


def by_flag(b: Any, x: Any, z: Any) -> Any:
    return sad.where(b != 0, x * z, x / z)


def by_sign(x: Any) -> Any:
    return x[2] * sad.where(x[0] < 0.0, x[0], x[1])


def guarded(x: Any) -> Any:
    root = sad.where(x > 0.0, sad.sqrt(x), 0.0)
    return root, sad.where(x != 0.0, sad.sin(x) / x, 1.0)


def distance_to_sphere(p: Any) -> Any:
    apart = p - sad.array([-1.0, -1.2, 0.2])
    return sad.max(sad.sqrt(sad.sum(apart * apart)) - 0.8, 0.0)


def rounded(x: Any) -> Any:
    return sad.cast(x, int) * x + sad.floor(x) * x + sad.round(x)


PROGRAMS = {
    "fut-for-pow/arrays": over_arrays(power),
    "fut-while-pow/arrays": over_arrays(power),
    "fut-for-pow-list/arrays": over_arrays(powers),
    "fut-for-last/arrays": over_arrays(square_of_last),
    "fut-for-inplace-square/arrays": over_arrays(squared),
    "fut-truedep-1d/arrays": over_arrays(squares_in_turn),
    "fut-swap-carry/arrays": over_arrays(carry_two, "A B"),
    "fut-stripmine-1e6/arrays": over_arrays(million_factors),
    "fut-lotka-rk4/arrays": over_arrays(lotka_volterra, "Y"),
    "fut-if0/arrays": over_arrays(by_flag),
    "fut-if2/arrays": over_arrays(by_sign),
    "own-where-safe/arrays": over_arrays(guarded, "y z"),
    "fut-sdf/arrays": over_arrays(distance_to_sphere, "d"),
    "own-floor-int/arrays": over_arrays(rounded),
}
