"""One opened device a runtime and test module; what cannot be opened here is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("SHADERAD_VERIFY", "1")  # Read when shaderad is imported.

import shaderad as sad
from tests.devices import entered


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def device(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    """Each runtime's device in turn, entered."""
    with entered(request.param) as opened:
        yield opened
