"""Forks of a process with an open device: the child has its memory, but none of its threads.

Drivers wait for threads that exist in the parent only, and memory that the child frees may be in
use by the parent. The child therefore neither uses nor frees native objects.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakMethod

from shaderad.diagnostics import error


@dataclass
class _DeviceProcess:
    """The process that opened the first device."""

    process: int | None = None


_opener = _DeviceProcess()


def check_process() -> None:
    """Raises SR0622 if this process was forked from one with an open device."""
    if _opener.process not in (None, os.getpid()):
        raise error("SR0622", what="a device")


def note_opened() -> None:
    """Records that this process has opened a device."""
    _opener.process = os.getpid()


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

    Exit handlers of drivers are skipped as well: they join threads of the parent, or wait for the
    device.
    """
    import ctypes  # rare, and slow to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(resource))
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "on_exit"):  # glibc only: passes the exit status
        libc.on_exit(libc._exit, None)
