"""The child process: compiles and vets on request, and may crash or hang without harm.

Run as ``python -m shaderad.lower.worker`` by `child.py`. A message is a 4-byte little-endian
length and that many bytes of msgpack; requests come on standard input, one reply to each goes
out on what was standard output. Whatever libraries print goes to standard error instead, so it
cannot be mistaken for a reply. The process ends when its input does, even in mid-compile.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from shaderad.lower.libslang import Compiler, Session, find_library

Message = dict[str, Any]

# A session keeps every module it ever loaded; a fresh one costs 5 ms.
_MODULES_PER_SESSION = 64


class _Slang:
    """Answers what needs the compiler; keeps a session for each target, the library loaded."""

    def __init__(self) -> None:
        self._compiler: Compiler | None = None
        self._sessions: dict[tuple[str, ...], Session] = {}

    def compile(self, request: Message) -> Message:
        compiler = self._loaded()
        if compiler is None:
            return {"missing": True}
        target, folders = request["target"], request["folders"]
        with_lines = request["lines"]
        key = (target, str(with_lines), request["digest"], *folders)
        session = self._sessions.pop(key, None)
        session = session or compiler.session(target, folders, with_lines=with_lines)
        text, entry = request["slang"], request["entry"]
        module = "kernel_" + hashlib.sha256(text.encode()).hexdigest()[:16]
        # The session tells modules apart by path as well, and asserts where two share one.
        code, log = session.compile(module, f"{module}.slang", text, entry)
        # A module that failed stays in its session half loaded and breaks the next one.
        if code and not log and session.module_count < _MODULES_PER_SESSION:
            self._sessions[key] = session
        else:
            session.close()
        return {"code": code, "log": log}

    def library(self, request: Message) -> Message:
        """Writes a module of the library in binary form, which serves every target."""
        compiler = self._loaded()
        if compiler is None:
            return {"missing": True}
        session = compiler.session("spirv", [request["library"]])
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


def _vet(request: Message) -> Message:
    # By name, because only files of `runtime` may know wgpu, and `lower` knows nothing of them.
    vetting = importlib.import_module("shaderad.runtime.vetting_runtime")
    return vetting.vet(request)


def _ping(_request: Message) -> Message:
    return {"pid": os.getpid()}


def _read_requests(source: BinaryIO, into: queue.SimpleQueue[Message]) -> None:
    """Queues requests until the input ends, which ends the process: the parent is gone."""
    while True:
        head = source.read(4)
        if len(head) < 4:
            os._exit(0)
        (byte_count,) = struct.unpack("<I", head)
        into.put(msgspec.msgpack.decode(source.read(byte_count)))


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent; 1 becomes standard error for whoever prints."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return sys.stdin.buffer, replies


def _be_quiet() -> None:
    """Ctrl-C is the parent's business, and a crash that is expected needs no core file."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serves until the parent closes the pipe."""
    _be_quiet()
    source, replies = _own_pipes()
    requests: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(source, requests), daemon=True).start()
    slang = _Slang()
    serve: dict[str, Callable[[Message], Message]] = {
        "compile": slang.compile,
        "library": slang.library,
        "vet": _vet,
        "ping": _ping,
    }
    while True:
        request = requests.get()
        try:
            reply = serve[request["kind"]](request)
        except Exception as failure:  # The parent makes a coded error of it.
            reply = {"failure": f"{type(failure).__name__}: {failure}"}
        content = msgspec.msgpack.encode(reply)
        replies.write(struct.pack("<I", len(content)) + content)


if __name__ == "__main__":
    main()
