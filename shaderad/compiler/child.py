"""The host's end of a child process: one request at a time, with a time limit.

A request ends with its reply, with `ChildDied`, or, once the limit has passed and the child is
killed, with `ChildTimedOut`. Invariant: only a child that has answered every request so far gets
another one; otherwise, also after an interrupt, the next request starts a new child.

On a busy machine a sound compiler may wait for its turn longer than a hung one computes. The limit
is therefore on processor time, which the child reports several times per second. Two longer limits
on the clock remain: one for a child that makes no progress, because it is blocked or reports
nothing, and one for every child.
"""

from __future__ import annotations

import atexit
import functools
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
from typing import IO, Any, Self

import msgspec

from shaderad.diagnostics import progress

WORKER = "shaderad.compiler.worker"
TIMEOUT_SECONDS = 60.0
"""The limit on the child's processor time per request."""
PROCESSES = min(os.cpu_count() or 1, 4)
"""The number of child processes that compile side by side."""
STALL_FACTOR = 2.0
"""Seconds on the clock without progress, per second of the limit. Drivers may wait for a compiler
in another process, whose time does not count as the child's."""
CLOCK_FACTOR = 20.0
"""Seconds on the clock, per second of the limit."""
_PROGRESS = 0.005
"""Seconds of processor time per second on the clock; a child below it makes no progress. One of a
hundred runnable processes on a core gets 0.01; the reports of a blocked child cost less."""
_SHOWN_STDERR_BYTES = 2000
_START_SECONDS = 0.6
_LOOK_SECONDS = 0.005
# Signals of the out-of-memory killer, a shell, a terminal, a limit of processor time.
_FOREIGN_DEATHS = frozenset(
    f"signal {name}" for name in ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGXCPU")
) | {"exit code 0xc000013a"}
# Output of Rust and C++ before an abort for lack of memory.
_OUT_OF_MEMORY = re.compile(r"memory allocation of \d+ bytes failed|bad_alloc|out of memory", re.I)
_COMPILERS = {
    "": "the process that compiles",
    "Slang": "the Slang compiler",
    "rewriting": "the process that rewrites SPIR-V for naga",
    "naga": "naga, which reads shaders for wgpu,",
    "driver": "the driver's compiler",
    "device": "the driver, while it opened the device,",
}


