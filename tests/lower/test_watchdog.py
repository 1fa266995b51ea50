"""A child is killed for what it does, not for how busy the machine is."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shaderad.lower import watchdog
from shaderad.lower.watchdog import Watchdog, processor_seconds

BLOCKED = "import time; time.sleep(60)"
SPINNING = "while True: pass"


def ended_after(script: str, seconds: float) -> float:
    """Seconds until the watchdog kills a process that runs `script`."""
    process = subprocess.Popen([sys.executable, "-c", script])
    time.sleep(0.5)  # the interpreter's start is work, too
    start = time.monotonic()
    watching = Watchdog(process, seconds)
    process.wait(60)
    assert watching.has_fired
    return time.monotonic() - start


@pytest.mark.parametrize("script", [BLOCKED, SPINNING], ids=["blocked", "spinning"])
def test_a_child_that_hangs_is_killed(script: str) -> None:
    assert ended_after(script, 0.5) < 30.0


def use(monkeypatch: pytest.MonkeyPatch, spent: Callable[[], float]) -> None:
    monkeypatch.setattr(watchdog, "processor_seconds", lambda pid: spent())


def test_a_child_that_waits_for_its_turn_gets_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.monotonic()
    use(monkeypatch, lambda: 0.25 * (time.monotonic() - start))  # a quarter of a processor
    assert ended_after(BLOCKED, 0.3) > 0.9


def test_a_cancelled_watchdog_leaves_the_child_alone() -> None:
    process = subprocess.Popen([sys.executable, "-c", BLOCKED])
    watching = Watchdog(process, 0.05)
    watching.cancel()
    time.sleep(0.2)
    assert process.poll() is None
    assert not watching.has_fired
    process.kill()
    process.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="no /proc here")
def test_processor_time_is_read_of_any_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", SPINNING])
    deadline = time.monotonic() + 30.0
    while processor_seconds(process.pid) < 0.1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert processor_seconds(process.pid) == 0.0
