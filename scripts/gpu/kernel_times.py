"""Device time of every kernel of a program, by timestamps of wgpu or slangpy.

    SHADERAD_DEVICE=slangpy:0 python -m scripts.gpu.kernel_times [--small] [SET ...]

One JSON line per program. A program whose results differ from those of NumPy gets a line without
times. Times are microseconds: `kernels_us` of all kernels (each the median of 7 runs), `step_us` of
a step in a queue that is full, `host_us` of recording it, and `torch_us` by PyTorch on CUDA. For
each kernel `kernels` has the number of its dispatches, their time, and the most workgroups.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from timing import recorded_seconds

import shaderad as sad
from scripts.gpu.launch_rows import add_shape_option, change_rows
from scripts.gpu.timed_programs import SETS, Sizes, TimedProgram
from scripts.gpu.timestamps import Dispatched, dispatches_of

RUNS = 7
WARM_SECONDS = 0.6
"""A device that waited for long has low clocks."""
RECORDED_DISPATCHES = 1024
"""Enough for many submissions: the first dispatches wait for others."""
MOST_STEPS, SMALL_STEPS = 1000, 5
MOST_KERNELS = 14
"""Kernels of a line, the slowest first."""


def main() -> int:
    options = _arguments()
    change_rows(options.shape)
    end = time.monotonic() + options.seconds
    wrong_count = 0
    device = sad.open_device()
    with device:
        for line in _lines(device, options, end):
            print(json.dumps(line), flush=True)
            wrong_count += "wrong" in line
    device.close()
    return int(wrong_count > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.gpu.kernel_times", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; or all")
    parser.add_argument("--small", action="store_true", help="sizes for a software driver")
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--seconds", type=float, default=200.0, help="no program begins later")
    add_shape_option(parser)
    options = parser.parse_args()
    if unknown := {*options.sets} - {*SETS}:
        parser.error(f"no set {', '.join(sorted(unknown))}; choose from {', '.join(SETS)}")
    return options


def _lines(device: sad.Device, options: argparse.Namespace, end: float) -> Iterator[dict[str, Any]]:
    """A line for each program that was asked for."""
    for name in options.sets or SETS:
        for program in SETS[name](device, Sizes(options.small)):
            if options.only not in program.name:
                continue
            line: dict[str, Any] = {"what": program.name, "size": program.size}
            if time.monotonic() > end:
                yield line | {"skipped": "no time was left"}
                continue
            try:
                yield line | measured(program, device, is_small=options.small)
            except sad.Error as failure:
                yield line | {"refused": str(failure)}


def measured(program: TimedProgram, device: sad.Device, *, is_small: bool) -> dict[str, Any]:
    """The times of a program, once its results are right."""
    start = time.perf_counter()
    results = program.step()
    device.synchronize()
    facts: dict[str, Any] = {"first_s": round(time.perf_counter() - start, 2)}
    error = program.error(results)
    del results
    facts["error"] = float(f"{error:.1e}")
    if not error <= program.tolerance:
        return facts | {"wrong": f"above {program.tolerance:g}"}
    _warm_up(program.step, device, 0.0 if is_small else WARM_SECONDS)
    runs = [dispatches_of(device, program.step) for _ in range(RUNS)]
    fitting = max(1, RECORDED_DISPATCHES // max(1, len(runs[0])))
    count = min(SMALL_STEPS if is_small else MOST_STEPS, fitting)
    host, whole = recorded_seconds(device, program.step, count)
    facts |= {"step_us": round(1e6 * whole / count, 1), "host_us": round(1e6 * host / count, 1)}
    facts |= _kernel_facts(program, runs)
    if program.torch is not None and (library := _torch_on_cuda()) is not None:
        facts["torch_us"] = round(_cuda_microseconds(library, program.torch(library)), 1)
    return facts


def _warm_up(step: Callable[[], Any], device: sad.Device, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while True:
        step()
        device.synchronize()
        if time.perf_counter() >= end:
            return


def _kernel_facts(program: TimedProgram, runs: list[list[Dispatched]]) -> dict[str, Any]:
    """Medians over runs of each dispatch, summed by kernel."""
    rows: dict[str, list[float]] = {}
    for dispatches in zip(*runs, strict=True):
        row = rows.setdefault(dispatches[0].kernel, [0, 0.0, 0])
        row[0] += 1
        row[1] += statistics.median(d.microseconds for d in dispatches)
        row[2] = max(row[2], dispatches[0].group_count)
    total = sum(row[1] for row in rows.values())
    slowest = sorted(rows.items(), key=lambda item: -item[1][1])[:MOST_KERNELS]
    facts: dict[str, Any] = {"kernels_us": round(total, 1), "dispatches": len(runs[0])}
    if program.byte_count:
        facts["GB/s"] = round(1e-3 * program.byte_count / total, 1)
    if program.operation_count:
        facts["TFLOP/s"] = round(1e-6 * program.operation_count / total, 3)
    kernels = {name: [row[0], round(row[1], 1), row[2]] for name, row in slowest}
    return facts | {"kernels": kernels}


def _torch_on_cuda() -> Any:
    """The module of PyTorch; `None` if it is not here or has no CUDA."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _cuda_microseconds(library: Any, step: Callable[[], Any], count: int = 10) -> float:
    """The median over runs of `count` steps, by events of CUDA."""
    milliseconds: list[float] = []
    for _ in range(RUNS):
        step()
        start, end = (library.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            step()
        end.record()
        library.cuda.synchronize()
        milliseconds.append(start.elapsed_time(end) / count)
    return 1e3 * statistics.median(milliseconds)


if __name__ == "__main__":
    sys.exit(main())
