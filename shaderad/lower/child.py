"""The host's end of the child process: one request at a time, with a time limit.

Whatever the child does, a request ends: with its reply, with `ChildDied`, or, once the limit has
passed and the child is killed, with `ChildTimedOut`. The request after that starts a new child.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

import msgspec

from shaderad.lower.watchdog import Watchdog

_SHOWN_STDERR_BYTES = 2000
# Sent by somebody else (the out-of-memory killer, a shell): worth one more try.
_FOREIGN_DEATHS = frozenset({"signal SIGKILL", "signal SIGTERM", "signal SIGHUP"})


class ChildDied(Exception):
    """The child ended before it replied; `cause` names the signal or the exit code."""

    def __init__(self, cause: str, stderr: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.stderr = stderr


class ChildTimedOut(Exception):
    """The child was killed because it took longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:g} s")
        self.seconds = seconds


class ChildUnavailable(Exception):
    """No child could be started."""


class Child:
    """A lazily started `worker.py`; threads take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        # A forked host must not share its parent's pipe, nor wait on a lock nobody will release.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.close)

    def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Sends `message` and waits for the reply.

        Raises:
            ChildDied: The child crashed on it.
            ChildTimedOut: No reply within `timeout` seconds of its own (lower/watchdog.py).
            ChildUnavailable: The child cannot be started here.
        """
        content = msgspec.msgpack.encode(message)
        with self._lock:
            try:
                return self._ask(content, timeout)
            except ChildDied as death:
                if death.cause not in _FOREIGN_DEATHS:
                    raise
            return self._ask(content, timeout)

    def _ask(self, content: bytes, timeout: float) -> dict[str, Any]:
        process, stderr = self._running()
        start = stderr.seek(0, os.SEEK_END)
        watchdog = Watchdog(process, timeout)
        try:
            reply = _exchange(process, content)
        except BaseException:
            # Interrupted half way: the late reply must not answer the next request.
            self._stop()
            raise
        finally:
            watchdog.cancel()
        if reply is not None:
            return msgspec.msgpack.decode(reply)
        code = process.wait()
        stderr.seek(start)
        said = stderr.read()[-_SHOWN_STDERR_BYTES:].decode("utf-8", "replace")
        self._stop()
        if watchdog.has_fired:
            raise ChildTimedOut(timeout)
        raise ChildDied(_cause(code), said.strip())

    def close(self) -> None:
        """Ends the child, if there is one; a later request starts another."""
        with self._lock:
            self._stop()

    def _running(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._process is not None and self._process.poll() is not None:
            self._stop()  # It died between requests: nobody's request is to blame.
        if self._process is None or self._stderr is None:
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
            try:
                self._process = _start(self._stderr)
            except ChildUnavailable:
                self._stop()
                raise
        return self._process, self._stderr

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _forget(self) -> None:
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            # The parent waits for it; `returncode` keeps this copy from doing so.
            process.returncode = 0
            # Closed here too, or the child would not see the end of its input.
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._stderr = None


def _start(stderr: IO[bytes]) -> subprocess.Popen[bytes]:
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
            [executable, "-P", "-m", "shaderad.lower.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            bufsize=0,
        )
    except OSError as failure:
        raise ChildUnavailable(f"`{executable}`: {failure.strerror or failure}") from failure


def _exchange(process: subprocess.Popen[bytes], content: bytes) -> bytes | None:
    """The reply to `content`; `None` where the child died on the way."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        _write_all(process.stdin, struct.pack("<I", len(content)) + content)
        head = _read_all(process.stdout, 4)
        if head is None:
            return None
        return _read_all(process.stdout, struct.unpack("<I", head)[0])
    except OSError:  # EPIPE: it died before it read the request.
        return None


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
