"""What samples need that are run by several tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import shaderad as sad
from tests.samples.host_folder import prepared
from tests.samples.loading import SAMPLES, module_of

FOLDER = SAMPLES / "mesh_interpolation"
SHORT_NAMES = """
    kernels soup steps position_steps scene fit pictures chart record report outcome main
""".split()
"""In the order of their imports."""


@pytest.fixture(scope="module")
def mesh_sample() -> Iterator[SimpleNamespace]:
    """samples/mesh_interpolation: its scripts import one another by their short names."""
    yield SimpleNamespace(**{name: module_of(FOLDER / f"{name}.py", name) for name in SHORT_NAMES})
    for name in SHORT_NAMES:
        del sys.modules[name]


@pytest.fixture(scope="package")
def wgpu_features() -> frozenset[str]:
    """What wgpu's device can do, in the words of the manifest."""
    try:
        device = sad.open_device("wgpu")
    except sad.DeviceError as failure:
        pytest.skip(f"wgpu: {failure.message}")
    device.close()
    return device.capabilities.features


@pytest.fixture(scope="package")
def hosts_folder(wgpu_features: frozenset[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds and expected numbers, for all tests of samples/hosts."""
    return prepared(tmp_path_factory.mktemp("hosts"))
