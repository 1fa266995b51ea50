"""What bounds checks cost on W1: ``bounds="raise"`` against ``"unchecked"``, dispatched in turn.

    python benchmarks/bounds_checks.py [PAIRS]

W1 gathers through two levels of indices, so it pays for a check at every step. One line a runtime:
the median ratio of pairs that ran one after the other, with the quartiles as a measure of noise.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from compare import CONTESTS
from opponents import WORKLOADS

import shaderad as sad

PAIRS = 31
COST_GOAL = 1.10


class Gradient:
    """The gradient of W1 with one way of meeting indices out of range."""

    def __init__(self, arguments: list[sad.Array], device: sad.Device, bounds: str) -> None:
        self._arguments = arguments
        self._device = device
        self._bounds = bounds
        self._gradient_of = sad.grad(CONTESTS["W1"].kernel)
        self.seconds = [self._timed() for _ in range(3)]  # the first ones compile and warm up
        self.seconds.clear()

    def _timed(self) -> float:
        start = time.perf_counter()
        dim = len(self._arguments[2])
        self._gradient_of(*self._arguments, dim=dim, shapes={"loss": (1,)}, bounds=self._bounds)
        self._device.synchronize()
        return time.perf_counter() - start

    def run(self) -> None:
        """Times one gradient: zero, dispatch, wait."""
        self.seconds.append(self._timed())


def in_turn(first: Callable[[], None], second: Callable[[], None], pairs: int) -> None:
    """Runs both `pairs` times; who goes first alternates, so that neither always follows."""
    for k in range(pairs):
        for run in (first, second) if k % 2 else (second, first):
            run()


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
        checked = Gradient(arguments, device, "raise")
        unchecked = Gradient(arguments, device, "unchecked")
        in_turn(checked.run, unchecked.run, pairs)
        ratios = [a / b for a, b in zip(checked.seconds, unchecked.seconds, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(
            f"{runtime:8} checked {1e3 * statistics.median(checked.seconds):6.1f} ms  "
            f"unchecked {1e3 * statistics.median(unchecked.seconds):6.1f} ms  "
            f"ratio {middle:.3f} ({low:.3f} to {high:.3f}, {pairs} pairs)  "
            f"{'above the goal of ' + str(COST_GOAL) if middle > COST_GOAL else ''}".rstrip()
        )


if __name__ == "__main__":
    main()
