"""Kills a child that takes too long, in seconds of its own processor time.

On a busy machine a sound compiler may wait for its turn longer than a hung one computes, and a
verdict that it hangs would be kept. So, where the system tells, a child that still makes progress
is given its seconds of processor time; one that makes none is killed at the first look.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

# Of the interval between two looks. A blocked child uses nothing, one of a hundred runnable
# processes on one core still a hundredth.
_PROGRESS = 0.005


class Watchdog:
    """Watches `process` until `cancel`; `has_fired` says whether it was killed."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.has_fired = False
        self._process = process
        self._left = seconds
        self._used = processor_seconds(process.pid)
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = self._armed()

    def cancel(self) -> None:
        """The child has replied or died."""
        with self._lock:
            self._is_over = True
            self._timer.cancel()

    def _armed(self) -> threading.Timer:
        timer = threading.Timer(self._left, self._look)
        timer.daemon = True
        timer.start()
        return timer

    def _look(self) -> None:
        with self._lock:
            if self._is_over:
                return
            used = processor_seconds(self._process.pid)
            progress = used - self._used
            if progress > _PROGRESS * self._left and progress < self._left:
                self._used = used
                self._left -= progress
                self._timer = self._armed()
                return
            self.has_fired = True
            self._process.kill()


def processor_seconds(pid: int) -> float:
    """What all threads of a process have used so far; 0 where the system does not tell."""
    try:
        # After the name, which may hold spaces and parentheses: fields 3 and on of proc(5).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
