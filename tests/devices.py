"""Devices for fixtures; a runtime that is not here skips what asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

import shaderad as sad


@contextmanager
def entered(
    runtime: str, limits: Mapping[str, Any] | None = None, label: str = ""
) -> Iterator[sad.Device]:
    """A device while it is open and entered.

    Args:
        runtime: Its runtime.
        limits: As `sad.open_device` takes them.
        label: What a skipped test is told was missing; the runtime, if empty.
    """
    try:
        opened = sad.open_device(runtime, limits=limits)
    except sad.DeviceError as failure:
        pytest.skip(f"{label or runtime}: {failure.message}")
    with opened:
        yield opened
    opened.close()
