"""Ctrl-C and other handlers of SIGINT, kept out of half-recorded commands.

Python runs a signal handler between any two bytecodes of the main thread, also in callbacks of a
native library, where its exception is lost. While a section holds interrupts back, the handler of
SIGINT is a `Held`, which only takes a note; the end of the outermost section calls the handler
that was there before. Compilers and waits may
take for ever: `let_through`, `nap` and `turn` are where an interrupt ends such a section.
"""

from __future__ import annotations

# `signal` makes enums of its arguments, which costs ten times what the calls themselves do.
import _signal  # pyright: ignore[reportMissingImports]
import threading
import time
from collections.abc import Callable
from signal import SIGINT
from types import FrameType
from typing import Any, cast

TURN_SECONDS = 0.02
"""How long a wait for another thread goes on between two looks for an interrupt."""

Handler = Callable[[int, FrameType | None], Any]

_handler_of = cast("Callable[[int], Any]", _signal.getsignal)  # pyright: ignore[reportUnknownMemberType]
_handle = cast("Callable[[int, Any], Any]", _signal.signal)  # pyright: ignore[reportUnknownMemberType]
_INTERRUPT = int(SIGINT)


class Held:
    """The handler of SIGINT while interrupts are held back."""

    __slots__ = ("_before", "_frame", "_is_pending")

    def __init__(self, before: Handler) -> None:
        self._before = before
        self._frame: FrameType | None = None
        self._is_pending = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._is_pending, self._frame = True, frame

    def release(self) -> None:
        """Puts the former handler back, and hands it the interrupt that came meanwhile."""
        _handle(_INTERRUPT, self._before)
        if self._is_pending:
            frame, self._frame, self._is_pending = self._frame, None, False
            self._before(_INTERRUPT, frame)

    def hold_again(self) -> None:
        """Takes over again after `release`."""
        try:
            _handle(_INTERRUPT, self)
        except BaseException:  # the former handler's, for an interrupt until now
            _handle(_INTERRUPT, self)
            raise


def hold() -> Held | None:
    """Holds interrupts back until the result is released.

    Returns:
        `None` where there is nothing to do: inside of a section that holds them back already,
        outside of the main thread, and where no Python function handles SIGINT.
    """
    before = _handler_of(_INTERRUPT)
    if type(before) is Held or not callable(before) or not _is_main_thread():
        return None
    held = Held(before)
    _handle(_INTERRUPT, held)
    return held


class held_back:
    """A section whose commands are all recorded, or none of them."""

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        self._held = hold()

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.release()


class turn:
    """Such a section that has a lock; while another thread has it, interrupts come through."""

    __slots__ = ("_held", "_lock")

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._held = hold()
        if not self._lock.acquire(blocking=False):
            try:
                while not self._lock.acquire(timeout=TURN_SECONDS):
                    nap(0)
            except BaseException:
                if self._held is not None:
                    self._held.release()
                raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._held is not None:
            self._held.release()


class let_through:
    """Within a section that holds interrupts back: a stretch that they may end."""

    __slots__ = ("_held",)

    def __enter__(self) -> None:
        held = _handler_of(_INTERRUPT)
        self._held = held if type(held) is Held and _is_main_thread() else None
        if self._held is not None:
            try:
                self._held.release()
            except BaseException:
                self._held.hold_again()
                raise

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.hold_again()


def nap(seconds: float) -> None:
    """Sleeps; interrupts come through, also one that was held back before."""
    with let_through():
        time.sleep(seconds)


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident
