"""Processes that write one cache folder at once, or are killed while they do."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from shaderad.compiler.cache import Cache, key_of

KEYS = [key_of(str(number)) for number in range(8)]

# The limit is small, so that every process prunes what the others read.
MANY = """
import sys
from pathlib import Path
from tests.stress.writers import share
share(Path(sys.argv[1]), int(sys.argv[2]))
"""
COMPILING = """
import sys
from tests.stress.steps import descend
import shaderad as sad
(*_, last) = descend(sad.open_device(sys.argv[1]), 10, 10)
print(f"{last.loss:.4g}")
"""
ENDLESS = """
import sys
from pathlib import Path
from tests.stress.writers import write_without_end
write_without_end(Path(sys.argv[1]))
"""


def payload(key: str, size: int) -> bytes:
    """What belongs to `key`, and to no other."""
    return key.encode() * (size // len(key))


def is_right(key: str, found: bytes | None) -> bool:
    """Whether `found` is nothing, or one of the payloads of `key`, whole."""
    return found is None or found == payload(key, len(found))


def share(folder: Path, rounds: int) -> None:
    """Writes and reads all keys `rounds` times; ends with the number of wrong answers."""
    cache = Cache(folder, limit_bytes=200_000)
    wrong = 0
    for number in range(rounds):
        for key in KEYS:
            cache.put(key, payload(key, 6_400 * (1 + number % 7)))
            wrong += not is_right(key, cache.get(key))
    sys.exit(wrong)


def write_without_end(folder: Path) -> None:
    cache = Cache(folder)
    sys.stdout.write("writing\n")
    sys.stdout.flush()
    while True:
        for key in KEYS:
            cache.put(key, payload(key, 4 << 20))


def started(script: str, *arguments: str, cache: Path | None = None) -> subprocess.Popen[bytes]:
    folders = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    if cache is not None:
        environment["SHADERAD_CACHE"] = str(cache)
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def shared_by_processes(folder: Path, process_count: int, rounds: int) -> list[int | None]:
    """Exit codes of processes that share `folder`: the number of wrong answers of each."""
    runs = [started(MANY, str(folder), str(rounds)) for _ in range(process_count)]
    for run in runs:
        run.communicate()
    return [run.returncode for run in runs]


def compiled_by_processes(folder: Path, process_count: int, runtime: str) -> list[str]:
    """What processes print that compile the same kernels into one empty cache, and run them."""
    runs = [started(COMPILING, runtime, cache=folder) for _ in range(process_count)]
    return [run.communicate()[0].decode().strip() for run in runs]


def killed_while_writing(folder: Path, seed: int) -> tuple[int, int]:
    """Kills a writer at a random moment.

    Returns:
        The keys whose entry is neither right nor absent, and the unfinished files it left.
    """
    run = started(ENDLESS, str(folder))
    assert run.stdout is not None
    run.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.005, 0.1))
    run.send_signal(signal.SIGKILL)
    run.communicate()
    cache = Cache(folder)
    wrong = sum(not is_right(key, cache.get(key)) for key in KEYS)
    return wrong, len(list(folder.glob("entries/*/*.new")))
