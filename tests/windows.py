"""Every dispatch by windows, as small as they can be, whatever the sizes of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from shaderad.bodies.reaches import FIRST_ITEM
from shaderad.execute import windows
from shaderad.execute.kept_schedules import Scheduled
from shaderad.ir import sizes

THREADS = 3
"""Threads of a window."""


def _prepared(
    self: Scheduled, inputs: Any, key: Any, known: Callable[[], Mapping[str, int]]
) -> Any:
    return self._by_windows().prepared_where(inputs, key, known)


def _longest(self: Any, first: int) -> int:
    is_of_threads = self._windows.first_number == sizes.symbol(FIRST_ITEM)
    return min(first + (THREADS if is_of_threads else self._step), self.item_count)


def run_by_windows(patch: pytest.MonkeyPatch) -> None:
    """Runs all schedules of programs that are lowered here by windows of `THREADS` threads, or of
    the teams of one group; each binds only what the threads access.
    """
    patch.setattr(Scheduled, "prepared", _prepared)
    patch.setattr(windows._Cut, "longest", _longest)
