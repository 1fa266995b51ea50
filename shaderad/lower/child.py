"""The host's end of a child process: one request at a time, with a time limit.

Whatever the child does, a request ends: with its reply, with `ChildDied`, or, once the limit has
passed and the child is killed, with `ChildTimedOut`. Invariant: only a child that has answered
every request so far is asked again; after anything else, an interrupt at any moment included, the
next request starts a new one.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from shaderad.diagnostics import progress
from shaderad.lower.watchdog import Watchdog

WORKER = "shaderad.lower.worker"
_SHOWN_STDERR_BYTES = 2000
_START_SECONDS = 0.6
_LOOK_SECONDS = 0.005
# Sent by somebody else: the out-of-memory killer, a shell, a terminal, a limit of processor time.
_FOREIGN_DEATHS = frozenset(
    f"signal {name}" for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGXCPU")
) | {"exit code 0xc000013a"}
# What Rust and C++ print before they abort for want of memory.
_OUT_OF_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|bad_alloc|out of memory", re.I)


class ChildDied(Exception):
    """The child ended before it replied; `cause` names the signal or the exit code."""

    def __init__(self, cause: str, stderr: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.stderr = stderr

    @property
    def was_killed(self) -> bool:
        """It was ended by somebody else or for want of memory, which is no verdict on any code."""
        return self.cause in _FOREIGN_DEATHS or bool(_OUT_OF_MEMORY.search(self.stderr))


class ChildTimedOut(Exception):
    """The child was killed because it took too long.

    Attributes:
        stage: What it was at: ``"Slang"``, ``"naga"``, ``"driver"``; empty before it has begun.
        excess: Which limit it exceeded, such as ``"used 60 s of processor time"``.
    """

    def __init__(self, stage: str, excess: str) -> None:
        super().__init__(f"{stage} {excess}".strip())
        self.stage = stage
        self.excess = excess


class ChildUnavailable(Exception):
    """No child could be started."""


class Child:
    """A lazily started `worker.py`, or another `module` that speaks like it; threads take turns."""

    def __init__(self, module: str = WORKER) -> None:
        self._module = module
        self._is_ready = False
        """It has said that it runs."""
        self._owes_reply = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._is_over = False
        # A forked host must not share its parent's pipe, nor wait on a lock nobody will release.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self._end)

    @property
    def is_busy(self) -> bool:
        """Whether a thread waits for its reply."""
        return self._lock.locked()

    @property
    def is_started(self) -> bool:
        return self._process is not None

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Sends `message` and waits for the reply.

        Args:
            message: What `worker.py` understands.
            timeout: Seconds of the child's processor time; the clock has limits of its own, see
                lower/watchdog.py.

        Raises:
            ChildDied: The child crashed on it; where `was_killed`, twice in a row.
            ChildTimedOut: It took too long.
            ChildUnavailable: The child cannot be started here.
        """
        content = msgspec.msgpack.encode(message)
        with self._lock:
            try:
                return self._ask(content, timeout)
            except ChildDied as death:
                if not death.was_killed:
                    raise
            return self._ask(content, timeout)

    def _ask(self, content: bytes, timeout: float) -> dict[str, Any]:
        process, stderr = self._running()
        start = stderr.seek(0, os.SEEK_END)
        self._owes_reply = True
        try:
            with Watchdog(process, timeout) as watchdog:
                reply, stage = self._exchange(process, content, watchdog)
            if reply is not None:
                self._owes_reply = False
                return reply
            code = process.wait()
            stderr.seek(start)
            said = stderr.read()[-_SHOWN_STDERR_BYTES:].decode("utf-8", "replace").strip()
        finally:
            if self._owes_reply:
                self._stop()
        if watchdog.excess:
            raise ChildTimedOut(stage, watchdog.excess)
        death = ChildDied(_cause(code), said)
        if not self._is_ready and not death.was_killed:
            raise ChildUnavailable("; ".join([death.cause, *said.splitlines()[-1:]]))
        raise death

    def _exchange(
        self, process: subprocess.Popen[bytes], content: bytes, watchdog: Watchdog
    ) -> tuple[dict[str, Any] | None, str]:
        """The reply to `content`, `None` where the child died on the way, and its last stage."""
        assert process.stdin is not None
        assert process.stdout is not None
        stage = ""
        try:
            _write_all(process.stdin, struct.pack("<I", len(content)) + content)
            while True:
                head = _read_all(process.stdout, 4)
                frame = head and _read_all(process.stdout, struct.unpack("<I", head)[0])
                if not frame:
                    return None, stage
                told = msgspec.msgpack.decode(frame)
                self._is_ready = True
                if "reply" in told:
                    return told["reply"], stage
                if "used" in told:
                    stage = told["stage"]
                    watchdog.heard(told["used"])
                    progress.at_stage(stage)
        except OSError:  # EPIPE: it died before it read the request.
            return None, stage

    def close(self) -> None:
        """Ends the child, if there is one; a later request starts another."""
        with self._lock:
            self._stop()

    def _end(self) -> None:
        """Ends it with the host: what a thread in the background asked for is asked no more."""
        self._is_over = True
        process = self._process
        if process is not None:
            process.kill()
        self.close()

    def _running(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._owes_reply or (self._process is not None and self._process.poll() is not None):
            # An interrupt came between, or it died between requests, which is nobody's fault.
            self._stop()
        self._owes_reply = False
        if self._is_over:
            raise ChildUnavailable("this process ends")
        if self._process is None or self._stderr is None:
            self._is_ready = False
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
            try:
                self._process = _start(self._module, self._stderr)
            except ChildUnavailable:
                self._stop()
                raise
        return self._process, self._stderr

    def _stop(self) -> None:
        # Each step may be interrupted, and is done again by the next call.
        process = self._process
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
            self._process = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._owes_reply = False
        process, self._process = self._process, None
        if process is not None:
            # The parent waits for it; `returncode` keeps this copy from doing so.
            process.returncode = 0
            # Closed here too, or the child would not see the end of its input.
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._stderr = None


class Children:
    """Several children, each of which answers a request at a time.

    Another is started where those that run have been busy for as long as a start takes.
    """

    def __init__(self, count: int, module: str = WORKER) -> None:
        self._children = [Child(module) for _ in range(count)]

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """As `Child.request`."""
        return self._free().request(message, timeout)

    def _free(self) -> Child:
        start = time.monotonic()
        while True:
            free = [one for one in self._children if not one.is_busy]
            running = [one for one in free if one.is_started]
            is_due = len(free) == len(self._children) or time.monotonic() - start > _START_SECONDS
            if running or (free and is_due):
                return (running or free)[0]
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        """Ends them all; later requests start others."""
        for one in self._children:
            one.close()


def _start(module: str, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    executable = os.environ.get("SHADERAD_PYTHON", "")
    if not executable and not getattr(sys, "frozen", False):
        executable = sys.executable
    if not executable:
        raise ChildUnavailable("this process has no Python interpreter of its own")
    package_folder = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    # What the host can import, the child can; the host's own script folder included.
    environment["PYTHONPATH"] = os.pathsep.join([package_folder, *filter(None, sys.path)])
    try:
        # -P: a file in the working folder must not pass for a module of the standard library.
        return subprocess.Popen(
            [executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            bufsize=0,
            # A group of its own: Ctrl-C in a terminal goes to the host alone, from the child's
            # first moment on.
            process_group=None if sys.platform == "win32" else 0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
    except OSError as failure:
        raise ChildUnavailable(f"`{executable}`: {failure.strerror or failure}") from failure


def _write_all(pipe: IO[bytes], content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[pipe.write(rest) :]


def _read_all(pipe: IO[bytes], byte_count: int) -> bytes | None:
    parts: list[bytes] = []
    while byte_count:
        part = pipe.read(byte_count)
        if not part:
            return None
        parts.append(part)
        byte_count -= len(part)
    return b"".join(parts)


def _cause(code: int) -> str:
    if code < 0:
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code:#x}" if code > 255 else f"exit code {code}"
