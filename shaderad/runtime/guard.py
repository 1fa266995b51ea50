"""Foreign exceptions -> `DeviceError`, under the one lock of a runtime; and waiting for a device.

Invariants: no exception of wgpu or slangpy leaves a method marked `guarded`; once a device is
lost, closed or left to a parent process, every guarded method raises; an interrupt reaches the
main thread before or after a guarded method, or while it waits for the device.
"""

from __future__ import annotations

import atexit
import functools
import gc
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from shaderad.diagnostics import Error, error
from shaderad.runtime.forks import call_in_children, keep_for_ever
from shaderad.runtime.interrupts import nap, turn
from shaderad.runtime.protocol import Capabilities

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="Guarded")

REASON_LINES = 8
"""Validation messages repeat themselves further down."""

SPIN_SECONDS = 3e-4
"""How long a wait asks again and again: as long as small dispatches take. Naps come after that."""
NAP_SHARE = 1 / 32
"""Of the time waited so far, up to the longest nap: what a wait may take too long."""
LONGEST_NAP = 2e-3

GIVEN_UP = "a kernel whose wait was interrupted still ran {:g} seconds later"


class Guarded(ABC):
    """State that every runtime has: lock, capabilities, and why it can no longer be used.

    Attributes:
        foreign_errors: What the library below raises for failures that are not Python mistakes.
        is_sound: Whether nothing speaks against using the device.
        patience_seconds: How long the next use waits for work that an interrupt left running.
    """

    foreign_errors: tuple[type[Exception], ...] = ()
    patience_seconds = 5.0

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.lock = threading.RLock()
        self.is_closed = False
        self.is_sound = True
        self._lost_because = ""
        self._is_of_parent = False
        self._left: Callable[[], bool] | None = None
        """Tells whether the work that an interrupt left running is done."""
        call_in_children(self._leave_to_parent)

    @property
    def is_lost(self) -> bool:
        return bool(self._lost_because)

    def check_usable(self) -> None:
        """Raises SR0604, SR0610 or SR0622 where the device is gone."""
        adapter = self.capabilities.adapter
        if self._is_of_parent:
            raise error("SR0622", what=f"the device `{adapter}`")
        self.settle()
        if self._lost_because:
            raise error("SR0604", adapter=adapter, reason=self._lost_because)
        if self.is_closed:
            raise error("SR0610", adapter=adapter)

    def await_device(self, is_done: Callable[[], bool]) -> None:
        """Returns once `is_done`; an interrupt ends the wait, and leaves the rest to `settle`."""
        start = time.perf_counter()
        while not is_done():
            waited = time.perf_counter() - start
            if waited < SPIN_SECONDS:
                continue
            try:
                nap(min(waited * NAP_SHARE, LONGEST_NAP))
            except BaseException:
                self._left, self.is_sound = is_done, False
                atexit.register(self.leave)  # holds the runtime, too, until this is settled
                raise

    def settle(self) -> None:
        """Waits for what an interrupt left running; gives the device up where that goes on."""
        if self._left is None or self._lost_because:
            return
        end = time.perf_counter() + self.patience_seconds
        try:
            while not self._left():
                if time.perf_counter() > end:
                    self._lost_because = GIVEN_UP.format(self.patience_seconds)
                    return
                nap(LONGEST_NAP)
            self.is_sound = True
        except self.foreign_errors as failure:
            self._lost_because = shortened(str(failure))
        self._left = None
        atexit.unregister(self.leave)

    @property
    def is_out_of_reach(self) -> bool:
        """Whether freeing anything native would wait for ever, or take it from the parent."""
        return self._is_of_parent or self._left is not None

    def leave(self) -> None:
        """At the end of the process: lets it end, whatever the device does."""
        if not self._is_of_parent:
            self.settle()
        if self.is_out_of_reach:
            keep_for_ever(self)

    def _leave_to_parent(self) -> None:
        """In a forked process: whatever the lock was held for goes on in the parent alone."""
        self.lock = threading.RLock()
        self.is_sound, self._is_of_parent = False, True
        atexit.register(self.leave)  # holds the runtime, too: nothing native is finalised

    def translate(self, failure: Exception, byte_count: int = 0) -> Error:
        """The error a user sees for `failure`; remembers that the device is lost."""
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
        """A native buffer; where there is no room, without those that lie idle."""
        try:
            return make()
        except self.foreign_errors as failure:
            refusal = self.translate(failure, byte_count)
        if refusal.code != "SR0605":
            raise refusal
        gc.collect()  # Arrays that a cycle of Python objects holds are idle, too.
        self.give_up_idle()
        try:
            return make()
        except self.foreign_errors as failure:
            raise self.translate(failure, byte_count) from None

    @abstractmethod
    def give_up_idle(self) -> None:
        """Frees buffers that wait to serve again, once the device is done with them."""

    @abstractmethod
    def drop_recorded(self) -> None:
        """Forgets the commands recorded since the last submission."""


def guarded(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Runs `method` under the lock, on a usable device, and translates what it raises."""

    @functools.wraps(method)
    def run(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with turn(self.lock):
            try:
                if not self.is_sound:
                    self.check_usable()
                return method(self, *args, **kwargs)
            except self.foreign_errors as failure:
                self.drop_recorded()
                raise self.translate(failure) from None

    return run


def shortened(text: str) -> str:
    """The first lines that say something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:REASON_LINES])


def is_loss(reason: str) -> bool:
    """Whether a message speaks of a lost device; neither library has a class for it."""
    text = reason.lower().replace("_", " ")
    return any(
        phrase in text for phrase in ("device lost", "is lost", "was lost", "device removed")
    )


def is_out_of_memory(failure: Exception) -> bool:
    """Whether an allocation failed, by class where there is one and by words elsewhere."""
    name = type(failure).__name__
    text = str(failure).lower().replace("_", " ")
    return name in {"GPUOutOfMemoryError", "MemoryError"} or "out of memory" in text
