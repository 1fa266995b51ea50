"""Seconds that `shaderad build` takes, whole process: with an empty cache, and of nothing new.

    python benchmarks/build_time.py [ROUNDS]

The kernel reads a struct by an index that is read itself. Primal and backward are built for the
default targets, and all validators are asked that are installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load_time import SHADE
from timing import report_seconds, with_bytecode

GOALS = {"empty cache": 3.0, "unchanged": 0.6}


def seconds(source: Path, cache: Path) -> float:
    """The time of one build, whole process."""
    environment = with_bytecode(SHADERAD_CACHE=str(cache))
    command = "from shaderad.cli import main; main()"
    arguments = ("build", str(source), "-o", str(source.parent / "out"))
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", command, *arguments],
        check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.perf_counter() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    times: dict[str, list[float]] = {name: [] for name in GOALS}
    with tempfile.TemporaryDirectory() as folder:
        source, cache = Path(folder) / "shade.py", Path(folder) / "cache"
        source.write_text(SHADE, encoding="utf-8")
        seconds(source, cache)
        for _ in range(rounds):
            shutil.rmtree(cache)
            times["empty cache"].append(seconds(source, cache))
            times["unchanged"].append(seconds(source, cache))
    for name, goal in GOALS.items():
        report_seconds(name, times[name], goal)


if __name__ == "__main__":
    main()
