"""The child process: loads spoiled builds and calls them, and may crash or hang without harm.

``python -m tests.spoiled_builds.trial SOUND WORK RUNTIME`` reads a seed and a number of seconds a
line and answers each with a line of JSON. Whoever runs past its seconds is ended, with a stack on
standard error that says where.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.diagnostics import Error
from tests.spoiled_builds.calls import CALLS, numbers
from tests.spoiled_builds.mutations import spoil

MEMORY_BYTES = 24 << 30
TOLERANCE = 1e-4
"""float32, atomic adds in any order."""


class Trials:
    """The device, and what the sound build gives."""

    def __init__(self, sound: Path, work: Path, runtime: str) -> None:
        self._sound, self._work, self._runtime = sound, work, runtime
        self._device = sad.open_device(runtime)
        self._expected: dict[str, list[Any]] = {}

    def of(self, seed: int) -> dict[str, Any]:
        """What comes of the mutation of this seed."""
        made = spoil(self._sound, self._work, seed)
        known = {"seed": seed, "what": made.what, "forged": made.is_forged, "entry": made.entry}
        if made.entry not in self._expected:
            self._expected[made.entry] = self._called(self._sound, made.entry)
        return {**known, "outcome": self._outcome(made.entry)}

    def _outcome(self, entry: str) -> str:
        step = "load"
        try:
            with self._device:
                loaded = sad.load(self._work)
                step = "call"
                if entry not in loaded:
                    return "right: the others are there"
                found = numbers(CALLS[entry](loaded[entry]))
                self._device.synchronize()
        except Error as failure:
            self._renewed()
            return f"{step}: {failure.code}"
        except Exception as failure:
            self._renewed()
            return f"uncoded at {step}: {type(failure).__name__}: {failure}"
        return "right" if _agree(found, self._expected[entry]) else "other numbers"

    def _called(self, folder: Path, entry: str) -> list[Any]:
        with self._device:
            return numbers(CALLS[entry](sad.load(folder)[entry]))

    def _renewed(self) -> None:
        """The device without what is left of a failure; another one where it was lost."""
        for _ in range(100):
            try:
                self._device.synchronize()
            except sad.DeviceError:
                self._device = sad.open_device(self._runtime)
            except Error:
                continue
            return


def _agree(found: list[Any], expected: list[Any]) -> bool:
    if len(found) != len(expected):
        return False
    return all(
        np.shape(one) == np.shape(other)
        and (one is other is None or np.allclose(one, other, TOLERANCE, TOLERANCE, equal_nan=True))
        for one, other in zip(found, expected, strict=True)
        if one is not None or other is not None
    )


def main() -> None:
    sound, work, runtime = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    trials = Trials(Path(sound), Path(work), runtime)
    for line in sys.stdin:
        seed, seconds = line.split()
        faulthandler.dump_traceback_later(float(seconds), exit=True)
        found = trials.of(int(seed))
        faulthandler.cancel_dump_traceback_later()
        replies.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
