"""The long run: ``python -m tests.shaders --count 100000 --runtime wgpu``.

A line for each function of doubles: its largest error in units in the last place, the point where
it is, and the largest error of its partial derivatives.
"""

from __future__ import annotations

import argparse

import numpy as np

from shaderad.runtime import open_runtime
from tests.shaders.doubles import FUNCTIONS, errors, evaluated, exact
from tests.shaders.test_double_math import LARGEST_ERROR, LARGEST_ERROR_OF_PARTIALS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.shaders", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--runtime", choices=("wgpu", "slangpy"), nargs="+", default=["wgpu"])
    given = parser.parse_args()
    runtimes = [open_runtime(name) for name in given.runtime]
    is_right = True
    for one in FUNCTIONS:
        points = one.points(given.count, given.seed)
        expected = [exact(f, points) for f in (one.exact, *one.partials)]
        for name, runtime in zip(given.runtime, runtimes, strict=True):
            found = evaluated(runtime, one.op, points)
            values, *partials = errors(found, expected, one.flat)
            worst = int(np.argmax(values))
            at = ", ".join(repr(float(x[worst])) for x in points)
            slopes = max(e.max() for e in partials)
            print(
                f"{one.op.name:8} {name:8} {values[worst]:6.3f} at {at}; partials {slopes:.3g}",
                flush=True,
            )
            is_right &= values[worst] <= LARGEST_ERROR and slopes <= LARGEST_ERROR_OF_PARTIALS
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
