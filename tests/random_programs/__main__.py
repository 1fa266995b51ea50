"""The long run: ``python -m tests.random_programs --count 2000 --seed 1 --runtime wgpu --log F``.

The log is one JSON line a program. A run continues where its log ends; a program that is at fault
is written beside the log as a Python file that can be run by itself, and the run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import shaderad as sad
from tests.random_programs.comparison import Outcome, Verdict, compare
from tests.random_programs.generation import chunk, shrunk
from tests.random_programs.hlsl_route import AS_PARALLEL, Untranslatable, hlsl_device
from tests.random_programs.programs import Program
from tests.random_programs.reproduction import reproduction

HLSL_STRIDE = 10
"""On wgpu, every so many programs run through HLSL too."""


_Routes = dict[str, tuple[sad.Device, ...]]


@dataclass(frozen=True)
class _Numbered:
    """One program of the endless list that a seed stands for."""

    chunk: int
    position: int
    program: Program

    @property
    def name(self) -> str:
        return f"{self.chunk}.{self.position}"


def main() -> int:
    given = _arguments()
    log = Path(given.log)
    entries = _entries(log)
    if entries and (entries[0]["seed"], entries[0]["runtime"]) != (given.seed, given.runtime):
        sys.exit(f"{log} belongs to another seed or runtime")
    with tempfile.TemporaryDirectory() as cache, log.open("a") as out:
        os.environ["SHADERAD_CACHE"] = cache  # Programs never repeat: nothing is worth keeping.
        with _routes(given.runtime) as routes:
            for number, one in enumerate(_remaining(given.seed, entries), start=len(entries)):
                if number >= given.count:
                    break
                entry = _run(one, number, routes, given, log)
                entries.append(entry)
                out.write(json.dumps(entry) + "\n")
                out.flush()
    return _summary(entries)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runtime", choices=("wgpu", "slangpy"), default="wgpu")
    parser.add_argument("--log", default="random_programs.jsonl")
    parser.add_argument("--shrink", action="store_true", help="look for the smallest such program")
    return parser.parse_args()


def _entries(log: Path) -> list[dict[str, object]]:
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines()]


def _remaining(seed: int, entries: list[dict[str, object]]) -> Iterator[_Numbered]:
    done = {entry["program"] for entry in entries}
    number = 0
    while True:
        for position, program in enumerate(chunk(seed, number)):
            one = _Numbered(number, position, program)
            if one.name not in done:
                yield one
        number += 1


@contextmanager
def _routes(runtime: str) -> Iterator[_Routes]:
    """The devices of each route, which take programs in turn."""
    devices = (sad.open_device(runtime), sad.open_device(runtime, limits=AS_PARALLEL))
    try:
        if runtime == "wgpu":
            with hlsl_device() as hlsl:
                yield {"spirv": devices, "hlsl": (hlsl,)}
        else:
            yield {"slang": devices}
    finally:
        for device in devices:
            device.close()


def _run(
    one: _Numbered,
    number: int,
    routes: _Routes,
    given: argparse.Namespace,
    log: Path,
) -> dict[str, object]:
    start = time.perf_counter()
    outcomes: dict[str, str] = {}
    details: dict[str, str] = {}
    for route, devices in routes.items():
        device = devices[number % len(devices)]
        if route == "hlsl" and number % HLSL_STRIDE:
            continue
        verdict = _compared(one.program, device)
        outcomes[route] = verdict.outcome.value
        if verdict.detail:
            details[route] = verdict.detail.partition("\n")[0]
        if verdict.is_fault:
            _keep(one, route, device, verdict, given, log)
    return {
        "seed": given.seed, "runtime": given.runtime, "program": one.name, "outcomes": outcomes,
        "details": details, "seconds": round(time.perf_counter() - start, 2),
    }  # fmt: skip


def _compared(program: Program, device: sad.Device) -> Verdict:
    """The verdict; what nobody foresaw is a fault too, and must not end the run."""
    try:
        with device:
            return compare(program, device)
    except Untranslatable:
        return Verdict(Outcome.REFUSED, "glslang")
    except Exception as failure:
        return Verdict(Outcome.FAILED, f"{type(failure).__name__}: {failure}")


def _keep(
    one: _Numbered,
    route: str,
    device: sad.Device,
    verdict: Verdict,
    given: argparse.Namespace,
    log: Path,
) -> None:
    program = one.program
    if given.shrink:
        kind = _kind(verdict)
        program = shrunk(
            given.seed, one.chunk, program.source, lambda p: _kind(_compared(p, device)) == kind
        )
        verdict = _compared(program, device)
    file = log.with_name(f"{log.stem}-{given.seed}-{one.name}-{route}.py")
    file.write_text(reproduction(program, verdict.detail))
    sys.stderr.write(f"{one.name} on {route}: {verdict.detail.partition(chr(10))[0]}\n  {file}\n")


def _kind(verdict: Verdict) -> tuple[Outcome, str]:
    """Mode and code of a fault, so that shrinking does not end at another one."""
    return verdict.outcome, verdict.detail.partition(":")[0].partition("[")[0]


def _summary(entries: list[dict[str, object]]) -> int:
    counts: Counter[str] = Counter()
    for entry in entries:
        outcomes = entry["outcomes"]
        assert isinstance(outcomes, dict)
        counts.update(f"{route} {outcome}" for route, outcome in outcomes.items())
    seconds = sum(float(str(entry["seconds"])) for entry in entries)
    sys.stdout.write(f"{len(entries)} programs, {seconds:.0f} s\n")
    sys.stdout.writelines(f"{count:6} {name}\n" for name, count in sorted(counts.items()))
    return int(any("mismatch" in name or "failed" in name for name in counts))


if __name__ == "__main__":
    sys.exit(main())
