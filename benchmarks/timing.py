"""Times of steps that take turns, errors of gradients, and the lines that benchmarks print."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Floats = np.ndarray[Any, Any]


def alternated(
    steps: Mapping[str, Callable[[], None]],
    rounds: int = 15,
    waits: Mapping[str, Callable[[], object]] | None = None,
) -> dict[str, list[float]]:
    """Milliseconds of each step, a round after the other so that all meet the same machine.

    Each comes after one of its own that is not timed: worker threads of the step before, which may
    spin on for a while, have gone to sleep, and its own are awake. After each, `waits` lets what it
    left running end, untimed.
    """
    for step in steps.values():
        step()
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            wait = waits[name] if waits else _nothing
            step()
            wait()
            start = time.perf_counter()
            step()
            times[name].append(1e3 * (time.perf_counter() - start))
            wait()
    return times


def _nothing() -> None: ...


def waited(device: Any, step: Callable[[], object]) -> Callable[[], None]:
    """`step`, and a wait for what it left to the device."""

    def run() -> None:
        step()
        device.synchronize()

    return run


def recorded_seconds(device: Any, step: Callable[[], object], count: int) -> tuple[float, float]:
    """Seconds to record `count` steps without waiting, and to the end of their computation."""
    device.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    recorded = time.perf_counter()
    device.synchronize()
    return recorded - start, time.perf_counter() - start


def with_bytecode(**variables: str) -> dict[str, str]:
    """The environment of a process that keeps bytecode: a checkout gets it at the first run.

    Installed packages have theirs; without it Python compiles all of them at each start.
    """
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def median_ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """The median over pairs that ran one after the other."""
    return statistics.median(a / b for a, b in zip(times, others, strict=True))


def dispatch_count(device: Any, step: Callable[[], Any]) -> int:
    """The dispatches of one step on a device."""
    from shaderad.profiling.recorder import DispatchRecorder

    recorder = device.kept(DispatchRecorder)
    begin = recorder.open()
    try:
        step()
        return recorder.finish().dispatches - begin.dispatches
    finally:
        recorder.close()


def on_each(runtimes: Iterable[str], run: Callable[[str], None]) -> None:
    """Runs a benchmark on each runtime, on all without `runtimes`; says which are missing here."""
    from shaderad.diagnostics import DeviceError

    for runtime in runtimes or ("wgpu", "slangpy"):
        try:
            run(runtime)
        except DeviceError as failure:
            print(f"{runtime:8} not here: {failure.message}")


def report_seconds(name: str, seconds: Sequence[float], goal: float | None) -> None:
    median = statistics.median(seconds)
    verdict = f"   above the goal of {goal} s" if goal is not None and median > goal else ""
    print(f"{name:12} median {median:5.2f} s   least {min(seconds):5.2f} s{verdict}")


def relative_error(gradient: Floats, reference: Floats) -> float:
    """The largest difference, relative to the largest element of the gradient."""
    return float(np.abs(gradient - reference).max() / np.abs(reference).max())
