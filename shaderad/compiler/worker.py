"""The child process: compiles and vets on request, and may crash or hang without harm.

Run as ``python -m shaderad.compiler.worker`` by `child.py`. A message is a 4-byte little-endian
length and that many bytes of msgpack. Requests come on standard input. The original standard output
carries ``{"ready"}`` once. For each request it carries the cost so far, ``{"used", "stage"}``,
several times per second, and ``{"reply"}`` at the end. Output of libraries goes to standard error,
so it cannot be mistaken for a reply. The process ends with its input, even during a compilation.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import queue
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from shaderad.compiler.libslang import Compiler, Session, find_library

Message = dict[str, Any]
AtStage = Callable[[str], None]
"""Called with the name of each stage as it begins; messages name the stage that did not end."""

_REPORTS_PER_SECOND = 4

_MODULES_PER_SESSION = 64
"""A session keeps all its modules in memory; a new one costs 5 ms."""


class _Slang:
    """Answers requests for the compiler; keeps a session with the library for each format."""

    def __init__(self) -> None:
        self._compiler: Compiler | None = None
        self._sessions: dict[tuple[str, ...], Session] = {}

    def compile(self, request: Message, at_stage: AtStage) -> Message:
        at_stage("Slang")
        compiler = self._loaded()
        if compiler is None:
            return {"missing": True}
        code_format, folders = request["format"], request["folders"]
        with_lines = request["lines"]
        key = (code_format, str(with_lines), request["digest"], *folders)
        session = self._sessions.pop(key, None)
        session = session or compiler.session(code_format, folders, with_lines=with_lines)
        text, entry = request["slang"], request["entry"]
        module = "kernel_" + hashlib.sha256(text.encode()).hexdigest()[:16]
        # The path must be unique, too: a session asserts that no two modules share one.
        code, log = session.compile(module, f"{module}.slang", text, entry)
        # A failed module stays in its session, half loaded, and breaks the next one.
        if code and not log and session.module_count < _MODULES_PER_SESSION:
            self._sessions[key] = session
        else:
            session.close()
        return {"code": code, "log": log}

    def library(self, request: Message, at_stage: AtStage) -> Message:
        """Writes a module of the library in binary form, the same for all formats."""
        at_stage("Slang")
        compiler = self._loaded()
        if compiler is None:
            return {"missing": True}
        session = compiler.session("spirv", request["folders"])
        content = session.serialised(request["module"])
        session.close()
        if not content:
            return {}
        Path(request["path"]).write_bytes(content)
        return {"digest": hashlib.sha256(content).hexdigest()}

    def _loaded(self) -> Compiler | None:
        path = None if self._compiler else find_library()
        if path is not None:
            self._compiler = Compiler(path)
        return self._compiler


def _vet(request: Message, at_stage: AtStage) -> Message:
    return _vetting(at_stage).vet(request, at_stage)


def _run(request: Message, at_stage: AtStage) -> Message:
    return _vetting(at_stage).run(request, at_stage)


def _open(request: Message, at_stage: AtStage) -> Message:
    _vetting(at_stage).open_for_vetting(request)
    return {}


def _vetting(at_stage: AtStage) -> Any:
    at_stage("device")  # The import loads drivers, too.
    # By name: `lower` does not import `runtime`, which alone imports wgpu.
    return importlib.import_module("shaderad.runtime.wgpu_vetting")


def _ping(_request: Message, _at_stage: AtStage) -> Message:
    return {"pid": os.getpid()}


def _read_requests(source: BinaryIO, into: queue.SimpleQueue[Message]) -> None:
    """Queues requests; ends the process at the end of input, because the parent is gone."""
    while True:
        head = source.read(4)
        if len(head) < 4:
            os._exit(0)
        (byte_count,) = struct.unpack("<I", head)
        into.put(msgspec.msgpack.decode(source.read(byte_count)))


def _be_quiet() -> None:
    """Leaves Ctrl-C to the parent, and disables core files, as crashes are expected."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class ParentPipe:
    """Sends messages to the parent from the working thread and from one that reports progress."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._is_serving = threading.Event()
        self._start = 0.0
        self._stage = ""
        threading.Thread(target=self._report, daemon=True).start()
        self._send({"ready": True})

    def begin(self) -> None:
        self._stage, self._start = "", time.process_time()
        self._is_serving.set()

    def at_stage(self, stage: str) -> None:
        self._stage = stage

    def end(self, reply: Message) -> None:
        with self._lock:
            self._is_serving.clear()
            self._send({"reply": reply})

    def _report(self) -> None:
        while self._is_serving.wait():
            time.sleep(1 / _REPORTS_PER_SECOND)
            with self._lock:
                if self._is_serving.is_set():
                    used = time.process_time() - self._start
                    self._send({"used": used, "stage": self._stage})

    def _send(self, message: Message) -> None:
        content = msgspec.msgpack.encode(message)
        self._pipe.write(struct.pack("<I", len(content)) + content)


def serve(answers: Mapping[str, Callable[[Message, AtStage], Message]]) -> None:
    """Answers requests by their kind until the parent closes the pipe."""
    _be_quiet()
    # Output of libraries goes to standard error.
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    parent = ParentPipe(replies)
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    source = sys.stdin.buffer
    threading.Thread(target=_read_requests, args=(source, requests), daemon=True).start()
    while True:
        request = requests.get()
        parent.begin()
        try:
            reply = answers[request["kind"]](request, parent.at_stage)
        except Exception as failure:  # The parent raises a coded error.
            reply = {"failure": f"{type(failure).__name__}: {failure}"}
        parent.end(reply)


def main() -> None:
    slang = _Slang()
    compiling = {"compile": slang.compile, "library": slang.library}
    serve({**compiling, "vet": _vet, "run": _run, "open": _open, "ping": _ping})


if __name__ == "__main__":
    main()
