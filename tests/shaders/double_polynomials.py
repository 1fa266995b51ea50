"""The coefficients in shaders/double_*.slang: ``python -m tests.shaders.double_polynomials``.

Each polynomial has the smallest largest weighted error on a grid of Chebyshev points, by Remez'
second algorithm: Cheney, *Introduction to Approximation Theory*, chapter 3, section 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp

Real = Any
GRID = 250
DIGITS = 45


@dataclass(frozen=True)
class Fit:
    """A polynomial for `function`, whose error counts by `weight`, from `low` to `high`."""

    file: str
    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]
    low: str
    high: str
    count: int
    bits: int
    """The weighted error is below 2 to minus this."""


def _of_root(odd: Callable[[Real], Real], known: Callable[[Real], Real]) -> Callable[[Real], Real]:
    """What an odd function is more than `known`, as a part of x^3, by z = x^2."""
    return lambda z: (odd(mp.sqrt(z)) - known(mp.sqrt(z))) / (mp.sqrt(z) * z)


def _same(x: Real) -> Real:
    return x


def _argument(u: Real) -> Real:
    """The argument of erfc: u = 1 / (x + 3/2) - 7/32."""
    return 1 / (u + mp.mpf(7) / 32) - mp.mpf(3) / 2


def _scaled_erfc(u: Real) -> Real:
    x = _argument(u)
    return (x + mp.mpf(3) / 2) * mp.exp(x * x) * mp.erfc(x)


FITS = {
    "exp(r) - 1 - r - r^2 / 2 by r^3": Fit(
        "double_exponentials", lambda r: (mp.expm1(r) - r - r * r / 2) / r**3, lambda r: r * r,
        "-0.3467", "0.3467", 10, 61),
    "log(1 + f) - 2 s by s^3": Fit(
        "double_logarithms", _of_root(lambda s: 2 * mp.atanh(s), lambda s: 2 * s),
        lambda z: z / 2, "0", "0.02944", 7, 59),
    "3/2 log(1 + f) / s - 3 - s^2 by s^4": Fit(
        "double_powers",
        lambda z: (3 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 3 - z) / z**2,
        lambda z: z * z / 3, "0", "0.02944", 7, 66),
    "sin(x) - x by x^3": Fit(
        "double_trigonometry", _of_root(mp.sin, _same), _same, "0", "0.617", 6, 58),
    "cos(x) - 1 + x^2 / 2 by x^4": Fit(
        "double_trigonometry", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z * z, "0", "0.617", 6, 64),
    "atan(x) - x by x^3": Fit(
        "double_inverse_trigonometry", _of_root(mp.atan, _same), _same, "0", "0.19140625", 11, 57),
    "asin(x) - x by x^3": Fit(
        "double_inverse_trigonometry", _of_root(mp.asin, _same), _same, "0", "0.25", 13, 59),
    "erf(x) / x - 1": Fit(
        "double_error_function", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, lambda z: 1,
        "0", "1", 12, 56),
    "(x + 3/2) exp(x^2) erfc(x)": Fit(
        "double_error_function", _scaled_erfc, lambda u: 1 / _scaled_erfc(u),
        "-0.184028", "0.18125", 24, 61),
}  # fmt: skip


def fitted(fit: Fit) -> tuple[list[float], float]:
    """The coefficients, from the constant on, and the bits of the largest weighted error."""
    with mp.workdps(DIGITS):
        low, high = mp.mpf(fit.low), mp.mpf(fit.high)
        middle, reach = (high + low) / 2, (high - low) / 2
        xs = [middle - reach * mp.cos(mp.pi * (2 * k + 1) / (2 * GRID)) for k in range(GRID)]
        ys, weights = [fit.function(x) for x in xs], [fit.weight(x) for x in xs]
        at = [round((GRID - 1) * k / fit.count) for k in range(fit.count + 1)]
        while True:
            found = _levelled(at, xs, ys, weights, fit.count)
            errors = [w * (sum(c * x**k for k, c in enumerate(found)) - y)
                      for x, y, w in zip(xs, ys, weights, strict=True)]  # fmt: skip
            extremes = _alternating(errors, fit.count + 1)
            if extremes == at:
                return [float(c) for c in found], float(-mp.log(max(map(abs, errors)), 2))
            at = extremes


def _levelled(
    at: Sequence[int], xs: list[Real], ys: list[Real], weights: list[Real], count: int
) -> list[Real]:
    """The polynomial whose weighted errors at these points are of one size, in turn + and -."""
    rows = [[*(xs[i] ** k for k in range(count)), (-1) ** n / weights[i]] for n, i in enumerate(at)]
    solved = mp.lu_solve(mp.matrix(rows), mp.matrix([ys[i] for i in at]))
    return [solved[k] for k in range(count)]


def _alternating(errors: list[Real], count: int) -> list[int]:
    """Where each run of errors of one sign is largest, the ends left out that are too many."""
    found: list[int] = []
    for k, error in enumerate(errors):
        if not found or (errors[found[-1]] > 0) != (error > 0):
            found.append(k)
        elif abs(error) > abs(errors[found[-1]]):
            found[-1] = k
    while len(found) > count:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return found


def main() -> None:
    for name, fit in FITS.items():
        coefficients, bits = fitted(fit)
        print(f"{name}: 2^-{bits:.1f}", *map(repr, coefficients), sep="\n    ")


if __name__ == "__main__":
    main()
