"""One opened device a runtime and module; what cannot be opened here is skipped with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shaderad import diagnostics
from shaderad.runtime import Runtime, open_runtime


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """Each runtime in turn."""
    opened = opened_or_skip(request.param)
    yield opened
    opened.close()


@pytest.fixture(params=["wgpu", "slangpy"])
def runtime_name(request: pytest.FixtureRequest) -> str:
    """The name of each runtime that can be opened here."""
    opened_or_skip(request.param).close()
    return request.param


def opened_or_skip(name: str) -> Runtime:
    try:
        return open_runtime(name)
    except diagnostics.DeviceError as failure:
        pytest.skip(f"{name}: {failure.message}")
