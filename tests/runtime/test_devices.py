"""Opening devices by name, by environment, from existing ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime import devices, open_runtime


def test_every_listed_device_can_be_opened_by_its_position() -> None:
    for info in devices():
        opened = open_runtime(info.runtime, adapter=info.index)
        assert opened.capabilities.adapter == info.adapter
        assert opened.capabilities.api == info.api
        opened.close()


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(DeviceError, match="opengl") as caught:
        open_runtime("opengl")
    assert caught.value.code == "SR0601"


def test_the_adapter_may_follow_the_name(runtime_name: str) -> None:
    with pytest.raises(DeviceError, match="voodoo") as caught:
        open_runtime(f"{runtime_name}:voodoo")
    assert caught.value.code == "SR0602"


def test_the_environment_chooses_where_the_caller_does_not(
    runtime_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHADERAD_DEVICE", f"{runtime_name}:0")
    opened = open_runtime()
    assert opened.capabilities.runtime == runtime_name
    opened.close()


def test_something_that_is_no_device_is_not_wrapped() -> None:
    with pytest.raises(DeviceError, match="`dict`") as caught:
        open_runtime(native={})
    assert caught.value.code == "SR0616"


def test_an_unknown_limit_is_refused(runtime_name: str) -> None:
    with pytest.raises(DeviceError, match="storage_buffer_limit") as caught:
        open_runtime(runtime_name, limits={"buffers": 8})
    assert caught.value.code == "SR0613"


def test_importing_the_stage_loads_neither_library() -> None:
    program = "import sys, shaderad.runtime; print({'wgpu', 'slangpy'} & set(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "set()"
