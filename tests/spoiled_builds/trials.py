"""Seeds -> outcomes, by child processes that are started again where one ends."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Self

import shaderad as sad

SOURCE = Path(__file__).parent / "model.py"
SECONDS = 300.0
"""After which a trial counts as endless; the compiler alone has a minute for each entry point."""
_WAITS = ("wgpu_runtime.py", "slangpy_runtime.py")
"""Where the host waits for the device."""


def built(folder: Path, targets: str) -> Path:
    """A sound build."""
    sad.build(SOURCE, folder, targets=targets, jvp=True, validate=False)
    return folder


class Trials:
    """A child process and what it is given to do."""

    def __init__(self, sound: Path, runtime: str) -> None:
        self._sound, self._runtime = sound, runtime
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._stderr: IO[str] = tempfile.TemporaryFile("w+")
        """Of all children, one after the other; emptied for each."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_child()
        self._stderr.close()
        self._folder.cleanup()

    def outcomes(self, seeds: Iterable[int]) -> Iterator[dict[str, Any]]:
        """What came of each, in order."""
        for seed in seeds:
            yield self._outcome(seed)

    def _outcome(self, seed: int) -> dict[str, Any]:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{seed} {SECONDS}\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return json.loads(line)
        code = process.wait()
        self._stderr.seek(0)
        said = self._stderr.read()
        self._end_child()
        return {"seed": seed, "outcome": _end(code, said), "stack": said[-4000:]}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._stderr.seek(0)
            self._stderr.truncate()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spoiled_builds.trial", str(self._sound),
                 f"{self._folder.name}/spoiled", self._runtime],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, text=True,
            )  # fmt: skip
        return self._process

    def _end_child(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _end(code: int, said: str) -> str:
    """How a child ended that gave no answer."""
    if "Timeout (" not in said:
        return f"crash: {code}"
    # The main thread comes last, its newest frame first.
    frames = said.rpartition("most recent call first")[2].splitlines()
    own = next((line for line in frames if "/shaderad/" in line), "")
    return "endless on the device" if any(one in own for one in _WAITS) else "endless in the host"
