"""What is slangpy's own: memory that is not there, and text that its compiler is kept from."""

from __future__ import annotations

import pytest

from shaderad.compiler.artifact import Code
from shaderad.diagnostics import CompileError, DeviceError
from shaderad.runtime import Route, open_runtime
from tests.runtime.conftest import opened_or_skip
from tests.runtime.programs import SCALE_AND_ADD, UNDEFINED_NAME


def test_an_allocation_without_room_names_the_bytes() -> None:
    device = opened_or_skip("slangpy")
    boundless = open_runtime(native=device.native, limits={"binding_bytes_limit": 1 << 60})
    with pytest.raises(DeviceError, match=str(1 << 50)) as caught:
        boundless.allocate(1 << 50)
    assert caught.value.code == "SR0605"
    device.close()


def test_the_text_is_compiled_by_slangpy_itself() -> None:
    device = opened_or_skip("slangpy")
    device.pipeline(SCALE_AND_ADD)
    assert [route.target for route in device.routes()] == ["slang"]
    device.close()


def test_what_only_slangpy_refuses_is_a_compile_error(monkeypatch: pytest.MonkeyPatch) -> None:
    device = opened_or_skip("slangpy")
    passed = Code("spirv", b""), Route("broken", "slang", "not looked at")
    monkeypatch.setattr("shaderad.runtime.slangpy_runtime.check_compiles", lambda *_: passed)
    with pytest.raises(CompileError, match="missing") as caught:
        device.pipeline(UNDEFINED_NAME)
    assert caught.value.code == "SR0617"
    device.close()
