"""Numbered random programs: the same seed gives the same programs, in any process."""

from __future__ import annotations

import functools
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.random_programs.programs import Program, programs

CHUNK = 12
"""Programs that one run of hypothesis makes. Later ones are variations of earlier ones, and the
first is always the simplest of all, so chunks are small."""
_STRIDE = 1_000_000


def _settings(phases: tuple[Phase, ...]) -> settings:
    return settings(
        max_examples=CHUNK,
        phases=phases,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


@functools.lru_cache(maxsize=4)
def chunk(start: int, number: int) -> tuple[Program, ...]:
    """The programs of chunk `number` under seed `start`, each once."""
    found: dict[str, Program] = {}

    @seed(start * _STRIDE + number)
    @_settings((Phase.generate,))
    @given(programs())
    def collect(program: Program) -> None:
        found.setdefault(program.source, program)

    collect()
    return tuple(found.values())[1:]


def shrunk(start: int, number: int, source: str, fails: Callable[[Program], bool]) -> Program:
    """The smallest program found that fails as the one of `source` in that chunk does."""
    failing: list[Program] = []

    @seed(start * _STRIDE + number)
    @_settings((Phase.generate, Phase.shrink))
    @given(programs())
    def check(program: Program) -> None:
        # Up to the failing program everything passes, so that hypothesis makes the same ones.
        if (failing or program.source == source) and fails(program):
            failing.append(program)
            raise AssertionError

    try:
        check()
    except AssertionError:
        return min(failing, key=lambda p: len(p.source))
    raise LookupError("the program did not fail again")
