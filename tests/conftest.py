"""One opened device a runtime and test module; what cannot be opened here is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("SHADERAD_VERIFY", "1")  # Read when shaderad is imported.

import shaderad as sad


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def device(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """Each runtime's device in turn, entered."""
    try:
        opened = sad.open_device(request.param)
    except sad.DeviceError as failure:
        pytest.skip(f"{request.param}: {failure.message}")
    with opened:
        yield opened
    opened.close()
