"""Interrupts are noted, admitted and never lost; forks with a device are refused, and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import shaderad as sad
from shaderad.runtime.process import held_back, let_through, nap, turn


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_the_end_of_the_outermost_section() -> None:
    done: list[str] = []

    def nested() -> None:
        with held_back():
            with held_back():
                interrupt()
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        nested()
    assert done == ["inner", "outer"]


def test_without_an_interrupt_nothing_is_raised() -> None:
    with held_back(), let_through():
        nap(0.0)


@pytest.mark.parametrize("way_out", [lambda: nap(0.0), lambda: let_through().__enter__()])
def test_a_section_may_be_left_where_it_lets_interrupts_through(
    way_out: Callable[[], None],
) -> None:
    done: list[str] = []

    def section() -> None:
        with held_back():
            interrupt()
            done.append("before")
            way_out()
            done.append("after")

    with pytest.raises(KeyboardInterrupt):
        section()
    assert done == ["before"]


def test_within_such_a_stretch_an_interrupt_comes_at_once_and_behind_it_waits_again() -> None:
    done: list[str] = []

    def section(*, is_within: bool) -> None:
        with held_back():
            with let_through():
                if is_within:
                    interrupt()
                done.append("within")
            interrupt()
            done.append("behind")

    with pytest.raises(KeyboardInterrupt):
        section(is_within=True)
    assert done == []
    with pytest.raises(KeyboardInterrupt):
        section(is_within=False)
    assert done == ["within", "behind"]


def test_a_handler_of_the_program_is_called_once() -> None:
    calls: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    with held_back():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert not calls
    assert calls == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_error_of_the_section_does_not_swallow_the_interrupt() -> None:
    def section() -> None:
        with held_back():
            interrupt()
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        section()
    assert isinstance(caught.value.__context__, ValueError)


def test_whoever_waits_for_another_thread_can_be_interrupted() -> None:
    lock = threading.RLock()
    is_taken, is_over = threading.Event(), threading.Event()

    def occupy() -> None:
        with lock:
            is_taken.set()
            is_over.wait()

    other = threading.Thread(target=occupy)
    other.start()
    is_taken.wait()
    threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt), turn(lock):
        pytest.fail("two threads have one lock")
    is_over.set()
    other.join()
    with turn(lock):
        pass


def test_other_threads_are_not_held_back() -> None:
    seen: list[object] = []

    def look() -> None:
        with held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def forks(test: Callable[..., None]) -> Callable[..., None]:
    """A test that forks a process with a device."""
    has_fork = hasattr(os, "fork")
    return pytest.mark.gpu(pytest.mark.skipif(not has_fork, reason="there is no fork")(test))


START = """
import multiprocessing, os, sys, threading
import numpy as np
import shaderad as sad
from tests.runtime.test_process import codes, ended, squared
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


@forks
def test_a_device_of_the_parent_is_refused_and_the_parent_goes_on(device: sad.Device) -> None:
    assert said(device, AFTER) == [" ".join(["SR0622"] * 7), "7", "[1. 4. 9.] [1. 4. 9.]"]


IDLE = """
x = squared(np.ones(4), dim=4, device=sad.open_device(runtime))
process = os.fork()
if not process:
    sys.exit(3)
print(ended(process), x.numpy())
"""


@forks
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


@forks
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


@forks
def test_pools_work_before_the_first_use_and_say_why_not_after_it(device: sad.Device) -> None:
    assert said(device, POOLS) == [
        "[0.0, 1.0, 4.0, 9.0]",
        "[1.]",
        "SR0622 SR0622 SR0622 SR0622",
        "SR0622 True",
    ]
