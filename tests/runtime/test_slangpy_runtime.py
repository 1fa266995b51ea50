"""What is slangpy's own: memory that is not there, and text that its compiler is kept from."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler.artifact import Code
from shaderad.diagnostics import CompileError, DeviceError
from shaderad.runtime import Route, open_runtime
from tests.launch_shapes import change_rows
from tests.runtime.conftest import opened_or_skip
from tests.runtime.programs import SCALE_AND_ADD, UNDEFINED_NAME


def test_an_allocation_without_room_names_the_bytes() -> None:
    device = opened_or_skip("slangpy")
    limits = {"binding_bytes_limit": 1 << 60, "buffer_bytes_limit": 1 << 60}
    boundless = open_runtime(native=device.native, limits=limits)
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


def test_many_dispatches_of_a_run_are_freed_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_or_skip("slangpy").close()
    monkeypatch.setattr("shaderad.runtime.slangpy_runtime.UNFREED_LIMIT", 100)
    change_rows(monkeypatch, loop_step_cost=-1)
    x = np.arange(64, dtype=np.float32)
    with sad.open_device("slangpy") as device:
        rolled = sad.graph(lambda x: sad.fori_loop(350, lambda _, p: sad.roll(p, 1) + 0.0 * x, x))
        found = rolled(sad.array(x)).numpy()
        assert device.runtime._unfreed_count < 100  # pyright: ignore
    assert np.array_equal(found, np.roll(x, 350 % 64))


def test_a_session_compiles_a_limited_number_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = opened_or_skip("slangpy")
    monkeypatch.setattr("shaderad.runtime.slangpy_runtime.PROGRAMS_PER_SESSION", 2)
    sessions = [runtime._session(SCALE_AND_ADD) for _ in range(5)]  # pyright: ignore
    numbers = [sessions.index(one) for one in sessions]
    assert numbers == [0, 0, 2, 2, 4]
    runtime.close()
