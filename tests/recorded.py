"""What a runtime records, seen from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shaderad.execute.commands import Dispatch


def on_each_dispatch(
    runtime: Any, patch: pytest.MonkeyPatch, note: Callable[[Any], object]
) -> None:
    """Calls ``note(pipeline)`` before each dispatch is recorded, alone or in a run."""
    dispatch, run = runtime.record_dispatch, runtime.record_run

    def noted(pipeline: Any, *rest: Any) -> None:
        note(pipeline)
        dispatch(pipeline, *rest)

    def noted_run(commands: Any, frame: Any) -> None:
        for command in commands.commands:
            if isinstance(command, Dispatch):
                note(command.pipeline)
        run(commands, frame)

    patch.setattr(runtime, "record_dispatch", noted)
    patch.setattr(runtime, "record_run", noted_run)
