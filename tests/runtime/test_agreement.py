"""What the protocol promises, on every runtime that the machine has, with the same results."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from shaderad.diagnostics import CompileError, DeviceError
from shaderad.runtime import DeviceBuffer, Runtime, base, fill, open_runtime
from tests.runtime import programs
from tests.runtime.programs import SCALE_AND_ADD, scale_and_add_words

COUNT = 1000
GROUPS = (16, 1, 1)


def floats(runtime: Runtime, content: NDArray[np.float32]) -> DeviceBuffer:
    buffer = runtime.allocate(content.nbytes)
    runtime.write(buffer, 0, memoryview(content))
    return buffer


def values(runtime: Runtime, buffer: DeviceBuffer, dtype: type = np.float32) -> NDArray[np.float32]:
    return np.frombuffer(runtime.read([(buffer, 0, buffer.byte_count)])[0], dtype)


def test_words_and_several_buffers_reach_the_kernel(runtime: Runtime) -> None:
    x = np.arange(COUNT, dtype=np.float32)
    y = np.ones(COUNT, np.float32)
    buffers = {
        1: floats(runtime, x),
        2: floats(runtime, y),
        3: runtime.allocate(4 * COUNT),
    }
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    runtime.dispatch(pipeline, buffers, scale_and_add_words(COUNT - 1, 2.0, 0.5), GROUPS)
    expected = 2.0 * x + 1.5
    expected[-1] = 0.0
    np.testing.assert_array_equal(values(runtime, buffers[3]), expected)


def test_atomic_adds_of_many_threads_to_one_address_all_count(runtime: Runtime) -> None:
    total = runtime.allocate(4)
    program = programs.ADD_ONE_BY[runtime.capabilities.atomics]
    runtime.dispatch(runtime.pipeline(program), {0: total}, b"", (64, 1, 1))
    assert values(runtime, total)[0] == 64 * 64


def test_groups_count_in_two_dimensions(runtime: Runtime) -> None:
    number = runtime.allocate(4 * 3 * 7)
    words = np.uint32(7).tobytes()
    runtime.dispatch(runtime.pipeline(programs.GROUP_NUMBERS), {1: number}, words, (7, 3, 1))
    expected = 1000 * np.arange(3)[:, None] + np.arange(7)
    np.testing.assert_array_equal(values(runtime, number, np.uint32).reshape(3, 7), expected)


def test_more_groups_than_the_device_takes_are_refused(runtime: Runtime) -> None:
    number = runtime.allocate(4)
    limit = runtime.capabilities.workgroup_count_limit
    pipeline = runtime.pipeline(programs.GROUP_NUMBERS)
    with pytest.raises(DeviceError) as caught:
        runtime.dispatch(pipeline, {1: number}, bytes(4), (1, limit + 1, 1))
    assert caught.value.code == "SR0611"


def test_a_dispatch_of_no_groups_does_nothing(runtime: Runtime) -> None:
    number = runtime.allocate(4)
    runtime.write(number, 0, np.uint32(5).tobytes())
    pipeline = runtime.pipeline(programs.GROUP_NUMBERS)
    runtime.dispatch(pipeline, {1: number}, bytes(4), (3, 0, 1))
    assert values(runtime, number, np.uint32)[0] == 5


def test_arrays_of_length_zero_can_be_bound_and_read(runtime: Runtime) -> None:
    empty = [runtime.allocate(0) for _ in range(3)]
    buffers = dict(zip((1, 2, 3), empty, strict=True))
    runtime.write(empty[0], 0, b"")
    runtime.zero(empty[2])
    runtime.dispatch(
        runtime.pipeline(SCALE_AND_ADD), buffers, scale_and_add_words(0, 1.0, 1.0), (1, 1, 1)
    )
    assert [bytes(part) for part in runtime.read([(empty[2], 0, 0), (empty[0], 0, 0)])] == [
        b"",
        b"",
    ]


@pytest.mark.parametrize("dispatch_count", [100, 3000], ids=["one page of words", "several pages"])
def test_each_of_many_dispatches_sees_its_own_words(runtime: Runtime, dispatch_count: int) -> None:
    zeros = np.zeros(1, np.float32)
    buffers = {1: floats(runtime, zeros), 2: floats(runtime, zeros), 3: runtime.allocate(4)}
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    for k in range(dispatch_count):
        runtime.dispatch(pipeline, buffers, scale_and_add_words(1, 0.0, float(k)), (1, 1, 1))
    runtime.submit()
    assert values(runtime, buffers[3])[0] == sum(range(dispatch_count))


def test_many_dispatches_wait_only_for_a_device_that_works(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.wait()
    zeros = np.zeros(1, np.float32)
    buffers = {1: floats(runtime, zeros), 2: floats(runtime, zeros), 3: runtime.allocate(4)}
    pipeline = runtime.pipeline(SCALE_AND_ADD)
    words = scale_and_add_words(1, 0.0, 1.0)
    recorded, counts = 0, list[int]()
    submit = runtime.submit_recorded
    monkeypatch.setattr(runtime, "submit_recorded", lambda: (counts.append(recorded), submit()))
    for is_idle in (True, False):
        monkeypatch.setattr(runtime, "is_idle", lambda is_idle=is_idle: is_idle)
        runtime.submit()
        recorded, counts[:] = 0, []
        while recorded < base.WAITING_LIMIT:
            runtime.dispatch(pipeline, buffers, words, (1, 1, 1))
            recorded += 1
            runtime.together(runtime.recorded, 1)
        step = base.DISPATCHES_PER_SUBMISSION if is_idle else base.WAITING_LIMIT
        assert counts == [*range(step, base.WAITING_LIMIT + 1, step)]
    assert values(runtime, buffers[3])[0] == 2 * base.WAITING_LIMIT


def test_a_device_is_idle_once_it_has_finished_what_was_submitted(runtime: Runtime) -> None:
    count = 1 << 20
    x = floats(runtime, np.ones(count, np.float32))
    y, z = floats(runtime, np.ones(count, np.float32)), runtime.allocate(4 * count)
    pipeline, words = runtime.pipeline(SCALE_AND_ADD), scale_and_add_words(count, 1.0, 0.0)
    runtime.wait()
    assert runtime.is_idle()
    for _ in range(50):
        runtime.dispatch(pipeline, {1: x, 2: y, 3: z}, words, (4096, 4, 1))
    assert runtime.is_idle()
    runtime.submit()
    assert not runtime.is_idle()
    runtime.wait()
    assert runtime.is_idle()


def test_a_write_is_not_seen_by_a_dispatch_recorded_before_it(runtime: Runtime) -> None:
    ones = np.ones(COUNT, np.float32)
    buffers = {
        1: floats(runtime, ones),
        2: floats(runtime, 0 * ones),
        3: runtime.allocate(4 * COUNT),
    }
    pipeline, words = runtime.pipeline(SCALE_AND_ADD), scale_and_add_words(COUNT, 1.0, 0.0)
    runtime.dispatch(pipeline, buffers, words, GROUPS)
    runtime.write(buffers[1], 0, memoryview(10 * ones))
    runtime.dispatch(pipeline, buffers, words, GROUPS)
    np.testing.assert_array_equal(values(runtime, buffers[3]), 11 * ones)


def test_zeroing_and_copying_keep_their_place_among_dispatches(runtime: Runtime) -> None:
    ones = np.ones(COUNT, np.float32)
    x, y, z = floats(runtime, ones), floats(runtime, 0 * ones), runtime.allocate(4 * COUNT)
    kept = runtime.allocate(4 * COUNT)
    pipeline, words = runtime.pipeline(SCALE_AND_ADD), scale_and_add_words(COUNT, 1.0, 0.0)
    runtime.dispatch(pipeline, {1: x, 2: y, 3: z}, words, GROUPS)
    runtime.copy(z, 0, kept, 0, 4 * COUNT)
    runtime.zero(z, 8, 12)
    runtime.dispatch(pipeline, {1: x, 2: y, 3: z}, words, GROUPS)
    expected = 2 * ones
    expected[2:5] = 1
    np.testing.assert_array_equal(values(runtime, z), expected)
    np.testing.assert_array_equal(values(runtime, kept), ones)


@pytest.mark.parametrize("group_limit", [65535, 2])
def test_filling_reaches_exactly_the_asked_words(runtime: Runtime, group_limit: int) -> None:
    limits = {"workgroup_count_limit": group_limit}
    small = open_runtime(native=runtime.native, limits=limits)
    buffer = small.allocate(4 * COUNT)
    infinity = int(np.float32(np.inf).view(np.uint32))
    fill(small, buffer, infinity)
    fill(small, buffer, 0, 40, 4)
    fill(small, buffer, 7, 4, 8)
    expected = np.full(COUNT, infinity, np.uint32)
    expected[[1, 2, 10]] = 7, 7, 0
    np.testing.assert_array_equal(values(small, buffer, np.uint32), expected)
    small.close()


def test_one_read_returns_several_stretches_in_order(runtime: Runtime) -> None:
    first = floats(runtime, np.arange(100, dtype=np.float32))
    second = floats(runtime, np.arange(1000, 1100, dtype=np.float32))
    parts = runtime.read([(first, 40, 8), (second, 0, 4), (first, 0, 0), (second, 396, 4)])
    found = [np.frombuffer(part, np.float32).tolist() for part in parts]
    assert found == [[10.0, 11.0], [1000.0], [], [1099.0]]


def test_large_arrays_go_there_and_back(runtime: Runtime) -> None:
    content = np.arange(1 << 20, dtype=np.float32)
    np.testing.assert_array_equal(values(runtime, floats(runtime, content)), content)


def test_bytes_that_end_within_a_word_go_there_and_back(runtime: Runtime) -> None:
    content = np.arange(5, dtype=np.float16)
    buffer = runtime.allocate(content.nbytes)
    runtime.write(buffer, 0, content.tobytes())
    np.testing.assert_array_equal(values(runtime, buffer, np.float16), content)


def test_new_memory_is_zero(runtime: Runtime) -> None:
    used = floats(runtime, np.full(COUNT, 7.0, np.float32))
    runtime.wait()
    del used
    gc.collect()
    np.testing.assert_array_equal(values(runtime, runtime.allocate(4 * COUNT)), np.zeros(COUNT))


def test_a_buffer_dropped_while_recorded_still_serves(runtime: Runtime) -> None:
    ones = np.ones(COUNT, np.float32)
    buffers = {
        1: floats(runtime, 3 * ones),
        2: floats(runtime, ones),
        3: runtime.allocate(4 * COUNT),
    }
    words = scale_and_add_words(COUNT, 1.0, 0.0)
    runtime.dispatch(runtime.pipeline(SCALE_AND_ADD), buffers, words, GROUPS)
    result = buffers.pop(3)
    buffers.clear()
    gc.collect()
    reused = [floats(runtime, 100 * ones) for _ in range(16)]
    np.testing.assert_array_equal(values(runtime, result), 4 * ones)
    assert len(reused) == 16


def test_threads_may_share_a_runtime(runtime: Runtime) -> None:
    found: dict[int, bool] = {}

    def work(number: int) -> None:
        x = np.full(COUNT, float(number), np.float32)
        for _ in range(20):
            buffers = {
                1: floats(runtime, x),
                2: floats(runtime, x),
                3: runtime.allocate(4 * COUNT),
            }
            words = scale_and_add_words(COUNT, 1.0, 0.0)
            runtime.dispatch(runtime.pipeline(SCALE_AND_ADD), buffers, words, GROUPS)
            if not np.array_equal(values(runtime, buffers[3]), 2 * x):
                return
        found[number] = True

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_a_pipeline_is_made_once_and_its_route_is_told(runtime: Runtime) -> None:
    assert runtime.pipeline(SCALE_AND_ADD) is runtime.pipeline(SCALE_AND_ADD)
    routes = [route for route in runtime.routes() if route.program == "scale_and_add"]
    assert len(routes) == 1
    assert routes[0].reason


def test_text_that_slang_refuses_is_a_compile_error(runtime: Runtime) -> None:
    with pytest.raises(CompileError, match="missing"):
        runtime.pipeline(programs.UNDEFINED_NAME)


def test_a_missing_buffer_is_named(runtime: Runtime) -> None:
    with pytest.raises(DeviceError, match="slot 2") as caught:
        runtime.dispatch(
            runtime.pipeline(SCALE_AND_ADD),
            {1: runtime.allocate(4), 3: runtime.allocate(4)},
            scale_and_add_words(1, 1.0, 1.0),
            (1, 1, 1),
        )
    assert caught.value.code == "SR0614"


def test_words_of_the_wrong_length_are_refused(runtime: Runtime) -> None:
    buffers = {slot: runtime.allocate(4) for slot in (1, 2, 3)}
    with pytest.raises(DeviceError, match="12 bytes") as caught:
        runtime.dispatch(runtime.pipeline(SCALE_AND_ADD), buffers, bytes(8), (1, 1, 1))
    assert caught.value.code == "SR0615"


@pytest.mark.parametrize(("offset", "byte_count"), [(0, 20), (-4, 4), (2, 4), (4, 6)])
def test_bytes_outside_a_buffer_or_off_its_words_are_refused(
    runtime: Runtime, offset: int, byte_count: int
) -> None:
    buffer = runtime.allocate(16)
    with pytest.raises(DeviceError) as caught:
        runtime.read([(buffer, offset, byte_count)])
    assert caught.value.code == "SR0618"


def test_wave_sums_agree_with_the_lanes(runtime: Runtime) -> None:
    if "subgroups" not in runtime.capabilities.features:
        pytest.skip("no subgroups here")
    lanes = runtime.allocate(4 * 64)
    runtime.dispatch(runtime.pipeline(programs.WAVE_SUM), {0: lanes}, b"", (1, 1, 1))
    found = values(runtime, lanes, np.uint32)
    assert np.all(found == found[0])
    assert 64 % found[0] == 0


def test_forced_limits_are_kept(runtime_name: str) -> None:
    limits = {"storage_buffer_limit": 2, "buffer_bytes_limit": 4 << 20, "atomics": "exchange"}
    small = open_runtime(runtime_name, limits=limits)
    refused: dict[str, str] = {}
    for what, call in {
        "buffers": lambda: small.pipeline(SCALE_AND_ADD),
        "bytes": lambda: small.allocate(5 << 20),
        "feature": lambda: small.pipeline(programs.ADD_ONE_ATOMICALLY),
    }.items():
        with pytest.raises(DeviceError) as caught:
            call()
        refused[what] = caught.value.code
    assert refused == {"buffers": "SR0607", "bytes": "SR0606", "feature": "SR0608"}
    assert small.capabilities.atomics == "exchange"
    small.close()


def test_a_closed_runtime_says_so(runtime_name: str) -> None:
    closed = open_runtime(runtime_name)
    closed.close()
    closed.close()
    with pytest.raises(DeviceError) as caught:
        closed.allocate(16)
    assert caught.value.code == "SR0610"


def test_a_native_device_is_used_and_left_open(runtime_name: str) -> None:
    owner = open_runtime(runtime_name)
    borrowed = open_runtime(native=owner.native)
    total = borrowed.allocate(4)
    program = programs.ADD_ONE_BY[borrowed.capabilities.atomics]
    borrowed.dispatch(borrowed.pipeline(program), {0: total}, b"", (1, 1, 1))
    wrapped = owner.wrap(total.native)
    borrowed.submit()
    assert np.frombuffer(owner.read([(wrapped, 0, 4)])[0], np.float32)[0] == 64
    borrowed.close()
    owner.wait()
    owner.close()


def test_a_cache_folder_that_cannot_be_made_costs_only_time(runtime_name: str) -> None:
    program = (
        "import numpy\n"
        "from shaderad.runtime import fill, open_runtime\n"
        f"opened = open_runtime({runtime_name!r})\n"
        "buffer = opened.allocate(8)\n"
        "fill(opened, buffer, 5)\n"
        "print(bytes(opened.read([(buffer, 0, 8)])[0]) == bytes([5, 0, 0, 0, 5, 0, 0, 0]))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SHADERAD_CACHE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.stdout.strip() == "True", finished.stderr
