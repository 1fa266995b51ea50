"""The full runs of what the tests here do in small, with their figures.

    python -m tests.stress [writers|threads|steps|interrupts ...]

`writers` takes three minutes, `threads` two, `steps` ten, `interrupts` twenty.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import shaderad as sad
from tests.stress.compile_interrupts import compiled_under_interrupts
from tests.stress.steps import Sample, descend
from tests.stress.threads import shared, work
from tests.stress.writers import (
    compiled_by_processes,
    killed_while_writing,
    shared_by_processes,
)

STEPS = 100_000
KILLS = 200
INTERRUPTS = 200
MIB = 1 << 20


def opened() -> Iterator[sad.Device]:
    """Each runtime's device that opens here."""
    for runtime in ("wgpu", "slangpy"):
        try:
            yield sad.open_device(runtime)
        except sad.DeviceError as failure:
            print(f"{runtime}: {failure.message}")


def writers() -> None:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        wrong = shared_by_processes(Path(folder), 16, 200)
        seconds = time.perf_counter() - start
        print(f"16 processes, 200 rounds of 8 keys, pruning: {wrong} wrong, {seconds:.0f} s")
    for device in opened():
        name = device.capabilities.runtime
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            losses = compiled_by_processes(Path(folder), 16, name)
            seconds = time.perf_counter() - start
        print(f"{name}: 16 processes compile and fit: losses {set(losses)}, {seconds:.0f} s")
    with tempfile.TemporaryDirectory() as folder:
        wrong_count, left = 0, 0
        for seed in range(KILLS):
            wrong, left = killed_while_writing(Path(folder), seed)
            wrong_count += wrong
        print(f"{KILLS} writers killed, {left} of them in the middle: {wrong_count} wrong entries")


def threads() -> None:
    for device in opened():
        start = time.perf_counter()
        wrong = shared(8, lambda number, device=device: work(device, number, 500))
        seconds = time.perf_counter() - start
        name = device.capabilities.runtime
        print(f"{name}: 8 threads, 500 steps each: {len(wrong)} wrong, {seconds:.0f} s")
        print("\n".join(wrong[:5]), end="")


def steps() -> None:
    for device in opened():
        name = device.capabilities.runtime
        samples: list[Sample] = []
        for s in descend(device, STEPS, STEPS // 10):
            samples.append(s)
            print(
                f"{name}: step {s.step:6}  {s.resident_bytes / MIB:6.1f} MiB  "
                f"{s.object_count} objects  {s.buffer_count} buffers"
            )
        grown = samples[-1].resident_bytes - samples[1].resident_bytes
        print(f"{name}: {grown / MIB:+.2f} MiB from step {samples[1].step} to {samples[-1].step}")


def interrupts() -> None:
    for device in opened():
        name = device.capabilities.runtime
        for how in ("thread", "line", "endless"):
            command = [sys.executable, "-m", "tests.stress.interrupts", name, str(INTERRUPTS), "0"]
            said = subprocess.run([*command, how], capture_output=True, text=True).stdout
            print(f"{name}, {how}: {said}", end="")
        start = time.perf_counter()
        found = compiled_under_interrupts(device, INTERRUPTS, seed=1)
        seconds = time.perf_counter() - start
        print(f"{name}: compiles interrupted {len(found)} times, {found.count(True)} times the "
              f"next one was right, {seconds:.0f} s")  # fmt: skip


RUNS = {"writers": writers, "threads": threads, "steps": steps, "interrupts": interrupts}


def main() -> None:
    for name in sys.argv[1:] or RUNS:
        RUNS[name]()


if __name__ == "__main__":
    main()
