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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from compare import CONTESTS, Ours
from timing import Floats, alternated, median_ratio, on_each
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


def measured(check: Check, device: sad.Device, inputs: dict[str, Floats], pairs: int) -> float:
    """The median ratio of this process."""
    sides = {
        name: Ours(CONTESTS["W1"], inputs, device, **options).step
        for name, options in (("with", check.with_it), ("without", check.without))
    }
    times = alternated(sides, pairs)
    return median_ratio(times["with"], times["without"])


def one_process(pairs: int) -> dict[tuple[str, str], float]:
    """Ratios by runtime and check, of the runtimes that are here."""
    ratios: dict[tuple[str, str], float] = {}
    inputs = WORKLOADS["W1"]().inputs

    def run(runtime: str) -> None:
        device = sad.open_device(runtime)
        for check in CHECKS:
            ratios[runtime, check.name] = measured(check, device, inputs, pairs)

    on_each((), run)
    return ratios


def main() -> None:
    counts = [int(text) for text in sys.argv[1:]]
    processes, pairs = [*counts, *(PROCESSES, PAIRS)[len(counts) :]]
    fresh = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
        by_process = list(pool.map(one_process, [pairs] * processes))
    goals = {check.name: check.goal for check in CHECKS}
    for runtime, name in by_process[0]:
        ratios = [ratio[runtime, name] for ratio in by_process]
        middle, goal = statistics.median(ratios), goals[name]
        missed = f"  above {goal}" if goal and middle > goal else ""
        print(
            f"{runtime:8} {name:7} {middle:.3f}x  ({min(ratios):.3f} to {max(ratios):.3f}, "
            f"{processes} processes of {pairs} pairs){missed}"
        )


if __name__ == "__main__":
    main()
