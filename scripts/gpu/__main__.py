"""Checks and measures every adapter of this machine: `scripts/run gpu [--quick]`.

Writes report.json and report.html to out/gpu. Every part of every adapter is a process of its own
(`parts.py`), so that one that hangs or dies is a line of the report.
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
from scripts.gpu.parts import MACHINE_PARTS, PARTS, device_of
from shaderad.deep import Outcome, outcomes_of

QUICK_SECONDS, WHOLE_SECONDS = 180.0, 1800.0
LONGEST_SILENCE = 120.0
"""Seconds of a whole run until a trial counts as hung: software drivers compile for a minute."""
PACKAGES = ("shaderad", "slangpy", "wgpu", "numpy", "torch", "jax", "warp-lang", "drjit")


def main() -> int:
    given = _arguments()
    adapters = [info for info in sad.devices() if device_of(info).startswith(given.device)]
    if given.out.exists():
        shutil.rmtree(given.out)
    given.out.mkdir(parents=True)
    start = time.monotonic()
    end = start + (QUICK_SECONDS if given.quick else WHOLE_SECONDS)
    tasks = [(device_of(info), part) for part in PARTS for info in adapters]
    tasks += [("", part) for part in MACHINE_PARTS]
    weight_left = sum(_weight(part) for _, part in tasks)
    results: dict[str, dict[str, Any]] = {}
    for device, part in tasks:
        # What one part does not use, later ones get.
        seconds = max(0.0, end - time.monotonic()) * _weight(part) / weight_left
        weight_left -= _weight(part)
        print(f"{device or 'machine':10} {part:12} {seconds:5.0f} s at most", end="", flush=True)
        outcomes = _run(part, device, given.out, seconds, is_quick=given.quick)
        results.setdefault(device, {})[part] = [asdict(outcome) for outcome in outcomes]
        print(f"   {summary(outcomes)}", flush=True)
    report = {
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "command": f"scripts/run gpu {' '.join(sys.argv[1:])}".strip(),
        "seconds": round(time.monotonic() - start),
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
    every = [o for parts in results.values() for outcomes in parts.values() for o in outcomes]
    return int(any(outcome["status"] == "failed" for outcome in every))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/run gpu", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 minutes instead of 30")
    parser.add_argument(
        "--device", default="", help="one adapter only, such as wgpu:0, or a runtime"
    )
    parser.add_argument("--out", type=Path, default=Path("out/gpu"))
    return parser.parse_args()


def _weight(part: str) -> float:
    return {**PARTS, **MACHINE_PARTS}[part].weight


def _run(part: str, device: str, out: Path, seconds: float, *, is_quick: bool) -> list[Outcome]:
    log = out / f"{part}-{device.replace(':', '-') or 'machine'}.jsonl"
    command = [sys.executable, "-m", "scripts.gpu.parts", part, "--log", str(log)]
    command += ["--seconds", f"{seconds:.0f}", *(["--quick"] if is_quick else [])]
    environment = {"SHADERAD_DEVICE": device} if device else {}
    silent = min(LONGEST_SILENCE, max(seconds, 30.0))
    return outcomes_of(command, log, environment, silent)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Counts by status, as ``12 passed, 1 failed``."""
    statuses = [outcome.status for outcome in outcomes]
    return ", ".join(f"{statuses.count(s)} {s}" for s in dict.fromkeys(statuses)) or "nothing to do"


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
