"""Processor time of tests: descendants count, and tests that became slower are found."""

from __future__ import annotations

import subprocess
import sys

from tests.processor_time import FEWEST_KNOWN, SHOWN, became_slower, processor_seconds, slowest

KEPT = {f"test {k}": 10.0 for k in range(FEWEST_KNOWN)}


def test_processor_time_includes_children_that_still_run() -> None:
    loop = "while time.process_time() < 0.3: pass"
    program = f"import sys, time\n{loop}\nprint(flush=True)\nsys.stdin.read()"
    before = processor_seconds()
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while_it_runs = processor_seconds() - before
        child.communicate()
    assert while_it_runs > 0.2
    # The system counts a process that runs in ticks of 10 ms, one that ended exactly.
    assert processor_seconds() - before > while_it_runs - 0.1


def test_a_test_that_takes_three_times_as_long_is_reported() -> None:
    now = KEPT | {"test 3": 31.0, "new": 29.0}
    assert became_slower(now, KEPT) == ["test 3: 31.0 s, 10.0 s before"]
    now = KEPT | {"new": 31.0}
    assert became_slower(now, KEPT) == ["new: 31.0 s, at most 10.0 s before, or new"]


def test_a_slower_machine_reports_nothing_and_full_caches_hide_nothing() -> None:
    slow = {test: 4 * seconds for test, seconds in KEPT.items()}
    assert became_slower(slow, KEPT) == []
    assert became_slower(slow | {"test 3": 121.0}, KEPT) == ["test 3: 121.0 s, 10.0 s before"]
    warm = {test: seconds / 5 for test, seconds in KEPT.items()}
    assert became_slower(warm | {"test 3": 29.0}, KEPT) == []
    assert became_slower(warm | {"test 3": 31.0}, KEPT) == ["test 3: 31.0 s, 10.0 s before"]


def test_only_the_slowest_are_kept_and_without_them_nothing_is_compared() -> None:
    seconds = {f"test {k}": float(k) for k in range(2 * SHOWN)}
    assert list(slowest(seconds)) == [f"test {k}" for k in range(2 * SHOWN - 1, SHOWN - 1, -1)]
    assert became_slower(seconds, {}) == []
