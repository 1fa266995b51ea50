"""Foreign exceptions -> `DeviceError`, under the one lock of a runtime.

Invariant: no exception of wgpu or slangpy leaves a method marked `guarded`, and once a device is
lost or closed every guarded method raises.
"""

from __future__ import annotations

import functools
import gc
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from shaderad.diagnostics import Error, error
from shaderad.runtime.protocol import Capabilities

P = ParamSpec("P")
R = TypeVar("R")
G = TypeVar("G", bound="Guarded")

REASON_LINES = 8
"""Validation messages repeat themselves further down."""


class Guarded(ABC):
    """State that every runtime has: lock, capabilities, and why it can no longer be used.

    Attributes:
        foreign_errors: What the library below raises for failures that are not Python mistakes.
    """

    foreign_errors: tuple[type[Exception], ...] = ()

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.lock = threading.RLock()
        self.is_closed = False
        self._lost_because = ""

    @property
    def is_lost(self) -> bool:
        return bool(self._lost_because)

    def check_usable(self) -> None:
        """Raises SR0604 or SR0610 where the device is gone."""
        adapter = self.capabilities.adapter
        if self._lost_because:
            raise error("SR0604", adapter=adapter, reason=self._lost_because)
        if self.is_closed:
            raise error("SR0610", adapter=adapter)

    def translate(self, failure: Exception, byte_count: int = 0) -> Error:
        """The error a user sees for `failure`; remembers that the device is lost."""
        capabilities = self.capabilities
        reason = shortened(str(failure))
        if is_loss(reason):
            self._lost_because = reason
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
        with self.lock:
            if self._lost_because or self.is_closed:  # pyright: ignore[reportPrivateUsage]
                self.check_usable()
            try:
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
