"""Checks and measures every adapter of this machine: `scripts/run gpu [--quick]`.

Writes report.json and report.html to out/gpu. The trials of an adapter run in a process of their
own (`parts.py`), so that one that hangs or dies is a line of the report.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import shaderad as sad
from scripts.gpu.page import page
from scripts.gpu.parts import PART_END, SILENT_SECONDS, device_of
from shaderad.deep import Outcome, outcomes_of
from shaderad.runtime.devices import DEVICE_VARIABLE

QUICK_MINUTES, WHOLE_MINUTES = 3.0, 30.0
PACKAGES = ("shaderad", "slangpy", "wgpu", "numpy", "torch", "jax", "warp-lang", "drjit")


def main() -> int:
    given = _arguments()
    adapters = [info for info in sad.devices() if device_of(info).startswith(given.device)]
    if given.out.exists():
        shutil.rmtree(given.out)
    given.out.mkdir(parents=True)
    start = time.time()
    end = start + 60 * (given.minutes or (QUICK_MINUTES if given.quick else WHOLE_MINUTES))
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    runs = ["", *map(device_of, adapters)]
    for number, device in enumerate(runs):
        now = time.time()
        # What one run does not use, later ones get.
        seconds = max(0.0, end - now) / (len(runs) - number)
        outcomes = _run(device, given.out, now + seconds, is_quick=given.quick)
        results[device] = _by_part(outcomes)
        for part, rows in results[device].items():
            print(f"{device or 'machine':10} {part:12} {summary(rows)}", flush=True)
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


def _run(device: str, out: Path, end: float, *, is_quick: bool) -> list[Outcome]:
    """All parts of one device, or of the machine, until a time as `time.time` gives it."""
    log = out / f"{device.replace(':', '-') or 'machine'}.jsonl"
    command = [sys.executable, "-m", "scripts.gpu.parts", "--log", str(log), "--end", f"{end:.0f}"]
    command += ["--quick"] if is_quick else []
    environment = {DEVICE_VARIABLE: device} if device else {}
    return outcomes_of(command, log, environment, SILENT_SECONDS)


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
