"""The lock of a runtime, the translation of foreign exceptions, and waits for the device.

Invariants: a method marked `guarded` raises no exception of wgpu or slangpy. If the device is lost,
closed or left to a parent process, every guarded method raises an error. An interrupt is delivered
to the main thread before or after a guarded method, or while the method waits for the device.
"""

from __future__ import annotations

import atexit
import functools
import gc
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import get_ident
from typing import Concatenate, ParamSpec, TypeVar

from shaderad.diagnostics import Error, error
from shaderad.runtime.capabilities import Capabilities
from shaderad.runtime.process import (
    begin_turn,
    call_in_children,
    end_turn,
    give_way,
    keep_for_ever,
    nap,
)

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="Guarded")

REASON_LINES = 8
"""Maximum lines of a foreign message; validation messages repeat themselves after these."""

SPIN_SECONDS = 3e-4
"""A wait polls for this long, the time of small dispatches, before it sleeps."""
NAP_SHARE = 1 / 32
"""The length of a nap relative to the time waited so far, which bounds the relative delay."""
LONGEST_NAP = 2e-3

GIVEN_UP = "a kernel whose wait was interrupted still ran {:g} seconds later"


class Guarded(ABC):
    """The common state of runtimes: lock, capabilities, and why the device is unusable.

    Attributes:
        foreign_errors: The exceptions of the library below, except those for Python mistakes.
        is_sound: True if the device can be used without further checks.
        guarded_thread: The thread inside of a guarded method, which holds the lock; 0 if there is
            none.
        patience_seconds: How long the next use waits for work that an interrupt left running.
    """

    foreign_errors: tuple[type[Exception], ...] = ()
    patience_seconds = 5.0

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.lock = threading.RLock()
        self.guarded_thread = 0
        self.is_closed = False
        self.is_sound = True
        self._lost_because = ""
        self._is_of_parent = False
        self._is_left_done: Callable[[], bool] | None = None
        """Returns true once the work that an interrupt left running is done."""
        call_in_children(self._leave_to_parent)

    @property
    def is_lost(self) -> bool:
        """True after a call has failed because the device was lost; all later calls fail."""
        return bool(self._lost_because)

    def check_usable(self) -> None:
        """Raises SR0604, SR0610 or SR0622 if the device is lost, closed or the parent's."""
        adapter = self.capabilities.adapter
        if self._is_of_parent:
            raise error("SR0622", what=f"the device `{adapter}`")
        self.settle()
        if self._lost_because:
            raise error("SR0604", adapter=adapter, reason=self._lost_because)
        if self.is_closed:
            raise error("SR0610", adapter=adapter)

    def await_device(self, is_done: Callable[[], bool]) -> None:
        """Waits until `is_done` returns true; after an interrupt, `settle` waits for the rest."""
        start = time.perf_counter()
        while not is_done():
            waited = time.perf_counter() - start
            if waited < SPIN_SECONDS:
                give_way()
                continue
            try:
                nap(min(waited * NAP_SHARE, LONGEST_NAP))
            except BaseException:
                self._is_left_done, self.is_sound = is_done, False
                atexit.register(self.leave)  # keeps the runtime alive until it is settled
                raise

    def settle(self) -> None:
        """Waits for work that an interrupt left running; if it does not end, the device is lost."""
        if self._is_left_done is None or self._lost_because:
            return
        end = time.perf_counter() + self.patience_seconds
        try:
            while not self._is_left_done():
                if time.perf_counter() > end:
                    self._lost_because = GIVEN_UP.format(self.patience_seconds)
                    return
                nap(LONGEST_NAP)
            self.is_sound = True
        except self.foreign_errors as failure:
            self._lost_because = shortened(str(failure))
        self._is_left_done = None
        atexit.unregister(self.leave)

    @property
    def is_out_of_reach(self) -> bool:
        """True if freeing native objects could block forever, or free objects of the parent."""
        return self._is_of_parent or self._is_left_done is not None

    def leave(self) -> None:
        """Exit handler that lets the process end even if the device hangs."""
        if not self._is_of_parent:
            self.settle()
        if self.is_out_of_reach:
            keep_for_ever(self)

    def _leave_to_parent(self) -> None:
        """Runs in a forked child. Renews the lock, because its owner exists only in the parent."""
        self.lock, self.guarded_thread = threading.RLock(), 0
        self.is_sound, self._is_of_parent = False, True
        atexit.register(self.leave)  # keeps the runtime alive: nothing native is finalised

    def translate(self, failure: Exception, byte_count: int = 0) -> Error:
        """The error that users see for `failure`; a lost device is recorded as such."""
        capabilities = self.capabilities
        reason = shortened(str(failure))
        if is_loss(reason):
            self._lost_because, self.is_sound = reason, False
            return error("SR0604", adapter=capabilities.adapter, reason=reason)
        if is_out_of_memory(failure):
            return error(
                "SR0605", adapter=capabilities.adapter, byte_count=byte_count, reason=reason
            )
        return error("SR0609", runtime=capabilities.runtime, reason=reason)

    def allocated(self, make: Callable[[], R], byte_count: int) -> R:
        """Allocates by `make`; if memory is short, frees idle buffers and retries.

        Raises:
            DeviceError: SR0605, if memory is still short.
        """
        try:
            return make()
        except self.foreign_errors as failure:
            refusal = self.translate(failure, byte_count)
        if refusal.code != "SR0605":
            raise refusal
        gc.collect()  # Arrays in reference cycles become idle.
        self.give_up_idle()
        try:
            return make()
        except self.foreign_errors as failure:
            raise self.translate(failure, byte_count) from None

    @abstractmethod
    def give_up_idle(self) -> None:
        """Frees the idle buffers once the device has finished with them."""

    @abstractmethod
    def drop_recorded(self) -> None:
        """Drops the commands recorded since the last submission."""


def guarded(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Runs `method` under the lock on a usable device, and translates foreign exceptions.

    Inside another guarded method, it only runs `method`, because the outer one does the rest.
    """

    @functools.wraps(method)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        thread = get_ident()
        if self.guarded_thread == thread:
            return method(self, *args, **kwargs)
        lock = self.lock
        held = begin_turn(lock)
        self.guarded_thread = thread
        try:
            if not self.is_sound:
                self.check_usable()
            return method(self, *args, **kwargs)
        except self.foreign_errors as failure:
            self.drop_recorded()
            raise self.translate(failure) from None
        finally:
            self.guarded_thread = 0
            end_turn(lock, held)

    return run


def shortened(text: str) -> str:
    """The first non-empty lines of `text`."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:REASON_LINES])


def is_loss(reason: str) -> bool:
    """True if a message reports a lost device; neither library has an exception class for it."""
    text = reason.lower().replace("_", " ")
    return any(
        phrase in text for phrase in ("device lost", "is lost", "was lost", "device removed")
    )


def is_out_of_memory(failure: Exception) -> bool:
    """True if `failure` is a failed allocation, by its class or its text."""
    name = type(failure).__name__
    text = str(failure).lower().replace("_", " ")
    return name in {"GPUOutOfMemoryError", "MemoryError"} or "out of memory" in text
