"""Trials in child processes: whatever ends or stops one is an outcome, and the rest are run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import shaderad as sad
from shaderad import doctor
from shaderad.deep import STARTS, TRIALS, Outcome, outcomes_of, run_trials

CHILD = """
import os, signal, sys, time
from pathlib import Path
from shaderad.deep import Lacking, run_trials
from shaderad.diagnostics import error

def wrong(): raise AssertionError("off by one")
def lacking(): raise Lacking("no compiler")
def unable(): raise error("SR0608", program="p", missing="half", adapter="a")
def dies(): os.kill(os.getpid(), signal.SIGSEGV)
def hangs(): time.sleep(1000)

trials = [
    ("good", lambda: {"size": 3}), ("wrong", wrong), ("lacking", lacking), ("unable", unable),
    ("dies", dies), ("between", lambda: None), ("hangs", hangs), ("last", lambda: None),
]
run_trials(trials, Path(sys.argv[1]), float(sys.argv[2]))
"""


def outcomes(tmp_path: Path, seconds: str = "1000") -> dict[str, Outcome]:
    command = (sys.executable, "-c", CHILD, str(tmp_path / "log.jsonl"), seconds)
    # Long enough for the import of shaderad on a busy machine.
    found = outcomes_of(command, tmp_path / "log.jsonl", {}, silent_seconds=10.0)
    return {outcome.name: outcome for outcome in found}


@pytest.mark.skipif(sys.platform == "win32", reason="processes there die without a signal")
def test_each_trial_has_an_outcome_whatever_it_does_to_its_process(tmp_path: Path) -> None:
    found = outcomes(tmp_path)
    assert {name: outcome.status for name, outcome in found.items()} == {
        "good": "passed", "wrong": "failed", "lacking": "refused", "unable": "refused",
        "dies": "failed", "between": "passed", "hangs": "failed", "last": "passed",
    }  # fmt: skip
    assert found["good"].facts == {"size": 3}
    assert found["wrong"].detail == "AssertionError: off by one"
    assert found["dies"].detail == "its process died of SIGSEGV"
    assert found["hangs"].detail == "gave no answer in 10 s"


def test_trials_that_the_time_does_not_suffice_for_are_left_out(tmp_path: Path) -> None:
    found = outcomes(tmp_path, seconds="-1")
    assert {outcome.status for outcome in found.values()} == {"left out"}
    assert len(found) == 8


def test_a_process_that_does_not_start_is_one_outcome(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no such device')")
    (found,) = outcomes_of(command, tmp_path / "log.jsonl", {})
    assert (found.name, found.status) == ("start", "failed")
    assert found.detail.endswith("no such device")


@pytest.mark.skipif(sys.platform == "win32", reason="processes there die without a signal")
def test_trials_end_with_a_failure_where_process_after_process_dies(tmp_path: Path) -> None:
    child = CHILD.replace("trials = [", "trials = [(f'dies {k}', dies) for k in range(9)] + [")
    log = tmp_path / "log.jsonl"
    found = outcomes_of((sys.executable, "-c", child, str(log), "1000"), log, {})
    assert [(one.name, one.status) for one in found] == [
        *((f"dies {k}", "failed") for k in range(STARTS)), ("further trials", "failed"),
    ]  # fmt: skip
    assert found[-1].detail == "8 processes died or hung: no further one was started"


@pytest.mark.gpu
def test_devices_pass_the_trials(device: sad.Device, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    run_trials(TRIALS, log, float("inf"))
    assert log.read_text().count('"status": "passed"') == len(TRIALS), log.read_text()


def test_the_doctor_tells_of_each_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [
        ("wgpu:0", "a GPU", [Outcome("sorts", "passed"), Outcome("scans", "refused", "no half")]),
        ("wgpu:1", "another", [Outcome("sorts", "failed", "off by 1\nat 3")]),
    ]
    monkeypatch.setattr("shaderad.deep.examine_adapters", lambda: iter(told))
    first, second = doctor.examine_deeply()
    assert (first.subject, first.status) == ("wgpu:0", "ok")
    assert first.detail == "1 of 2 pass on a GPU\nscans refused: no half"
    assert (second.status, second.detail) == (
        "failed",
        "0 of 1 pass on another\nsorts failed: off by 1",
    )
