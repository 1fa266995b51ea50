"""Interrupts at random moments while a device compiles; the compile after each must be right."""

from __future__ import annotations

import random
import signal
import struct
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import shaderad as sad
from shaderad.compiler import compile as compiling
from shaderad.compiler import validate as validators
from shaderad.compiler.artifact import Program
from shaderad.compiler.cache import Cache
from shaderad.doctor import DOUBLE


def times(factor: int) -> Program:
    """A program that multiplies by `factor`; no other has its text."""
    return replace(DOUBLE, slang=DOUBLE.slang.replace("2.0 *", f"{factor}.0 *"))


def is_right(device: sad.Device, factor: int) -> bool:
    """Compiles, dispatches and reads."""
    runtime = device.runtime
    x, y = runtime.allocate(16), runtime.allocate(16)
    runtime.write(x, 0, struct.pack("<4f", 1, 2, 3, 4))
    runtime.dispatch(runtime.pipeline(times(factor)), {0: x, 1: y}, b"", (1, 1, 1))
    found = struct.unpack("<4f", runtime.read([(y, 0, 16)])[0])
    return found == tuple(factor * value for value in (1, 2, 3, 4))


@contextmanager
def uncached() -> Generator[None]:
    """Nothing is found in the cache: every program goes through the child."""
    kept, modules = compiling.default_cache, (compiling, validators)
    for module in modules:
        module.default_cache = lambda: Cache(None)
    try:
        yield
    finally:
        for module in modules:
            module.default_cache = kept


def is_interrupted(work: Callable[[], Any], after: float) -> bool:
    """Whether an interrupt `after` seconds came before `work` was done."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    # Shells start what runs in the background with interrupts ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGINT, handler)
    return False


def compiled_under_interrupts(device: sad.Device, count: int, seed: int) -> list[bool]:
    """Interrupts `count` compiles, each at another moment.

    Returns:
        For each interrupt, whether the compile after it gave the right program.
    """
    choose = random.Random(seed)
    numbers = iter(range(3, 1_000_000))
    found: list[bool] = []
    with uncached():
        compiling.children().close()
        start = time.perf_counter()
        assert is_right(device, next(numbers))
        longest = time.perf_counter() - start  # with the start of a child
        while len(found) < count:
            # As often into a running child as into one that starts.
            if choose.random() < 0.5:
                compiling.children().close()
                validators.vetter().close()
            program = times(next(numbers))
            moment = choose.uniform(1e-4, longest)
            if is_interrupted(lambda program=program: device.runtime.pipeline(program), moment):
                found.append(is_right(device, next(numbers)))
    return found
