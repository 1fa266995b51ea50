"""A child in place of the compiler and naga: it does what the code that it is given says."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from shaderad.compiler.worker import AtStage, Message, serve

MODULE = "tests.compiler.misbehaving_worker"


def spin() -> NoReturn:
    while True:
        pass


def stand_still() -> NoReturn:
    while True:
        time.sleep(60)


def creep(seconds: float) -> Message:
    """Computes a twentieth of the time, as on a machine that has much else to do."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        turn = time.process_time() + 0.01
        while time.process_time() < turn:
            pass
        time.sleep(0.19)
    return {"code": b"crept", "log": ""}


def end_by(name: str) -> Message:
    os.kill(os.getpid(), getattr(signal, name))
    return {"code": b"survived", "log": ""}


def killed_once(marker: str) -> Message:
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"code": b"second time", "log": ""}


def without_memory() -> NoReturn:
    sys.stderr.write("memory allocation of 123456 bytes failed\n")
    sys.stderr.flush()
    os.abort()


ACTIONS: dict[str, Any] = {
    "spin": spin,
    "stand_still": stand_still,
    "creep": lambda seconds: creep(float(seconds)),
    "end_by": end_by,
    "killed_once": killed_once,
    "without_memory": without_memory,
}


def compile_as_told(request: Message, at_stage: AtStage) -> Message:
    at_stage("Slang")
    action, *arguments = request["slang"].split()
    return ACTIONS[action](*arguments)


if __name__ == "__main__":
    serve({"compile": compile_as_told, "ping": lambda request, at_stage: {"pid": os.getpid()}})
