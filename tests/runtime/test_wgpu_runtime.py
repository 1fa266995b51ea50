"""What is wgpu's own: which way a program goes, what a lost device and a refused command say."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from shaderad.diagnostics import DeviceError
from shaderad.runtime import Runtime, idle_buffers, open_runtime
from tests import swiftshader
from tests.runtime import programs
from tests.runtime.conftest import opened_or_skip
from tests.runtime.programs import SCALE_AND_ADD, scale_and_add_words

WORDS = scale_and_add_words(1, 1.0, 1.0)


@pytest.fixture
def wgpu_runtime() -> Iterator[Runtime]:
    opened = opened_or_skip("wgpu")
    yield opened
    opened.close()


def test_what_naga_cannot_read_as_spirv_goes_as_wgsl_and_says_why(wgpu_runtime: Runtime) -> None:
    total = wgpu_runtime.allocate(4)
    pipeline = wgpu_runtime.pipeline(programs.ADD_ONE_BY_COMPARE_EXCHANGE)
    (route,) = wgpu_runtime.routes()
    assert route.target == "wgsl"
    assert route.reason.startswith("spirv: ")
    wgpu_runtime.dispatch(pipeline, {0: total}, b"", (4, 1, 1))
    assert np.frombuffer(wgpu_runtime.read([(total, 0, 4)])[0], np.float32)[0] == 256


def test_what_naga_reads_goes_as_spirv(wgpu_runtime: Runtime) -> None:
    wgpu_runtime.pipeline(SCALE_AND_ADD)
    assert [route.target for route in wgpu_runtime.routes()] == ["spirv"]


def test_the_exchange_loop_adds_without_float_atomics(wgpu_runtime: Runtime) -> None:
    total = wgpu_runtime.allocate(4)
    pipeline = wgpu_runtime.pipeline(programs.ADD_ONE_BY_EXCHANGE)
    wgpu_runtime.dispatch(pipeline, {0: total}, b"", (16, 1, 1))
    assert np.frombuffer(wgpu_runtime.read([(total, 0, 4)])[0], np.float32)[0] == 1024


def test_a_lost_device_says_so_on_this_and_every_later_call(wgpu_runtime: Runtime) -> None:
    buffers = {slot: wgpu_runtime.allocate(4) for slot in (1, 2, 3)}
    wgpu_runtime.dispatch(wgpu_runtime.pipeline(SCALE_AND_ADD), buffers, WORDS, (1, 1, 1))
    wgpu_runtime.native.destroy()
    for call in (
        lambda: wgpu_runtime.read([(buffers[3], 0, 4)]),
        lambda: wgpu_runtime.write(buffers[1], 0, bytes(4)),
        wgpu_runtime.submit,
        wgpu_runtime.wait,
    ):
        with pytest.raises(DeviceError) as caught:
            call()
        assert caught.value.code == "SR0604"


def test_a_refused_command_is_a_device_error_and_the_device_goes_on(wgpu_runtime: Runtime) -> None:
    both = wgpu_runtime.allocate(4)
    pipeline = wgpu_runtime.pipeline(SCALE_AND_ADD)
    wgpu_runtime.dispatch(pipeline, {1: both, 2: both, 3: both}, WORDS, (1, 1, 1))
    with pytest.raises(DeviceError, match="conflicting usages") as caught:
        wgpu_runtime.submit()
    assert caught.value.code == "SR0609"
    assert caught.value.__cause__ is None
    assert bytes(wgpu_runtime.read([(both, 0, 4)])[0]) == bytes(4)


def test_dropping_a_buffer_frees_the_memory_that_bind_groups_held(
    wgpu_runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_buffers, "SPARE_BYTES", 1 << 19)
    wgpu_runtime.pool = idle_buffers.BufferPool()
    pipeline = wgpu_runtime.pipeline(SCALE_AND_ADD)
    x = wgpu_runtime.allocate(4)

    def native_buffer_count() -> int:
        from wgpu import diagnostics

        return diagnostics.wgpu_native_counts.get_dict()["Buffer"]["count"]

    before = native_buffer_count()
    for _ in range(50):
        buffers = {1: x, 2: x, 3: wgpu_runtime.allocate(1 << 17)}
        wgpu_runtime.dispatch(pipeline, buffers, WORDS, (1, 1, 1))
        wgpu_runtime.wait()
    buffers.clear()
    gc.collect()
    wgpu_runtime.submit()
    wgpu_runtime.allocate(4)
    wgpu_runtime.wait()
    assert native_buffer_count() - before < 10


def test_a_small_buffer_serves_again_unless_somebody_holds_it(wgpu_runtime: Runtime) -> None:
    first = wgpu_runtime.allocate(48, zeroed=False)
    native = first.native
    del first
    second = wgpu_runtime.allocate(48, zeroed=False)
    assert second.native is native
    assert second.shared() is native
    del second
    assert wgpu_runtime.allocate(48, zeroed=False).native is not native


def test_a_buffer_that_serves_again_is_zeroed_before_it_is_written(wgpu_runtime: Runtime) -> None:
    first = wgpu_runtime.allocate(52)
    wgpu_runtime.write(first, 0, bytes([1]) * 52)
    native = first.native
    del first
    again = wgpu_runtime.allocate(52)
    assert again.native is native
    wgpu_runtime.write(again, 4, bytes([2]) * 4)
    assert bytes(wgpu_runtime.read([(again, 0, 52)])[0]) == bytes(4) + bytes([2]) * 4 + bytes(44)


def test_a_buffer_in_a_cycle_is_not_ended_by_the_garbage_collector(wgpu_runtime: Runtime) -> None:
    pipeline = wgpu_runtime.pipeline(SCALE_AND_ADD)
    x = wgpu_runtime.allocate(4)
    cycle: list[object] = [wgpu_runtime.allocate(4, zeroed=False)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    again = wgpu_runtime.allocate(4, zeroed=False)
    wgpu_runtime.dispatch(pipeline, {1: x, 2: x, 3: again}, WORDS, (1, 1, 1))
    wgpu_runtime.wait()


def test_a_device_that_cannot_be_made_is_a_device_error(wgpu_runtime: Runtime) -> None:
    too_many = wgpu_runtime.capabilities.storage_buffer_limit + 1_000_000
    with pytest.raises(DeviceError) as caught:
        open_runtime("wgpu", limits={"storage_buffer_limit": too_many})
    assert caught.value.code == "SR0603"


@pytest.mark.swiftshader
@swiftshader.needed
def test_a_driver_without_float_atomics_gives_the_same_results() -> None:
    swiftshader.check_passes((Path(__file__).with_name("test_agreement.py"), Path(__file__)))
