"""Processor time per test: the slowest tests, and those that became slower than a file says.

Most of a test's time is spent in compilers, which run in this process and in its children, so both
count. Processor time hardly depends on what else the machine does, unlike time on the clock.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median

SLOWEST = Path(__file__).parent / "slowest.json"
"""Seconds of the slowest tests of a whole run, from empty caches (`--keep-slowest` writes it)."""
SHOWN = 30
SLOWER = 3.0
"""A test that takes this many times its kept seconds is reported."""
FEWEST_KNOWN = 10
"""With fewer kept tests in a run, the ratio of two machines' speeds is unknown, and taken as 1."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 1


def processor_seconds() -> float:
    """Processor time of this process and its descendants so far, those that ended included."""
    times = sum(os.times()[:4])
    seconds, children = _processes()
    running = list(children[os.getpid()])
    for process in running:
        running += children[process]
    return times + sum(seconds[process] for process in running)


def _processes() -> tuple[dict[int, float], dict[int, list[int]]]:
    """Seconds of each process and its ended children, and the children of each that run.

    Both are empty where the system has no /proc. A list of children by thread would miss those
    whose thread ends meanwhile.
    """
    seconds: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # The process has ended meanwhile.
            continue
        process = int(path.parent.name)
        # Fields 4 and 14 to 17 of the file: the parent, user and system time.
        seconds[process] = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
        children[int(fields[1])].append(process)
    return seconds, children


def slowest(seconds_by_test: Mapping[str, float]) -> dict[str, float]:
    """The slowest tests, slowest first."""
    ranked = sorted(seconds_by_test.items(), key=lambda row: -row[1])
    return {test: round(seconds, 1) for test, seconds in ranked[:SHOWN]}


def became_slower(now: Mapping[str, float], kept: Mapping[str, float]) -> list[str]:
    """A line for each test that takes `SLOWER` times as long as before, by this machine's speed.

    A test that `kept` does not name took at most as long as the fastest test there, or is new.
    """
    if not kept:
        return []
    known = [now[test] / kept[test] for test in kept if test in now]
    # Machines differ in speed, and caches that are full make most tests faster, but none slower.
    speed = max(1.0, median(known)) if len(known) >= FEWEST_KNOWN else 1.0
    bound = min(kept.values())
    return [
        f"{test}: {seconds:.1f} s, {_before(kept.get(test), bound)}"
        for test, seconds in now.items()
        if seconds > SLOWER * speed * kept.get(test, bound)
    ]


def _before(kept: float | None, bound: float) -> str:
    return f"{kept:.1f} s before" if kept is not None else f"at most {bound:.1f} s before, or new"


def kept_seconds() -> dict[str, float]:
    """What the file holds; empty without one."""
    return json.loads(SLOWEST.read_text()) if SLOWEST.exists() else {}


def keep(seconds_by_test: Mapping[str, float]) -> None:
    """Writes the slowest tests into the file."""
    SLOWEST.write_text(json.dumps(slowest(seconds_by_test), indent=2) + "\n")
