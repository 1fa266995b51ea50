"""Where an interrupt is noted, where it comes through, and that none is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

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
