"""What run-time checks cost on W1, dispatched in turn with the same gradient without them.

    python benchmarks/checks.py [PAIRS]

W1 gathers through two levels of indices, so it pays for a bounds check at every step. A line for
each runtime and check: the median ratio of pairs that ran one after the other, and its quartiles as
a measure of noise. Only bounds checks, which are on by default, have a goal.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compare import CONTESTS
from opponents import WORKLOADS

import shaderad as sad

PAIRS = 31


@dataclass(frozen=True)
class Check:
    """Call keywords with a check and without it."""

    name: str
    with_it: dict[str, Any]
    without: dict[str, Any]
    goal: float | None = None


CHECKS = (
    Check("bounds", {"bounds": "raise"}, {"bounds": "unchecked"}, goal=1.10),
    Check("nan", {"checks": "nan"}, {}),
)


class Gradient:
    """The gradient of W1 with some call keywords."""

    def __init__(
        self, arguments: list[sad.Array], device: sad.Device, options: dict[str, Any]
    ) -> None:
        self._arguments = arguments
        self._device = device
        self._options = options
        self._gradient_of = sad.grad(CONTESTS["W1"].kernel)
        self.seconds: list[float] = []
        for _ in range(3):  # the first ones compile and warm up
            self._once()

    def _once(self) -> None:
        call = {"dim": len(self._arguments[2]), "shapes": {"loss": (1,)}, **self._options}
        self._gradient_of(*self._arguments, **call)
        self._device.synchronize()

    def run(self) -> None:
        """Times one gradient: zero, dispatch, wait."""
        start = time.perf_counter()
        self._once()
        self.seconds.append(time.perf_counter() - start)


def in_turn(first: Callable[[], None], second: Callable[[], None], pairs: int) -> None:
    """Runs both `pairs` times; who goes first alternates, so that neither always follows."""
    for k in range(pairs):
        for run in (first, second) if k % 2 else (second, first):
            run()


def measure(check: Check, arguments: list[sad.Array], device: sad.Device, pairs: int) -> None:
    with_it = Gradient(arguments, device, check.with_it)
    without = Gradient(arguments, device, check.without)
    in_turn(with_it.run, without.run, pairs)
    ratios = [a / b for a, b in zip(with_it.seconds, without.seconds, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    missed = f"  above {check.goal}" if check.goal and middle > check.goal else ""
    print(
        f"{device.capabilities.runtime:8} {check.name:7} "
        f"with {1e3 * statistics.median(with_it.seconds):6.1f} ms  "
        f"without {1e3 * statistics.median(without.seconds):6.1f} ms  "
        f"ratio {middle:.3f} ({low:.3f} to {high:.3f}, {pairs} pairs){missed}"
    )


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    inputs = WORKLOADS["W1"]().inputs
    for runtime in ("wgpu", "slangpy"):
        try:
            device = sad.open_device(runtime)
        except sad.DeviceError as failure:
            print(f"{runtime:8} not here: {failure.message}")
            continue
        dtypes = CONTESTS["W1"].dtypes
        arguments = [sad.array(inputs[n], dtype=t, device=device) for n, t in dtypes.items()]
        for check in CHECKS:
            measure(check, arguments, device, pairs)


if __name__ == "__main__":
    main()
