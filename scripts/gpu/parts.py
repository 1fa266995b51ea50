"""The parts of the report on one adapter, in a process of its own; its log is the result.

    SHADERAD_DEVICE=wgpu:0 python -m scripts.gpu.parts --only "conformance: NAME"

A trial is a name and a call (`shaderad/deep.py`). With `--only` it runs alone and prints how it
ends: the reproducer that the report names.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import shaderad as sad
from scripts.gpu.benchmarks import benchmark_trials
from scripts.gpu.commands import host_trials, sample_trials
from scripts.gpu.launch_rows import add_shape_option, change_rows
from shaderad.deep import TRIALS, Lacking, Trial, run_trials
from shaderad.runtime.devices import DEVICE_VARIABLE
from tests.conformance import checks
from tests.conformance.compile_only import DEVICES as COMPILED_APIS
from tests.conformance.compile_only import compiled
from tests.random_graphs.comparison import fault
from tests.random_graphs.generation import case
from tests.random_programs.comparison import Outcome as ProgramOutcome
from tests.random_programs.comparison import compare
from tests.random_programs.generation import chunk
from tests.random_programs.programs import Program
from tests.random_programs.reproduction import reproduction

PROGRAM_COUNT, GRAPH_COUNT = 200, 100
SEED = 1
SILENT_SECONDS = 150.0
"""The longest that a trial takes: a driver has a minute for each of the two codes of a program."""


@dataclass(frozen=True)
class Task:
    """The device and folder of a part's run."""

    device: sad.Device | None
    out: Path
    """The folder of the report."""
    is_quick: bool
    is_preparing: bool = False
    """True if benchmarks run once, for the code that they compile."""


@dataclass(frozen=True)
class Part:
    trials: Callable[[Task], Iterator[Trial]]
    weight: float
    """Its share of the time, relative to others."""


def device_of(info: sad.DeviceInfo) -> str:
    """The value of `SHADERAD_DEVICE` that chooses an adapter."""
    return f"{info.runtime}:{info.index}"


def _opened(task: Task) -> Iterator[Trial]:
    device = task.device
    assert device is not None

    def capabilities() -> Mapping[str, Any]:
        facts = asdict(device.capabilities)
        return {k: sorted(v) if isinstance(v, frozenset) else v for k, v in facts.items()}

    yield "open", capabilities
    yield from TRIALS


def _conformance(task: Task) -> Iterator[Trial]:
    """In an order that mixes families and modes, so that the first ones are a sample of all."""
    modes = {"primal": checks.check_primal, "vjp": checks.check_vjp, "jvp": checks.check_jvp}
    cases = [(name, mode) for mode in modes for name in checks.programs_with(mode)]
    random.Random(SEED).shuffle(cases)
    for name, mode in cases:
        check = partial(modes[mode], name, task.device)
        yield f"{name} {mode}", partial(_unskipped, check)


def _unskipped(check: Callable[[], None]) -> None:
    """A case that pytest would skip lacks a feature of the device."""
    import pytest

    try:
        check()
    except pytest.skip.Exception as skipped:
        raise Lacking(str(skipped)) from None


def _programs(task: Task) -> Iterator[Trial]:
    stream = chain.from_iterable(chunk(SEED, number) for number in count())
    made: list[Program] = []
    for number in range(PROGRAM_COUNT):
        yield f"program {number}", partial(_program, number, stream, made, task)


def _program(
    number: int, stream: Iterator[Program], made: list[Program], task: Task
) -> Mapping[str, Any]:
    """Takes the programs up to its own from the stream, which takes time to make each."""
    assert task.device is not None
    made += islice(stream, number + 1 - len(made))
    verdict = compare(made[number], task.device)
    if verdict.is_fault:
        device = os.environ[DEVICE_VARIABLE].replace(":", "-")
        file = task.out / f"program-{number}-{device}.py"
        file.write_text(reproduction(made[number], verdict.detail), encoding="utf-8")
        raise AssertionError(f"{verdict.outcome.value}, see {file.name}: {verdict.detail}")
    if verdict.outcome is ProgramOutcome.REFUSED:
        raise Lacking(verdict.detail)
    return {"outcome": verdict.outcome.value}


def _graphs(task: Task) -> Iterator[Trial]:
    for number in range(GRAPH_COUNT):
        yield f"graph {number}", partial(_graph, number, task)


def _graph(number: int, task: Task) -> None:
    assert task.device is not None
    found = fault(case(number), task.device)
    if found:
        raise AssertionError(found)


def _compiled(task: Task) -> Iterator[Trial]:
    """Code for APIs without a device here; minutes, so only in a whole run."""
    here = {info.api for info in sad.devices()}
    for api in COMPILED_APIS:
        if api not in here and not task.is_quick:
            yield f"code for {api}", partial(_compiled_for, api)


def _compiled_for(api: str) -> Mapping[str, Any]:
    outcome = compiled(api)
    refusals = outcome.refusals()
    if refusals:
        raise AssertionError("\n".join([outcome.summary, *refusals]))
    return {"summary": outcome.summary}


MEASURED, PREPARED = "benchmarks", "preparation"
PARTS: dict[str, Part] = {
    "open": Part(_opened, 1.0),
    PREPARED: Part(lambda task: benchmark_trials(replace(task, is_preparing=True)), 3.0),
    "conformance": Part(_conformance, 4.0),
    "samples": Part(lambda task: sample_trials(task.out, is_quick=task.is_quick), 2.0),
    "graphs": Part(_graphs, 1.5),
    "programs": Part(_programs, 2.0),
    MEASURED: Part(benchmark_trials, 3.0),
}
"""On each adapter; those last that can use any time. Only `MEASURED` has to run alone."""
MACHINE_PARTS: dict[str, Part] = {
    "hosts": Part(lambda task: host_trials(task.out), 1.0),
    "code": Part(_compiled, 3.0),
}
"""Once."""


PART_END = ": "
"""Between the name of a part and that of a trial."""


def main() -> None:
    options = _arguments()
    change_rows(options.shape)
    options.log.parent.mkdir(parents=True, exist_ok=True)
    if DEVICE_VARIABLE in os.environ:
        with sad.open_device() as device:
            _run(PARTS, Task(device, options.log.parent, options.quick), options)
    else:
        _run(MACHINE_PARTS, Task(None, options.log.parent, options.quick), options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.gpu.parts", description=__doc__)
    parser.add_argument("--log", type=Path, default=Path("out/gpu/trials.jsonl"))
    parser.add_argument("--end", type=float, default=float("inf"), help="a time in seconds")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="NAME", help="run one trial, and print its outcome")
    parser.add_argument(
        "--part", nargs="*", choices=[*PARTS, *MACHINE_PARTS], help="run these parts; else all"
    )
    parser.add_argument("--share", default="0/1", metavar="K/N", help="trials k, k + n, ...")
    add_shape_option(parser)
    return parser.parse_args()


def _run(parts: Mapping[str, Part], task: Task, options: argparse.Namespace) -> None:
    parts = {name: parts[name] for name in parts if name in (options.part or parts)}
    first, step = map(int, options.share.split("/"))
    weight = sum(part.weight for part in parts.values())
    for name, part in parts.items():
        trials = ((f"{name}{PART_END}{trial}", run) for trial, run in part.trials(task))
        if options.only is not None:
            print(*(run() or "passed" for trial, run in trials if trial == options.only))
            continue
        # Later parts get the time that one part does not use.
        seconds = max(0.0, options.end - time.time()) * part.weight / weight
        weight -= part.weight
        run_trials(islice(trials, first, None, step), options.log, seconds)


if __name__ == "__main__":
    main()
