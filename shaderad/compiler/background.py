"""Functions that run in background threads, unless whoever needs the result first runs them itself.

Compilers run in other processes, so threads that wait for them cost nothing. Invariants: work that
nobody holds any more is not begun. No process waits for these threads when it ends. In a forked
process, the threads of its parent do not run, so the caller that needs a result does the work.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast
from weakref import ref

from shaderad.compiler.child import PROCESSES
from shaderad.diagnostics import progress

T = TypeVar("T")

_LOOK_SECONDS = 0.1
"""The interval at which a wait admits interrupts, on systems where waits for locks do not."""


class Pending(Generic[T]):
    """A future: the result of a function that runs, or will run, in the background."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        self._work = work
        self._is_claimed = threading.Lock()
        self._is_over = threading.Event()
        self._outcome: tuple[T] | Exception | None = None
        self._process = os.getpid()
        self._progress = progress.Followed(name)

    @property
    def has_failed(self) -> bool:
        """True if the function raised an error."""
        return isinstance(self._outcome, Exception)

    def result(self) -> T:
        """The result; runs the function if no thread has begun to.

        Raises:
            Exception: The error that the function raised.
        """
        if self._process == os.getpid() and not self._is_claimed.acquire(blocking=False):
            with progress.following(self._progress):
                while not self._is_over.wait(_LOOK_SECONDS):
                    pass
        elif self._outcome is None:
            self._run()
        if self._outcome is None:  # An interrupt ended the thread that had begun.
            return self._work()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome[0]

    def run_unless_begun(self) -> None:
        """Runs the function in a background thread, unless another thread has begun to."""
        if self._is_claimed.acquire(blocking=False):
            with self._progress:
                self._run()

    def _run(self) -> None:
        try:
            self._outcome = (self._work(),)
        except Exception as failure:
            self._outcome = failure
        finally:
            self._is_over.set()


class Background:
    """Up to `count` threads, which take work in the order in which it was begun."""

    def __init__(self, count: int) -> None:
        self._limit = count
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._queue: deque[ref[Pending[Any]]] = deque()
        self._thread_count = 0

    def begin(self, work: Callable[[], T], name: str) -> Pending[T]:
        """Starts to run `work`; progress reports show `name`."""
        pending = Pending(work, name)
        with self._lock:
            self._queue.append(ref(cast("Pending[Any]", pending)))
            if self._thread_count < self._limit:
                # No thread can be started at the end of a process; the caller then does the work.
                with suppress(RuntimeError):
                    threading.Thread(target=self._serve, daemon=True).start()
                    self._thread_count += 1
        return pending

    def _serve(self) -> None:
        """Runs the functions in the queue."""
        while True:
            with self._lock:
                if not self._queue:
                    self._thread_count -= 1
                    return
                pending = self._queue.popleft()()
            if pending is not None:
                pending.run_unless_begun()
            del pending


@functools.cache
def background() -> Background:
    """The threads that wait for compilers."""
    return Background(PROCESSES)
