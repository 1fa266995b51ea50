"""Trials on every adapter of this machine -> what passed, failed, or was refused.

`shaderad doctor --deep` runs the trials below, which compare results and gradients of each sort of
dispatch with NumPy. In a clone, `scripts/run gpu` runs conformance cases, random programs, samples
and benchmarks in the same way.

Invariant: a device that hangs or ends its process costs one trial. The trials of an adapter run in
a child process, which logs a line at the beginning and at the end of each trial. The parent kills a
child that stays silent, and starts another one for the remaining trials.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

import shaderad as sad
from shaderad.diagnostics import Error

Status = Literal["passed", "failed", "refused", "left out"]
REFUSALS = frozenset({"SR0501", "SR0507", "SR0606", "SR0607", "SR0608", "SR0711"})
"""Codes of errors that report a feature missing from a device or code format."""

SILENT_SECONDS = 90.0
"""Time limit of a trial; the first one in a process also opens the device and the compiler."""
STARTS = 8
"""Most processes started for the trials of one adapter."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one trial."""

    name: str
    status: Status
    detail: str = ""
    """Why it failed or was refused."""
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Measurements and names of files, as JSON."""


class Lacking(Exception):
    """Raised by a trial that needs a feature which the device or machine lacks."""


Trial = tuple[str, Callable[[], Mapping[str, Any] | None]]
"""A name, and a call that returns facts or raises."""


# -- the child process -----------------------------------------------------------------------------


def run_trials(trials: Iterable[Trial], log: Path, seconds: float) -> None:
    """Runs the trials that are not in the log yet, for at most `seconds`."""
    done = {line.get("begins", line.get("name")) for line in _lines(log)}
    end = time.monotonic() + seconds
    with log.open("a", encoding="utf-8") as file:
        for name, run in trials:
            if name in done:
                continue
            if time.monotonic() > end:
                _write(file, asdict(Outcome(name, "left out")))
                continue
            _write(file, {"begins": name})
            _write(file, asdict(_outcome(name, run)))


def _write(file: Any, line: Mapping[str, Any]) -> None:
    file.write(json.dumps(line) + "\n")
    file.flush()


def _outcome(name: str, run: Callable[[], Mapping[str, Any] | None]) -> Outcome:
    start = time.perf_counter()
    status, detail, facts = "passed", "", None
    try:
        facts = run()
    except Error as failure:
        status = "refused" if failure.code in REFUSALS else "failed"
        detail = str(failure)
    except Lacking as failure:
        status, detail = "refused", str(failure)
    except Exception as failure:  # Any exception of a trial is its outcome.
        status, detail = "failed", f"{type(failure).__name__}: {failure}"
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(name, status, detail.strip(), seconds, facts or {})


def _lines(log: Path) -> list[dict[str, Any]]:
    if not log.exists():
        return []
    lines: list[dict[str, Any]] = []
    for line in log.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):  # A process that died may have left half a line.
            lines.append(json.loads(line))
    return lines


# -- the parent ------------------------------------------------------------------------------------


def outcomes_of(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    silent_seconds: float = SILENT_SECONDS,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[Outcome]:
    """Runs a command that calls `run_trials` with `log`, and restarts it if a trial ends it.

    Once `is_stopped`, the process is killed, and `KeyboardInterrupt` is raised: threads other than
    the first get no interrupts.
    """
    for _ in range(STARTS):
        end = _followed(command, log, environment, silent_seconds, is_stopped)
        lines = _lines(log)
        ended = {line["name"] for line in lines if "name" in line}
        culprits = [line["begins"] for line in lines if line.get("begins", "") not in {*ended, ""}]
        if not end:
            break
        name = culprits[-1] if culprits else "start"
        with log.open("a", encoding="utf-8") as file:
            _write(file, asdict(Outcome(name, "failed", end)))
        if not culprits:  # It would fail to start again.
            break
    else:
        with log.open("a", encoding="utf-8") as file:
            detail = f"{STARTS} processes died or hung: no further one was started"
            _write(file, asdict(Outcome("further trials", "failed", detail)))
    return [Outcome(**line) for line in _lines(log) if "name" in line]


def _followed(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    silent_seconds: float,
    is_stopped: Callable[[], bool],
) -> str:
    """The fault that ended the process; empty if it ran to completion."""
    with log.with_suffix(".txt").open("ab") as printed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            env={**os.environ, **environment}, start_new_session=True,
        )  # fmt: skip
        try:
            is_silent = _falls_silent(process, log, silent_seconds, is_stopped)
        finally:  # An interrupt reaches only this process, not the child.
            _kill(process)
    if is_silent:
        return f"gave no answer in {silent_seconds:.0f} s"
    code = process.returncode
    if code < 0:
        return f"its process died of {signal.Signals(-code).name}"
    if code > 0:
        words = log.with_suffix(".txt").read_text(errors="replace").strip().splitlines()
        return f"its process ended with {code}: {words[-1] if words else 'without a word'}"
    return ""


def _falls_silent(
    process: subprocess.Popen[bytes],
    log: Path,
    silent_seconds: float,
    is_stopped: Callable[[], bool],
) -> bool:
    """Waits until a process ends, or its log has not grown for `silent_seconds`."""
    size, last = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        if is_stopped():
            raise KeyboardInterrupt
        if log.exists() and log.stat().st_size != size:
            size, last = log.stat().st_size, time.monotonic()
        if time.monotonic() - last > silent_seconds:
            return True
    return False


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a process and its children."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


# -- trials that need no clone ---------------------------------------------------------------------

COUNT = 10_000
CLOSE = 1e-4
"""Relative to the largest element: float32, ten thousand terms in any order."""


@sad.kernel
def add_weighted(
    i: sad.Index, k: sad.In[int], x: sad.In[float], w: sad.In[float], sums: sad.Add[float]
):
    """Threads share elements of `sums` and `w`."""
    sums[k[i]] += x[i] * x[i] * w[k[i]]


def _agree(result: Any, expected: Any) -> None:
    computed, wanted = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    error = np.abs(computed - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    if not error <= CLOSE:
        raise AssertionError(f"off by {error:.1e} of the largest element")


def _shared_elements() -> None:
    rng = np.random.default_rng(1)
    k = rng.integers(0, 7, COUNT).astype(np.int32)
    x, w = rng.normal(size=COUNT).astype(np.float32), rng.normal(size=7).astype(np.float32)
    sums, pullback = sad.vjp(add_weighted, k, x, w, dim=COUNT, shapes={"sums": 7})
    _, x_bar, w_bar = pullback(np.ones(7, np.float32))
    _agree(sums.numpy(), np.bincount(k, x * x * w[k], 7))
    _agree(x_bar.numpy(), 2 * x * w[k])
    _agree(w_bar.numpy(), np.bincount(k, x * x, 7))


def _sum_of_squares(x: sad.Array) -> sad.Array:
    return sad.sum(x * x)


def _reductions() -> None:
    x = np.random.default_rng(2).uniform(0.5, 1.5, COUNT).astype(np.float32)
    value, x_bar = sad.value_and_grad(_sum_of_squares)(sad.array(x))
    _agree(value.numpy(), np.square(x.astype(np.float64)).sum())
    _agree(x_bar.numpy(), 2 * x)


def _sum_of_products(x: sad.Array) -> sad.Array:
    return sad.sum(sad.scan(sad.mul, x) * x)


def _scans() -> None:
    x = np.random.default_rng(3).uniform(0.999, 1.001, COUNT).astype(np.float32)
    value, x_bar = sad.value_and_grad(_sum_of_products)(sad.array(x))
    exact = x.astype(np.float64)
    product = np.cumprod(exact)
    _agree(value.numpy(), (product * exact).sum())
    _agree(x_bar.numpy(), product + np.cumsum((product * exact)[::-1])[::-1] / exact)


def _sorts() -> None:
    x = np.random.default_rng(4).normal(size=COUNT).astype(np.float32)
    _agree(sad.sort(sad.array(x)).numpy(), np.sort(x))


def _sum_of_product(a: sad.Array, b: sad.Array) -> sad.Array:
    return sad.sum(a @ b)


def _products() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((96, 80), (80, 64)))
    a_bar, b_bar = sad.grad(_sum_of_product, argnums=(0, 1))(sad.array(a), sad.array(b))
    _agree((sad.array(a) @ sad.array(b)).numpy(), a.astype(np.float64) @ b)
    _agree(a_bar.numpy(), np.broadcast_to(b.sum(1), a.shape))
    _agree(b_bar.numpy(), np.broadcast_to(a.sum(0)[:, None], b.shape))


def _curve(x: sad.Array) -> sad.Array:
    return sad.sum(sad.tanh(x) * sad.exp(x))


def _finite_differences() -> None:
    x = sad.array(np.random.default_rng(6).normal(size=9).astype(np.float32))
    sad.gradcheck(_curve, x)


TRIALS: tuple[Trial, ...] = (
    ("elements that threads share", _shared_elements),
    ("reductions", _reductions),
    ("scans", _scans),
    ("sorts", _sorts),
    ("matrix products", _products),
    ("finite differences", _finite_differences),
)


def examine_adapters() -> Iterator[tuple[str, str, list[Outcome]]]:
    """Runs `TRIALS` on every adapter of every runtime; as `wgpu:0`, with its summary first."""
    with TemporaryDirectory() as folder:
        for info in sad.devices():
            device = f"{info.runtime}:{info.index}"
            log = Path(folder) / f"{info.runtime}-{info.index}.jsonl"
            command = (sys.executable, "-m", "shaderad.deep", device, str(log))
            yield device, info.summary, outcomes_of(command, log, {})


if __name__ == "__main__":
    with sad.open_device(sys.argv[1]):
        run_trials(TRIALS, Path(sys.argv[2]), seconds=float("inf"))
