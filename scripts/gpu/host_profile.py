"""Where the host's time of a step goes: a profile of Python while steps are recorded.

    SHADERAD_DEVICE=slangpy:0 python -m scripts.gpu.host_profile [--small] [NAME ...]

For each program one JSON line, then the functions that took the most time of their own. Times are
microseconds per step: `host_us` to record it, `step_us` in a queue that is full, and `waited_us` of
a step and the wait for its end. The profiler adds to all functions, so only the first three are
times. A program whose result is wrong gets no times.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import many_steps
import numpy as np
from calls_programs import mesh_fit, ode, steps_per_submission, value_and_gradient
from many_steps import error_of
from timing import alternated, dispatch_count, recorded_seconds, waited
from workloads import WORKLOADS

import shaderad as sad
from scripts.gpu.benchmarks import SAMPLE_COUNTS
from scripts.gpu.numpy_results import lorenz96_slope
from scripts.gpu.timed_programs import SINE_TOLERANCE, Sizes, mesh_error

STEPS, SMALL_STEPS = 200, 20
WAITED_ROUNDS, FEWEST_ROUNDS = 15, 3
WIDTH = 150
"""Characters of a line of a profile."""


@dataclass(frozen=True)
class Profiled:
    """A step that only records, and the error of its result relative to NumPy."""

    step: Callable[[], Any]
    error: Callable[[], float]


def mesh(device: sad.Device, sizes: Sizes) -> Profiled:
    fit = mesh_fit(sizes.edge(512))

    def error() -> float:
        arguments = fit.arguments()
        return mesh_error(arguments, fit.graph(*arguments))

    return Profiled(fit.step, error)


def workload(name: str, device: sad.Device, sizes: Sizes) -> Profiled:
    """Value and gradient, outside of graphs."""
    count = sizes.count(SAMPLE_COUNTS[name]) // 10 * 10
    step = value_and_gradient(name, count, device)
    return Profiled(step, lambda: error_of(step(), WORKLOADS[name](count).reference))


def many_dispatches(device: sad.Device, sizes: Sizes) -> Profiled:
    """The ode of many_steps.py, a graph of 121 dispatches at any size of the option `--small`."""
    (x,) = many_steps.ode().inputs
    direction = np.random.default_rng(0).normal(size=x.shape)
    step = ode()

    def error() -> float:
        slope = float(np.sum(step().numpy() * direction))
        exact = lorenz96_slope(x, direction)
        return abs(slope / exact - 1.0)

    return Profiled(step, error)


PROGRAMS: dict[str, Callable[[sad.Device, Sizes], Profiled]] = {
    "mesh": mesh,
    **{name: partial(workload, name) for name in ("W1", "W2", "W3")},
    "ode": many_dispatches,
}


def main() -> int:
    options = _arguments()
    wrong_count = 0
    with sad.open_device() as device:
        for name in options.names or PROGRAMS:
            program = PROGRAMS[name](device, Sizes(options.small))
            line: dict[str, Any] = {"what": name, "runtime": device.capabilities.runtime}
            error = program.error()
            line["error"] = float(f"{error:.1e}")
            if not error <= SINE_TOLERANCE:
                wrong_count += 1
                print(json.dumps(line | {"wrong": f"above {SINE_TOLERANCE:g}"}), flush=True)
                continue
            count = SMALL_STEPS if options.small else STEPS
            print(json.dumps(line | times(device, program.step, count)), flush=True)
            for row in profile(device, program.step, count, options.rows):
                print(row, flush=True)
    device.close()
    return int(wrong_count > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.gpu.host_profile", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}; or all"
    )
    parser.add_argument("--small", action="store_true", help="sizes for a software driver")
    parser.add_argument("--rows", type=int, default=25, help="functions of a profile")
    options = parser.parse_args()
    if unknown := {*options.names} - {*PROGRAMS}:
        parser.error(f"no program {', '.join(sorted(unknown))}; choose from {', '.join(PROGRAMS)}")
    return options


def times(device: sad.Device, step: Callable[[], Any], count: int) -> dict[str, Any]:
    """Microseconds per step of a program that is warm."""
    milliseconds = alternated({"": waited(device, step)}, WAITED_ROUNDS)[""]
    _, whole = recorded_seconds(device, step, count)
    return {
        "dispatches": dispatch_count(device, step),
        "host_us": round(1e6 * statistics.median(recorded_rounds(device, step, count)), 1),
        "step_us": round(1e6 * whole / count, 1),
        "waited_us": round(1e3 * statistics.median(milliseconds), 1),
    }


def profile(device: sad.Device, step: Callable[[], Any], count: int, rows: int) -> Iterator[str]:
    """The lines of a profile of about `count` steps, the most own time first."""
    profiler = cProfile.Profile()
    recorded_rounds(device, step, count, profiler)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(rows)
    for line in text.getvalue().splitlines():
        if line.strip():
            yield line[:WIDTH]


def recorded_rounds(
    device: sad.Device,
    step: Callable[[], Any],
    count: int,
    profiler: AbstractContextManager[object] | None = None,
) -> list[float]:
    """Seconds per step of about `count` steps, in rounds of as many as fit into one submission.

    Between rounds the device catches up, because a submission to a busy device may wait.
    """
    per_round = steps_per_submission(device, step)
    seconds: list[float] = []
    for _ in range(max(FEWEST_ROUNDS, count // per_round)):
        device.synchronize()
        with profiler or nullcontext():
            start = time.perf_counter()
            for _ in range(per_round):
                step()
            seconds.append((time.perf_counter() - start) / per_round)
    device.synchronize()
    return seconds


if __name__ == "__main__":
    sys.exit(main())
