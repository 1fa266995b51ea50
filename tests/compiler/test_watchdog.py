"""A child is killed for what it does, not for how busy the machine is."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from shaderad.compiler import child as child_process
from shaderad.compiler.child import Watchdog

BLOCKED = "import time; time.sleep(600)"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BLOCKED])
    yield process
    process.kill()
    process.wait()


def test_a_child_that_has_used_its_seconds_is_killed(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 60.0) as watching:
        watching.heard(59.0)
        assert watching.excess == ""
        watching.heard(60.0)
        process.wait()
    assert watching.excess == "used 60 s of processor time"


def test_a_child_that_reports_nothing_is_killed(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 0.25) as watching:
        process.wait()
    assert "stood still" in watching.excess


def test_reports_alone_are_no_progress(process: subprocess.Popen[bytes]) -> None:
    start = time.monotonic()
    with Watchdog(process, 0.25) as watching:
        while process.poll() is None:
            watching.heard(1e-4 * (time.monotonic() - start))
            time.sleep(0.05)
    assert "stood still" in watching.excess


def test_a_child_that_waits_for_its_turn_is_left_alone(process: subprocess.Popen[bytes]) -> None:
    start = time.monotonic()
    with Watchdog(process, 0.25) as watching:
        while (passed := time.monotonic() - start) < 1.5:  # three times what may stand still
            watching.heard(0.05 * passed)
            time.sleep(0.02)
        assert process.poll() is None
    assert watching.excess == ""


def test_progress_does_not_go_on_for_ever(
    process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "CLOCK_FACTOR", 1.0)
    start = time.monotonic()
    with Watchdog(process, 0.5) as watching:
        while process.poll() is None:
            watching.heard(0.05 * (time.monotonic() - start))
            time.sleep(0.02)
    assert watching.excess.startswith("took")


def test_a_watchdog_of_the_past_leaves_the_child_alone(process: subprocess.Popen[bytes]) -> None:
    with Watchdog(process, 0.05) as watching:
        pass
    watching.heard(1.0)
    time.sleep(0.3)
    assert process.poll() is None
    assert watching.excess == ""
