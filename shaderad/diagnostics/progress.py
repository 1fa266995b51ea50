"""Shows long work as a temporary line on a terminal or in a notebook.

``compiling `squared_error_bwd` (Slang): 3 s``. The outermost `Work` of a thread owns the line and
its clock; inner ones change kernel and stage. Nothing is shown within the first second, if standard
error is not a terminal, or with ``SHADERAD_PROGRESS=0``. Invariant: failures of a terminal are
suppressed here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, Self

SHOWN_AFTER_SECONDS = 1.0
EXPECTED_AFTER_SECONDS = 0.5
"""Work that blocks all Python threads is shown at once if other work has taken this long."""

TERMINAL = threading.Lock()
"""Held while a line is shown, so that other threads show nothing."""


class Work:
    """A ``with`` block of long work.

    Args:
        kernel: The kernel that is compiled; empty for the kernel of the enclosing block.
        stage: The stage of the work.
        blocks_python: True if no other thread can run during the work to count seconds.
    """

    def __init__(self, kernel: str, stage: str, *, blocks_python: bool = False) -> None:
        self._kernel = kernel
        self._stage = stage
        self._blocks_python = blocks_python
        self._line: _Line | Followed | None = None
        self._outer: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        line = _current.get()
        if line is not None:
            self._outer = line.shown
        else:
            screen = _screen()
            if screen is None:
                return self
            line = _Line(screen)
            _current.set(line)
        self._line = line
        line.shown = (self._kernel or line.shown[0], self._stage)
        try:
            if self._outer is None:
                line.start()
            if self._blocks_python:
                line.announce()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _failure: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        line = self._line
        if line is None:
            return
        if self._outer is not None:
            line.shown = self._outer
            return
        _current.set(None)
        line.close()


class Followed:
    """The kernel and stage of work in a background thread, within a ``with`` block there."""

    def __init__(self, kernel: str) -> None:
        self.shown: tuple[str, str] = (kernel, "waiting")
        """Kernel and stage."""

    def __enter__(self) -> None:
        _current.set(self)

    def __exit__(self, *_: object) -> None:
        _current.set(None)

    def start(self) -> None:
        """Draws nothing, because the thread that waits for the work owns the line."""

    announce = close = start


@contextlib.contextmanager
def following(work: Followed) -> Generator[None]:
    """Lets the line of this thread show the progress of another."""
    with Work("", "waiting"):
        line = _current.get()
        if not isinstance(line, _Line):
            yield
            return
        line.followed = work
        try:
            yield
        finally:
            line.followed = None


def at_stage(stage: str) -> None:
    """Sets the stage of this thread's work; an empty `stage` changes nothing."""
    line = _current.get()
    if line is not None and stage:
        line.shown = (line.shown[0], stage)


class _Screen(Protocol):
    def show(self, text: str) -> None: ...

    def clear(self) -> None: ...


class _Line:
    """The line for the work of one thread, drawn by another thread."""

    def __init__(self, screen: _Screen) -> None:
        self.shown: tuple[str, str] = ("", "")
        """Kernel and stage."""
        self.followed: Followed | None = None
        """The work of another thread for which this thread waits."""
        self._screen = screen
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._is_drawn = False
        self._thread = threading.Thread(target=self._draw_until_over, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def announce(self) -> None:
        """Draws at once if the work has already taken `EXPECTED_AFTER_SECONDS`."""
        if time.monotonic() - self._start >= EXPECTED_AFTER_SECONDS:
            self._draw()

    def close(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(SHOWN_AFTER_SECONDS)  # with a limit: a terminal may be paused

    def _draw_until_over(self) -> None:
        while not self._is_over.wait(SHOWN_AFTER_SECONDS):
            self._draw()
        with self._lock, contextlib.suppress(Exception):
            if self._is_drawn:
                TERMINAL.release()
                self._screen.clear()

    def _draw(self) -> None:
        with self._lock, contextlib.suppress(Exception):
            self._is_drawn = self._is_drawn or TERMINAL.acquire(blocking=False)
            if self._is_drawn and not self._is_over.is_set():
                kernel, stage = self.shown if self.followed is None else self.followed.shown
                seconds = time.monotonic() - self._start
                self._screen.show(f"compiling `{kernel}` ({stage}): {seconds:.0f} s")


class _Terminal:
    """The current line of a terminal, cleared by blanks, which every terminal supports."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._width = 0

    def show(self, text: str) -> None:
        text = text[: self._columns() - 1]
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        self._stream.write("\r" + " " * self._width + "\r")
        self._stream.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


class _Notebook:
    """A display in the running cell, updated in place and finally emptied."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, text: str) -> None:
        content = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def clear(self) -> None:
        self.show("")


def _screen() -> _Screen | None:
    """The terminal or notebook; `None` if there is none, or progress is switched off."""
    if os.environ.get("SHADERAD_PROGRESS") == "0":
        return None
    with contextlib.suppress(Exception):
        # Both are loaded in a notebook, so nothing is imported here.
        if "ipykernel" in sys.modules:
            ipython: Any = sys.modules["IPython"]
            if getattr(ipython.get_ipython(), "kernel", None) is not None:
                return _Notebook(sys.modules["IPython.display"].display)  # pyright: ignore
        if sys.stderr.isatty():
            return _Terminal(sys.stderr)
    return None


_current: ContextVar[_Line | Followed | None] = ContextVar("shaderad_progress", default=None)
