"""Work in background threads: who runs it, what is left, and what whoever asks gets."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from shaderad.compiler.background import Background, Pending
from tests.stress.compile_interrupts import is_interrupted

SECONDS = 20.0
"""A wait that ends a test that would hang."""


class Gate:
    """Work that waits until it is let through, and counts how often it was begun."""

    def __init__(self) -> None:
        self.is_open, self.has_begun = threading.Event(), threading.Event()
        self.threads: list[int] = []

    def __call__(self) -> int:
        self.threads.append(threading.get_ident())
        self.has_begun.set()
        assert self.is_open.wait(SECONDS)
        return 7


def await_true(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_as_much_work_runs_at_a_time_as_there_are_threads() -> None:
    background, gates = Background(2), [Gate() for _ in range(3)]
    pending = [background.begin(gate, "work") for gate in gates]
    assert all(gate.has_begun.wait(SECONDS) for gate in gates[:2])
    assert not gates[2].has_begun.is_set()
    for gate in gates:
        gate.is_open.set()
    assert [one.result() for one in pending] == [7, 7, 7]
    assert threading.get_ident() not in gates[0].threads


def test_who_asks_runs_what_no_thread_has_begun() -> None:
    background, busy, own = Background(1), Gate(), Gate()
    held = background.begin(busy, "busy")
    pending = background.begin(own, "own")
    own.is_open.set()
    assert pending.result() == 7
    assert own.threads == [threading.get_ident()]
    busy.is_open.set()
    assert held.result() == 7
    assert pending.result() == 7
    assert len(own.threads) == 1


def test_work_that_nobody_holds_is_not_begun() -> None:
    background, busy, dropped = Background(1), Gate(), Gate()
    held = background.begin(busy, "busy")
    background.begin(dropped, "dropped")
    busy.is_open.set()
    assert held.result() == 7
    await_true(lambda: background._thread_count == 0)  # pyright: ignore[reportPrivateUsage]
    assert not dropped.threads


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    def failing() -> int:
        raise ValueError("no result")

    pending = Background(1).begin(failing, "failing")
    for _ in range(2):
        with pytest.raises(ValueError, match="no result"):
            pending.result()
    assert pending.has_failed


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_an_interrupt_ends_the_wait_and_not_the_work() -> None:
    background, gate = Background(1), Gate()
    pending = background.begin(gate, "work")
    assert gate.has_begun.wait(SECONDS)
    assert is_interrupted(pending.result, 0.05)
    gate.is_open.set()
    assert pending.result() == 7
    assert len(gate.threads) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_work_that_was_interrupted_in_the_thread_that_asked_is_done_again() -> None:
    gate = Gate()
    pending = Pending(gate, "work")
    assert is_interrupted(pending.result, 0.05)
    assert not pending.has_failed
    gate.is_open.set()
    assert pending.result() == 7
    assert len(gate.threads) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_the_work_again() -> None:
    background, gate = Background(1), Gate()
    pending = background.begin(gate, "work")
    assert gate.has_begun.wait(SECONDS)
    child = os.fork()
    if child == 0:
        gate.is_open.set()
        is_right = pending.result() == 7 and background.begin(lambda: 8, "other").result() == 8
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    gate.is_open.set()
    assert pending.result() == 7
