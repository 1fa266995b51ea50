"""Two checkouts take turns, and only sides of ours are timed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.samples.loading import ROOT

SCRIPT = """
import time

from timing import alternated

def compare(name):
    sides = {{name: lambda: time.sleep({seconds}), "by hand": lambda: 1 / 0}}
    times = alternated(sides, 3)
    assert [len(one) for one in times.values()] == [3, 3]
"""


@pytest.fixture
def two_checkouts(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "two_checkouts", raising=False)
    return importlib.import_module("two_checkouts")


def checkout(folder: Path, script: str) -> Path:
    """A checkout with one benchmark."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "timing.py").write_text("")
    (folder / "benchmarks" / "sleeping.py").write_text(script)
    return folder


def test_the_ratio_is_that_of_the_steps(
    two_checkouts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = checkout(tmp_path / "older", SCRIPT.format(seconds=0.01))
    newer = checkout(tmp_path / "newer", SCRIPT.format(seconds=0.03))
    serving = str(ROOT / "benchmarks" / "two_checkouts.py")
    monkeypatch.setattr(two_checkouts, "HERE", newer / "benchmarks")
    (newer / "benchmarks" / "two_checkouts.py").symlink_to(serving)
    row = two_checkouts.Row("sleeping", "compare", ("ours",))
    ((name, old, new, ratio),) = two_checkouts.compared(row, older, 3, "perf_counter")
    assert name == "sleeping ours ours"
    assert 10 <= old < new
    assert 1.5 < ratio < 5


def test_a_row_that_fails_has_no_times(
    two_checkouts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = checkout(tmp_path / "older", SCRIPT.format(seconds=0.01))
    newer = checkout(tmp_path / "newer", "def compare(name):\n    raise ValueError\n")
    monkeypatch.setattr(two_checkouts, "HERE", newer / "benchmarks")
    (newer / "benchmarks" / "two_checkouts.py").symlink_to(ROOT / "benchmarks/two_checkouts.py")
    row = two_checkouts.Row("sleeping", "compare", ("ours",))
    assert [*two_checkouts.compared(row, older, 3, "perf_counter")] == []


def test_every_row_of_a_checkout_has_a_name_of_its_own(two_checkouts: Any) -> None:
    names = [row.name for row in two_checkouts.rows(["wgpu", "slangpy"])]
    assert len(names) == len(set(names)) > 50
