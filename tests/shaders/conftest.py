"""Each way from Slang to a device: SPIR-V as it is, and SPIR-V and WGSL through naga."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime import Runtime, open_runtime

ROUTES = ["slangpy", "wgpu-spirv", "wgpu-wgsl"]


@pytest.fixture(scope="module", params=ROUTES)
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """Each way to a device in turn; what cannot be opened here is skipped with its reason."""
    name, _, code_format = request.param.partition("-")
    try:
        opened = open_runtime(name, limits={"formats": (code_format,)} if code_format else {})
    except DeviceError as failure:
        pytest.skip(f"{name}: {failure.message}")
    yield opened
    opened.close()