class ChildDied(Exception):
    """The child ended before it replied; `cause` names the signal or the exit code."""

    def __init__(self, cause: str, stderr: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.stderr = stderr

    @property
    def was_killed(self) -> bool:
        """True if another process or lack of memory ended it, which is no verdict on the code."""
        return self.cause in _FOREIGN_DEATHS or bool(_OUT_OF_MEMORY.search(self.stderr))


class ChildTimedOut(Exception):
    """The child was killed because it took too long.

    Attributes:
        stage: The stage at which it was killed: ``"Slang"``, ``"naga"``, ``"driver"``, or empty.
        excess: The limit that it exceeded, such as ``"used 60 s of processor time"``.
    """

    def __init__(self, stage: str, excess: str) -> None:
        super().__init__(f"{stage} {excess}".strip())
        self.stage = stage
        self.excess = excess

    @property
    def compiler(self) -> str:
        """The name of the stage in messages."""
        return _COMPILERS[self.stage]


class ChildUnavailable(Exception):
    """No child could be started."""


class Child:
    """A lazily started `worker.py`, or `module` with the same protocol; threads take turns."""

    def __init__(self, module: str = WORKER) -> None:
        self._module = module
        self._is_ready = False
        """True once the child has sent a message."""
        self._owes_reply = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._is_over = False
        # A forked host must not use its parent's pipe, nor wait for a lock of the parent's threads.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self._end)

    @property
    def is_busy(self) -> bool:
        """True while a thread waits for a reply."""
        return self._lock.locked()

    @property
    def is_started(self) -> bool:
        return self._process is not None

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Sends `message` and waits for the reply.

        Args:
            message: A request of `worker.py`.
            timeout: Seconds of the child's processor time; the limits on the clock follow from it.

        Raises:
            ChildDied: The child crashed, or was killed twice in a row.
            ChildTimedOut: The child exceeded a limit.
            ChildUnavailable: The child cannot be started.
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
            printed = stderr.read()[-_SHOWN_STDERR_BYTES:].decode("utf-8", "replace").strip()
        finally:
            if self._owes_reply:
                self._stop()
        if watchdog.excess:
            raise ChildTimedOut(stage, watchdog.excess)
        death = ChildDied(_cause(code), printed)
        if not self._is_ready and not death.was_killed:
            raise ChildUnavailable("; ".join([death.cause, *printed.splitlines()[-1:]]))
        raise death

    def _exchange(
        self, process: subprocess.Popen[bytes], content: bytes, watchdog: Watchdog
    ) -> tuple[dict[str, Any] | None, str]:
        """The reply to `content`, `None` if the child died, and the child's last stage."""
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
                message = msgspec.msgpack.decode(frame)
                self._is_ready = True
                if "reply" in message:
                    return message["reply"], stage
                if "used" in message:
                    stage = message["stage"]
                    watchdog.heard(message["used"])
                    progress.at_stage(stage)
        except OSError:  # EPIPE: the child died before it read the request.
            return None, stage

    def close(self) -> None:
        """Ends a running child; a later request starts another."""
        with self._lock:
            self._stop()

    def _end(self) -> None:
        """Exit handler that ends the child; requests of background threads are not repeated."""
        self._is_over = True
        process = self._process
        if process is not None:
            process.kill()
        self.close()

    def _running(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._owes_reply or (self._process is not None and self._process.poll() is not None):
            # A request was interrupted, or the child died between requests.
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
        # An interrupted step is repeated by the next call.
        process = self._process
        if process is not None:
            process.kill()
            _close_pipes(process)
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
            process.returncode = 0  # The parent waits for the child; this process must not.
            # An open copy would hide the end of input from the child.
            _close_pipes(process)
        self._stderr = None


class Children:
    """Several children, each of which answers one request at a time.

    Another child is started once requests have together waited for as long as a start takes.
    """

    def __init__(self, count: int, module: str = WORKER) -> None:
        self._children = [Child(module) for _ in range(count)]
        self._waited = 0.0
        """Seconds that requests have waited since the latest start."""

    @property
    def is_started(self) -> bool:
        """True if a child runs."""
        return any(child.is_started for child in self._children)

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """As `Child.request`."""
        return self._free().request(message, timeout)

    def _free(self) -> Child:
        while True:
            free = [child for child in self._children if not child.is_busy]
            running = [child for child in free if child.is_started]
            if running:
                return running[0]
            if free and (len(free) == len(self._children) or self._waited > _START_SECONDS):
                self._waited = 0.0
                return free[0]
            time.sleep(_LOOK_SECONDS)
            self._waited += _LOOK_SECONDS

    def close(self) -> None:
        """Ends all children; later requests start others."""
        for child in self._children:
            child.close()


@functools.cache
def children() -> Children:
    """The processes that compile; each one starts at its first request."""
    return Children(PROCESSES)


class Watchdog:
    """Watches `process` within a `with` block; `excess` names the limit that it exceeded."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.excess = ""
        self._process = process
        self._seconds = seconds
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._start = self._progress_at = time.monotonic()
        self._used = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except BaseException:
            self._is_over.set()
            raise
        return self

    def __exit__(self, *_failure: object) -> None:
        with self._lock:
            self._is_over.set()

    def heard(self, used: float) -> None:
        """Notes a report: `used` seconds of processor time since the request."""
        now = time.monotonic()
        with self._lock:
            if used - self._used >= _PROGRESS * (now - self._progress_at):
                self._used, self._progress_at = used, now
            if used >= self._seconds:
                self._kill(f"used {used:.0f} s of processor time")

    def _watch(self) -> None:
        pause = min(1.0, self._seconds / 4)
        while not self._is_over.wait(pause):
            now = time.monotonic()
            with self._lock:
                if now - self._progress_at >= STALL_FACTOR * self._seconds:
                    self._kill(f"stood still for {now - self._progress_at:.0f} s")
                elif now - self._start >= CLOCK_FACTOR * self._seconds:
                    self._kill(f"took {now - self._start:.0f} s")

    def _kill(self, excess: str) -> None:
        """Kills the child unless it has replied; the caller holds the lock."""
        if not self._is_over.is_set():
            self.excess = excess
            self._is_over.set()
            self._process.kill()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _start(module: str, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    executable = os.environ.get("SHADERAD_PYTHON", "")
    if not executable and not getattr(sys, "frozen", False):
        executable = sys.executable
    if not executable:
        raise ChildUnavailable("this process has no Python interpreter of its own")
    package_folder = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    # The child imports from the same folders as the host, including that of its script.
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
            # The child has its own process group, so Ctrl-C in a terminal reaches only the host.
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
