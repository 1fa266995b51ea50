"""The process that holds a device: interrupts while commands are recorded, and forks.

Python may run a signal handler between any two bytecodes of the main thread. In a callback of a
native library, the exception of the handler is lost. A section that defers interrupts therefore
installs a `Deferral` as the handler of SIGINT (Ctrl-C), which only records them; the end of the
outermost section calls the previous handler. Compilers and waits may take arbitrarily long, so
`let_through`, `nap` and `turn` admit interrupts.

A forked child has the memory of its parent, but none of its threads. Drivers wait for threads that
exist only in the parent, and the parent may still use memory that the child frees. The child
therefore neither uses nor frees native objects.
"""

from __future__ import annotations

# `signal` converts its arguments to enums, which takes ten times as long as the calls.
import _signal  # pyright: ignore[reportMissingImports]
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from signal import SIGINT
from types import FrameType
from typing import Any, cast
from weakref import WeakMethod

from shaderad.diagnostics import error

TURN_SECONDS = 0.02
"""The interval at which a wait for another thread checks for interrupts."""

Handler = Callable[[int, FrameType | None], Any]

_handler_of = cast("Callable[[int], Any]", _signal.getsignal)  # pyright: ignore[reportUnknownMemberType]
_handle = cast("Callable[[int, Any], Any]", _signal.signal)  # pyright: ignore[reportUnknownMemberType]
_INTERRUPT = int(SIGINT)


class Deferral:
    """The handler of SIGINT while interrupts are deferred."""

    __slots__ = ("_before", "_frame", "_is_pending")

    def __init__(self, before: Handler) -> None:
        self._before = before
        self._frame: FrameType | None = None
        self._is_pending = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._is_pending, self._frame = True, frame

    def release(self) -> None:
        """Restores the previous handler, and calls it if an interrupt came meanwhile."""
        _handle(_INTERRUPT, self._before)
        if self._is_pending:
            frame, self._frame, self._is_pending = self._frame, None, False
            self._before(_INTERRUPT, frame)

    def hold_again(self) -> None:
        """Defers interrupts again after `release`."""
        try:
            _handle(_INTERRUPT, self)
        except BaseException:  # raised by the previous handler
            _handle(_INTERRUPT, self)
            raise


def hold() -> Deferral | None:
    """Defers interrupts until the result is released.

    Returns:
        `None` if there is nothing to defer: in a section that defers interrupts already, outside
        of the main thread, or if SIGINT has no Python handler.
    """
    before = _handler_of(_INTERRUPT)
    if type(before) is Deferral or not callable(before):
        return None
    deferral = Deferral(before)
    try:
        _handle(_INTERRUPT, deferral)
    except ValueError:  # outside of the main thread
        return None
    return deferral


class held_back:
    """A section without interrupts, so either all of its commands are recorded or none."""

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        self._held = hold()

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.release()


def begin_turn(lock: threading.RLock) -> Deferral | None:
    """Acquires `lock`, and defers interrupts; while it waits for the lock, it admits them.

    Returns:
        The second argument of `end_turn`.
    """
    held = hold()
    if not lock.acquire(blocking=False):
        try:
            while not lock.acquire(timeout=TURN_SECONDS):
                nap(0)
        except BaseException:
            if held is not None:
                held.release()
            raise
    return held


def end_turn(lock: threading.RLock, held: Deferral | None) -> None:
    """Releases `lock`, and admits interrupts again."""
    lock.release()
    if held is not None:
        held.release()


class turn:
    """A section between `begin_turn` and `end_turn`."""

    __slots__ = ("_held", "_lock")

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._held = begin_turn(self._lock)

    def __exit__(self, *_: object) -> None:
        end_turn(self._lock, self._held)


class let_through:
    """A part of a `held_back` section that admits interrupts."""

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        handler = _handler_of(_INTERRUPT)
        self._held = handler if type(handler) is Deferral and _is_main_thread() else None
        if self._held is not None:
            try:
                self._held.release()
            except BaseException:
                self._held.hold_again()
                raise

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.hold_again()


give_way: Callable[[], None] = getattr(os, "sched_yield", partial(time.sleep, 0))
"""Yields the processor, for the threads of software drivers."""


def nap(seconds: float) -> None:
    """Sleeps; admits interrupts, including one that was deferred before."""
    with let_through():
        time.sleep(seconds)


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


# -- forks -------------------------------------------------------------------------------------

_openers: set[int] = set()
"""Processes that opened devices: this one, or the parent that it was forked from."""


def check_process() -> None:
    """Raises SR0622 if this process was forked from one with an open device."""
    if _openers - {os.getpid()}:
        raise error("SR0622", what="a device")


def note_opened() -> None:
    """Records that this process has opened a device."""
    _openers.add(os.getpid())


def call_in_children(method: Callable[[], Any]) -> None:
    """Calls `method` in each child process that is forked while its object lives."""
    reference = WeakMethod(method)

    def run() -> None:
        live_method = reference()
        if live_method is not None:
            live_method()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=run)


def keep_for_ever(resource: object) -> None:
    """Keeps `resource` and everything it holds alive until the process ends, without finalisers.

    It also skips the exit handlers of drivers, which would join threads of the parent or wait for
    the device.
    """
    import ctypes  # rare, and slow to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(resource))
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "on_exit"):  # glibc only: passes the exit status
        libc.on_exit(libc._exit, None)
