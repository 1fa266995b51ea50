"""Processes forked off while a device is open: they have its memory, but none of its threads.

Drivers wait for threads that only the parent has, and what the child frees may be taken from the
parent. So nothing native is used or freed in the child.
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
class _Opened:
    """The process that opened a device first."""

    process: int | None = None


_opened = _Opened()


def check_process() -> None:
    """Raises SR0622 where a device was open when this process was forked off."""
    if _opened.process not in (None, os.getpid()):
        raise error("SR0622", what="a device")


def note_opened() -> None:
    """Notes that this process has opened a device."""
    _opened.process = os.getpid()


def call_in_children(method: Callable[[], Any]) -> None:
    """Calls `method` in each process that is forked off while its object lives."""
    reference = WeakMethod(method)

    def run() -> None:
        found = reference()
        if found is not None:
            found()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=run)


def keep_for_ever(one: object) -> None:
    """Keeps an object and all that it holds until the process is gone: nothing finalises it.

    What drivers do at the end of a process is left out, too: they join threads of the parent, or
    wait for the device.
    """
    import ctypes  # rare, and slow to import

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "on_exit"):  # of glibc alone: hands over the exit status
        libc.on_exit(libc._exit, None)
