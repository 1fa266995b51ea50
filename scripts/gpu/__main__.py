"""Checks and measures every adapter of this machine: `scripts/run gpu [--quick]`.

Writes report.json and report.html to out/gpu. Trials run in processes of their own (`parts.py`), so
that one that hangs or dies is a line of the report. Benchmarks run last, with nothing beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from threading import Event
from typing import Any

import shaderad as sad
from scripts.gpu.page import page
from scripts.gpu.parts import MEASURED, PART_END, PARTS, PREPARED, SILENT_SECONDS, device_of
from shaderad.deep import Outcome, outcomes_of
from shaderad.runtime.devices import DEVICE_VARIABLE

QUICK_MINUTES, WHOLE_MINUTES = 3.0, 30.0
UNMEASURED_SHARE = 0.55
"""The share of the time until measurements begin."""
PACKAGES = ("shaderad", "slangpy", "wgpu", "numpy", "torch", "jax", "warp-lang", "drjit")


def main() -> int:
    given = _arguments()
    adapters = [info for info in sad.devices() if device_of(info).startswith(given.device)]
    if given.out.exists():
        shutil.rmtree(given.out)
    given.out.mkdir(parents=True)
    start = time.time()
    end = start + 60 * (given.minutes or (QUICK_MINUTES if given.quick else WHOLE_MINUTES))
    results = _results(["", *map(device_of, adapters)], given.out, start, end, is_quick=given.quick)
    report = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "command": f"scripts/run gpu {' '.join(sys.argv[1:])}".strip(),
        "seconds": round(time.time() - start),
        "system": f"{platform.platform()}, {os.cpu_count()} processors",
        "versions": _versions(),
        "devices": [
            {"id": device_of(i), **asdict(i), "parts": results[device_of(i)]} for i in adapters
        ],
        "machine": results[""],
    }
    (given.out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (given.out / "report.html").write_text(page(report, given.out), encoding="utf-8")
    print(f"wrote {given.out / 'report.html'} and report.json in {report['seconds']} s")
    rows = [row for parts in results.values() for part in parts.values() for row in part]
    return int(any(row["status"] == "failed" for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/run gpu", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, 3 minutes for 30")
    parser.add_argument("--minutes", type=float, help="about how long it may take")
    parser.add_argument(
        "--device", default="", help="one adapter only, such as wgpu:0, or a runtime"
    )
    parser.add_argument("--out", type=Path, default=Path("out/gpu"))
    return parser.parse_args()


def _results(
    devices: Sequence[str], out: Path, start: float, end: float, *, is_quick: bool
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The outcomes of each device, and of the machine, "", by part.

    Everything but measurements runs first, in as many processes as there are processors. They also
    compile what is measured then, alone.
    """
    unmeasured_end = start + UNMEASURED_SHARE * (end - start)
    shares = max(1, (os.cpu_count() or 1) // len(devices))
    others = [name for name in PARTS if name != MEASURED]
    jobs = [
        _Job(device, tuple(others) if device else (), f"{k}/{shares}" if device else "0/1")
        for k in range(shares)
        for device in devices
        if device or k == 0
    ]
    found: dict[str, list[Outcome]] = {device: [] for device in devices}
    stop = Event()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        run = partial(_run, out=out, end=unmeasured_end, is_quick=is_quick, is_stopped=stop.is_set)
        try:
            for job, outcomes in zip(jobs, pool.map(run, jobs), strict=True):
                found[job.device] += outcomes
        except BaseException:
            stop.set()
            raise
    measured = [device for device in devices if device]
    for number, device in enumerate(measured):
        # What one device does not use, later ones get.
        seconds = max(0.0, end - time.time()) / (len(measured) - number)
        job = _Job(device, (MEASURED,))
        found[device] += _run(job, out, time.time() + seconds, is_quick=is_quick)
    results = {device: _by_part(outcomes) for device, outcomes in found.items()}
    for device, parts in results.items():
        # A benchmark that fails then fails again where it is measured.
        parts.pop(PREPARED, None)
        for part, rows in parts.items():
            print(f"{device or 'machine':10} {part:12} {summary(rows)}", flush=True)
    return results


@dataclass(frozen=True)
class _Job:
    """A process that runs a share of the trials of some parts."""

    device: str
    """Empty for those of the machine."""
    parts: tuple[str, ...]
    """All if empty."""
    share: str = "0/1"


def _run(
    job: _Job,
    out: Path,
    end: float,
    *,
    is_quick: bool,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """The outcomes of a job that ends at a time as `time.time` gives it."""
    parts = "-".join((job.device.replace(":", "-") or "machine", *job.parts[:1]))
    log = out / f"{parts}-{job.share.split('/')[0]}.jsonl"
    command = [sys.executable, "-m", "scripts.gpu.parts", "--log", str(log), "--end", f"{end:.0f}"]
    command += ["--share", job.share, *(["--quick"] if is_quick else [])]
    command += ["--part", *job.parts] if job.parts else []
    environment = {DEVICE_VARIABLE: job.device} if job.device else {}
    return outcomes_of(command, log, environment, SILENT_SECONDS, is_stopped)


def _by_part(outcomes: Sequence[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """The outcomes as JSON; the name of a trial begins with its part."""
    by_part: dict[str, list[dict[str, Any]]] = {}
    for outcome in outcomes:
        part, _, name = outcome.name.partition(PART_END)
        row = asdict(outcome) | {"name": name or part}
        by_part.setdefault(part, []).append(row)
    return by_part


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Counts by status, as ``12 passed, 1 failed``."""
    statuses = [row["status"] for row in rows]
    return ", ".join(f"{statuses.count(s)} {s}" for s in dict.fromkeys(statuses))


def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


if __name__ == "__main__":
    sys.exit(main())
