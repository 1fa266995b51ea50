"""What run-time checks cost on W1, dispatched in turn with the same gradient without them.

    python benchmarks/checks.py [PROCESSES [PAIRS]]

W1 gathers through two levels of indices, so it pays for a bounds check at every step. Where buffers
happen to lie in memory shifts one process's ratio by up to a fifth either way, so several processes
take turns. A line for each runtime and check: the median over processes of the median ratio of
pairs that ran one after the other, and the least and greatest process. Only bounds checks, which
are on by default, have a goal.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from compare import CONTESTS
from workloads import WORKLOADS

import shaderad as sad

PROCESSES = 9
PAIRS = 15


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
        self._gradient_of = sad.grad(CONTESTS["W1"].loss)
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


def measured(check: Check, arguments: list[sad.Array], device: sad.Device, pairs: int) -> float:
    """The median ratio of this process."""
    with_it = Gradient(arguments, device, check.with_it)
    without = Gradient(arguments, device, check.without)
    in_turn(with_it.run, without.run, pairs)
    return statistics.median(a / b for a, b in zip(with_it.seconds, without.seconds, strict=True))


def one_process(pairs: int) -> dict[tuple[str, str], float]:
    """Ratios by runtime and check; runtimes that are not here are left out."""
    found: dict[tuple[str, str], float] = {}
    inputs = WORKLOADS["W1"]().inputs
    for runtime in ("wgpu", "slangpy"):
        try:
            device = sad.open_device(runtime)
        except sad.DeviceError:
            continue
        dtypes = CONTESTS["W1"].dtypes
        arguments = [sad.array(inputs[n], dtype=t, device=device) for n, t in dtypes.items()]
        for check in CHECKS:
            found[runtime, check.name] = measured(check, arguments, device, pairs)
    return found


def main() -> None:
    given = [int(text) for text in sys.argv[1:]]
    processes, pairs = [*given, *(PROCESSES, PAIRS)[len(given) :]]
    fresh = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        found = list(pool.map(one_process, [pairs] * processes))
    goals = {check.name: check.goal for check in CHECKS}
    for runtime, name in found[0]:
        ratios = [one[runtime, name] for one in found]
        middle, goal = statistics.median(ratios), goals[name]
        missed = f"  above {goal}" if goal and middle > goal else ""
        print(
            f"{runtime:8} {name:7} {middle:.3f}x  ({min(ratios):.3f} to {max(ratios):.3f}, "
            f"{processes} processes of {pairs} pairs){missed}"
        )


if __name__ == "__main__":
    main()
