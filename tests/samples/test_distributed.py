"""The sample of several processes: what they compute together, and what becomes of a killed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "samples" / "distributed" / "main.py"
STEPS = ROOT / "tests" / "samples" / "distributed_steps.py"
FLOAT32 = 1e-6
"""Of the largest derivative: sums of the same numbers in another order."""
SECONDS = 300


def launched(count: int, *command: Any, restarts: int = 0) -> subprocess.Popen[str]:
    """So many processes, on the cores that are there."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                f"--nproc-per-node={count}", f"--max-restarts={restarts}"]  # fmt: skip
    settings = {**os.environ, "LP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*launcher, *map(str, command)], env=settings, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


def ended(process: subprocess.Popen[str], code: int) -> str:
    """The output of the processes, which have to end with this code."""
    told, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == code, told
    return told


@pytest.fixture
def together() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`launched`; nothing goes on after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*args: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(launched(*args, **options))
        return started[-1]

    yield start
    for one in started:
        if one.poll() is None:
            one.terminate()
            one.wait(SECONDS)


def test_processes_find_together_what_one_finds(
    together: Callable[..., subprocess.Popen[str]], device: sad.Device, tmp_path: Path
) -> None:
    runtime = device.capabilities.runtime
    for count in (1, 2):
        ended(together(count, STEPS, 4, runtime, tmp_path), 0)
    alone, first, second = (np.load(tmp_path / f"{name}.npz") for name in ("1_0", "2_0", "2_1"))
    expected, found = alone["gradients"][0], first["gradients"][0]
    assert np.abs(found - expected).max() <= FLOAT32 * np.abs(expected).max()
    assert np.abs(expected).max() > 0
    np.testing.assert_array_equal(first["moves"], second["moves"])


def test_a_killed_process_ends_the_others_and_a_restart_goes_on(
    together: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    options = ("--size", 32, "--steps", 60, "--every", 5, "--out", tmp_path)
    process = together(2, MAIN, *options, restarts=1)
    assert process.stdout is not None
    line = ""
    while not line.startswith("step  20"):
        line = process.stdout.readline()
        assert line, "ended early"
    os.kill(children_of(process.pid)[-1], signal.SIGKILL)
    told = ended(process, 0)
    assert "process 0 of 2" in told
    assert "Traceback" not in told
    (start,) = [int(one.split()[-1]) for one in told.splitlines() if one.startswith("resumes")]
    assert 20 <= start < 60
    assert "step  60" in told
    assert (tmp_path / "overview.png").exists()
    assert not (tmp_path / "checkpoint.pt").exists()


def children_of(parent: int) -> list[int]:
    """The processes that one started, the last at the end."""
    return [int(one) for one in
            Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]  # fmt: skip


def test_an_uneven_share_is_refused(
    together: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    told = ended(together(3, MAIN, "--quick", "--out", tmp_path), 1)
    assert "3 processes cannot share 8 views evenly: take 1, 2, 4 or 8" in told


def test_one_process_needs_no_launcher_and_keeps_to_its_own_run(tmp_path: Path) -> None:
    command = [sys.executable, MAIN, "--size", "16", "--steps", "2", "--out", tmp_path]
    alone = subprocess.run(command, capture_output=True, text=True, check=False)
    assert alone.returncode == 0, alone.stderr
    assert "views per second" in alone.stdout
    torch.save({"run": {"size": 32, "steps": 9}}, tmp_path / "checkpoint.pt")
    other = subprocess.run(command, capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert "is of a run with --size 32, --steps 9: remove it" in other.stderr
