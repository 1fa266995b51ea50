"""Ctrl-C at seeded moments of one process, whose device must go on as if nothing had happened.

    python -m tests.stress.interrupts RUNTIME COUNT SEED [HOW]

prints how many interrupts were raised as one KeyboardInterrupt and left right results. `HOW` says
what sends them: `thread`, at a random time, `line`, before a random line of Python, or
`endless-read` and `endless-wait`, while a read or `synchronize` waits for a kernel without end.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import shaderad as sad

PATIENCE = 30.0
"""Seconds; an interrupt that has not come by then is lost."""
LONGEST_DELAY = 0.02
LINES = 3000
"""Of Python that most rounds have in shaderad and the libraries below it."""
TRACED_FOLDERS = ("shaderad", "wgpu", "slangpy")


@sad.kernel
def scaled(i: sad.Index, x: sad.In[float], factor: float, y: sad.Out[float]):
    y[i] = factor * x[i] * x[i]


@sad.graph
def running_total(x):
    return sad.scan(sad.add, x)


@sad.graph
def doubled_while_small(x):
    return sad.while_loop(lambda v: sad.sum(v) < 1000.0, lambda v: v + v, x, limit=30)


@sad.kernel
def endless(i: sad.Index, x: sad.In[int], y: sad.Out[int]):
    value = x[i]
    while value != 1:
        value = (value * 5 + 4) | 2
    y[i] = value


def fresh_kernel(number: int) -> Any:
    """A kernel that no cache knows."""

    @sad.kernel
    def shifted(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
        y[i] = x[i] + number

    return shifted


class Work:
    """What is interrupted, and whether the device still computes."""

    def __init__(self, device: sad.Device, seed: int) -> None:
        self.device = device
        self.random = random.Random(seed)
        self.x = sad.array(np.arange(1.0, 65.0), device=device)
        self.total = sad.array(np.zeros(64, np.float32), device=device)

    def step(self) -> None:
        """One of many things that users do."""
        x, k = self.x, self.random.randrange(40)
        if k == 0:
            fresh_kernel(self.random.randrange(1 << 20))(x, dim=64).numpy()
        elif k < 10:
            sad.sin(x).numpy()
        elif k < 16:
            y, pullback = sad.vjp(scaled, x, 3.0, dim=64)
            pullback(y)[0].numpy()
        elif k < 22:
            self.total = self.total + scaled(x, 2.0, dim=64)
        elif k < 28:
            running_total(x).numpy()
        elif k < 32:
            doubled_while_small(x)
        elif k < 36:
            sad.array(np.ones(1 << self.random.randrange(18)), device=self.device).numpy()
        else:
            self.device.synchronize()

    def wrong(self, recorded: sad.Array, factor: float) -> str:
        """What is not as it should be; `recorded` was made before the interrupt."""
        x = np.arange(1.0, 65.0)
        if not np.array_equal(recorded.numpy(), (factor * x * x).astype(np.float32)):
            return "a result from before the interrupt is wrong"
        y, pullback = sad.vjp(scaled, self.x, 2.0, dim=64)
        gradient = pullback(np.ones(64, np.float32))[0].numpy()
        if not np.array_equal(gradient, (4 * x).astype(np.float32)) or y.numpy()[1] != 8.0:
            return "a gradient is wrong"
        if running_total(self.x).numpy()[-1] != x.sum():
            return "a graph is wrong"
        return ""


def from_thread(source: random.Random) -> Callable[[], None]:
    """Starts a thread that interrupts the process once."""

    def send(delay: float) -> None:
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send, args=(source.uniform(0.0, LONGEST_DELAY),))
    return sender.start


def before_line(source: random.Random) -> Callable[[], None]:
    """Traces the process, and interrupts it once."""
    left = source.randrange(LINES)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if not any(f"/{part}/" in frame.f_code.co_filename for part in TRACED_FOLDERS):
            return None
        left -= event == "line"
        if left < 0 and event == "line":
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return trace

    return lambda: sys.settrace(trace)


SENDERS = {"thread": from_thread, "line": before_line}


def survived(device: sad.Device, count: int, seed: int, how: str) -> tuple[int, list[str]]:
    """Interrupts work `count` times.

    Returns:
        How often the device went on with right results, and what was wrong where it did not.
    """
    work, source = Work(device, seed), random.Random(seed + 1)
    right, faults = 0, list[str]()
    for number in range(count):
        recorded = scaled(work.x, float(number), dim=64)
        start = SENDERS[how](source)
        raised = 0
        end = time.monotonic() + PATIENCE
        try:
            start()
            while time.monotonic() < end:
                work.step()
        except KeyboardInterrupt:
            raised = 1
        finally:
            sys.settrace(None)
        fault = work.wrong(recorded, float(number)) if raised else "the interrupt was lost"
        right += not fault
        faults += [f"interrupt {number}: {fault}"] if fault else []
    return right, faults


def given_up(device: sad.Device, how: str) -> list[str]:
    """Interrupts a kernel that never ends; what happens then, and on a new device."""
    wait = device.synchronize if how == "endless-wait" else lambda: made.numpy()
    made = endless([0, 2, 4, 6], dim=4, device=device)
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    seen: list[str] = []
    start = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        seen.append("at once" if time.monotonic() - start < 4.0 else "late")
    for _ in range(2):
        try:
            wait()
        except sad.DeviceError as failure:
            seen.append(failure.code)
    fresh = sad.open_device(device.capabilities.runtime)
    result = scaled(np.arange(8.0), 1.0, dim=8, device=fresh).numpy()
    return [*seen, "done" if result[-1] == 49.0 else "wrong"]


def main() -> None:
    runtime, count, seed, *how = sys.argv[1:]
    # Shells start what runs in the background with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    device = sad.open_device(runtime)
    if how and how[0].startswith("endless"):
        sys.stdout.write(" ".join(given_up(device, how[0])) + "\n")
        return
    right, faults = survived(device, int(count), int(seed), *(how or ["thread"]))
    sys.stdout.write("\n".join([f"{right} of {count}", *faults, ""]))


if __name__ == "__main__":
    main()
