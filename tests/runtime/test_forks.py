"""Processes that are forked off before and after a device was opened; each test in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import shaderad as sad

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

START = """
import multiprocessing, os, sys, threading
import numpy as np
import shaderad as sad
from tests.runtime.test_forks import codes, ended, squared
runtime = sys.argv[1]
"""


@sad.kernel
def squared(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]


def codes(*calls: Callable[[], object]) -> list[str]:
    """The code that each of `calls` raises, or that it raises none."""
    found: list[str] = []
    for call in calls:
        try:
            call()
            found.append("none")
        except sad.Error as failure:
            found.append(failure.code)
    return found


def ended(process: int, seconds: float = 60.0) -> int | str:
    """The exit code of a forked process; `hangs` where it does not end."""
    import signal
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "hangs"


def said(device: sad.Device, script: str) -> list[str]:
    """What `script` prints on the runtime of `device`."""
    command = [sys.executable, "-c", START + script, device.capabilities.runtime]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


AFTER = """
device = sad.open_device(runtime)
x = sad.array([1.0, 2.0, 3.0])
y = squared(x, dim=3)
y.numpy()
sys.stdout.flush()
process = os.fork()
if not process:
    print(*codes(x.numpy, y.numpy, lambda: squared(x, dim=3), device.synchronize,
                 lambda: sad.array([1.0]), lambda: sad.open_device(runtime), lambda: device.native))
    del x, y
    device.close()
    sys.exit(7)
print(ended(process))
print(squared(x, dim=3).numpy(), y.numpy())
"""


def test_a_device_of_the_parent_is_refused_and_the_parent_goes_on(device: sad.Device) -> None:
    assert said(device, AFTER) == [" ".join(["SR0622"] * 7), "7", "[1. 4. 9.] [1. 4. 9.]"]


IDLE = """
x = squared(np.ones(4), dim=4, device=sad.open_device(runtime))
process = os.fork()
if not process:
    sys.exit(3)
print(ended(process), x.numpy())
"""


def test_a_process_that_does_not_use_the_device_ends_as_it_wants(device: sad.Device) -> None:
    assert said(device, IDLE) == ["3 [1. 1. 1. 1.]"]


LOCKED = """
from shaderad.device import devices
device = sad.open_device(runtime)
x = squared(np.ones(4), dim=4)
x.numpy()
are_taken, is_over = threading.Event(), threading.Event()
def occupy():
    with device.runtime.lock, device._lock, devices._default.lock:
        are_taken.set()
        is_over.wait()
threading.Thread(target=occupy).start()
are_taken.wait()
sys.stdout.flush()
process = os.fork()
if not process:
    print(*codes(x.numpy, lambda: sad.array([1.0]), device.synchronize, lambda: device.kept(str)))
    sys.exit(0)
is_over.set()
print(ended(process), x.numpy())
"""


def test_locks_that_are_held_at_the_fork_hold_nobody_up(device: sad.Device) -> None:
    assert said(device, LOCKED) == ["SR0622 SR0622 SR0622 none", "0 [1. 1. 1. 1.]"]


POOLS = """
def work(k):
    return codes(lambda: squared(np.full(4, k), dim=4).numpy())[0]
def root(k):
    with sad.open_device(runtime):
        return float(squared(np.full(4, float(k)), dim=4).numpy()[0])
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    print(pool.map(root, range(4)))
sad.open_device(runtime)
print(squared(np.ones(1), dim=1).numpy())
with fork.Pool(2) as pool:
    print(*pool.map(work, range(4)))
    try:
        pool.map(root, range(2))
    except sad.DeviceError as failure:
        print(failure.code, "spawn" in failure.help)
"""


def test_pools_work_before_the_first_use_and_say_why_not_after_it(device: sad.Device) -> None:
    assert said(device, POOLS) == [
        "[0.0, 1.0, 4.0, 9.0]",
        "[1.]",
        "SR0622 SR0622 SR0622 SR0622",
        "SR0622 True",
    ]
