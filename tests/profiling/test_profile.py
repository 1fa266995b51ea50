"""`sad.profile` and `sad.profiled`: every dispatch once, with its time, bytes and operations."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.profiling.operations import OperationCounter
from tests.devices import entered

COUNT = 5000


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], steps: int, out: sad.Out[float]):
    value = x[i]
    for _ in range(steps):
        value = value * x[i] + 1.0
    out[i] = value


@sad.kernel
def cubed(i: sad.Index, x: sad.In[float], out: sad.Out[float]):
    out[i] = x[i] * x[i] * x[i]


@sad.kernel
def halved(i: sad.Index, x: sad.In[float], out: sad.Out[int]):
    value, count = x[i], 0
    while value < 1.0:
        value *= 2.0
        count += 1
    out[i] = count


@sad.kernel
def gathered(i: sad.Index, x: sad.In[float], places: sad.In[int], out: sad.Out[float]):
    out[i] = 2.0 * x[places[i]]


def row(profile: Any, name: str, kind: str = "kernel") -> Any:
    """The row of a kernel, of which there is one."""
    (found,) = [one for one in profile.rows if (one.name, one.kind) == (name, kind)]
    return found


def given(count: int = COUNT) -> sad.Array:
    return sad.array(np.linspace(0.1, 0.9, count, dtype=np.float32))


def test_a_kernel_has_its_dispatches_bytes_and_operations(device: sad.Device) -> None:
    x = given()
    with sad.profile() as profile:
        for _ in range(3):
            powers(x, 10)
    found = row(profile, "powers")
    assert found.count == 3
    assert found.bytes == 3 * 2 * 4 * COUNT
    assert found.operations == 3 * 2 * 10 * COUNT
    assert profile.compile_ms > 0
    if device.runtime.new_clock() is not None:
        assert 0 < found.device_ms < 1e4
        assert found.percent_of_copy > 0
        assert found.percent_of_fma > 0
    lines = str(profile).splitlines()
    assert lines[1].split()[:3] == ["powers", "kernel", "3"]
    assert lines[-1].startswith("host: ")


def test_derivatives_have_rows_of_their_own(device: sad.Device) -> None:
    x = given()
    ones = sad.array(np.ones(COUNT, np.float32))
    with sad.profile() as profile:
        _, pullback = sad.vjp(cubed, x)
        (gradient,) = pullback(ones)
        sad.jvp(cubed, (x,), (ones,))
    np.testing.assert_array_equal(gradient.numpy(), pullback(ones)[0].numpy())
    assert row(profile, "cubed", "pullback").count == 1
    assert row(profile, "cubed", "pushforward").count == 1
    primal, pulled = row(profile, "cubed"), row(profile, "cubed", "pullback")
    assert pulled.bytes == 3 * 4 * COUNT
    assert pulled.operations / pulled.count > primal.operations / primal.count


def test_steps_of_graphs_are_array_functions_and_keep_their_results(device: sad.Device) -> None:
    graph = sad.graph(lambda x, y: sad.sum(x @ y, axis=1))
    x, y = (sad.array(np.random.default_rng(k).normal(size=(64, 64))) for k in range(2))
    before = graph(x, y).numpy()
    with sad.profile() as profile:
        during = graph(x, y)
    np.testing.assert_array_equal(during.numpy(), before)
    assert {one.kind for one in profile.rows} == {"array function"}
    assert sum(one.operations or 0 for one in profile.rows) >= 2 * 64**3
    assert device.runtime.observer is None


def test_operations_that_depend_on_data_are_not_counted(device: sad.Device) -> None:
    with sad.profile() as profile:
        halved(given())
    found = row(profile, "halved")
    assert found.operations is None
    assert found.percent_of_fma is None
    assert found.bytes == 8 * COUNT


def test_profiles_may_be_inside_of_each_other(device: sad.Device) -> None:
    x = given()
    with sad.profile() as outer:
        powers(x, 1)
        with sad.profile() as inner:
            powers(x, 2)
        powers(x, 3)
    assert row(inner, "powers").count == 1
    assert row(outer, "powers").count == 3
    assert row(outer, "powers").operations == 2 * (1 + 2 + 3) * COUNT


def test_many_dispatches_have_times(device: sad.Device) -> None:
    x = given(100)
    with sad.profile() as profile:
        for _ in range(2100):
            powers(x, 1)
    found = row(profile, "powers")
    assert found.count == 2100
    if device.runtime.new_clock() is not None:
        assert 0 < found.device_ms < 1e5


def test_a_kernel_that_runs_by_windows_counts_each_part(device: sad.Device) -> None:
    runtime = device.capabilities.runtime
    if runtime != "wgpu":
        pytest.skip("slangpy binds buffers whole")
    with entered("wgpu", {"binding_bytes_limit": 1 << 16}) as small:
        x = given(40_000)
        with sad.profile(small) as profile:
            powers(x, 1)
        found = row(profile, "powers")
        assert found.count > 1
        assert found.operations == 2 * 40_000


def test_only_the_named_device_is_recorded(device: sad.Device) -> None:
    x = given()
    with sad.open_device(device.capabilities.runtime) as other:
        y = sad.array(x.numpy(), device=other)
        with sad.profile(device) as profile:
            powers(y, 1)
        assert profile.rows == ()
        with sad.profile() as profile:
            powers(y, 1)
        assert row(profile, "powers").count == 1
    other.close()


def test_a_timeline_has_an_event_per_dispatch(device: sad.Device, tmp_path: Path) -> None:
    if device.runtime.new_clock() is None:
        pytest.skip("this device has no timestamps")
    x = given()
    with sad.profile() as profile:
        powers(x, 1)
        powers(x, 2)
    profile.chrome_trace(tmp_path / "trace.json")
    first, second = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert first["name"] == second["name"] == "powers"
    assert first["ts"] == 0
    assert first["ts"] + first["dur"] <= second["ts"]


def test_without_timestamps_counts_remain(
    device: sad.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device.runtime, "new_clock", lambda: None)
    monkeypatch.setattr(device, "_kept", {})
    with sad.profile() as profile:
        powers(given(), 1)
    found = row(profile, "powers")
    assert found.device_ms is None
    assert found.percent_of_copy is None
    assert found.count == 1
    assert "no times: this device has no timestamp queries" in str(profile)
    with pytest.raises(sad.DeviceError, match="SR0653"):
        profile.chrome_trace(tmp_path / "trace.json")


def test_a_profiled_function_prints_each_call(
    device: sad.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    @sad.profiled
    def twice(x: Any) -> Any:
        """Twice."""
        powers(x, 1)
        return powers(x, 1)

    x = given()
    result = twice(x)
    np.testing.assert_array_equal(result.numpy(), powers(x, 1).numpy())
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["powers", "kernel", "2"]
    assert twice.__doc__ == "Twice."


def test_a_failure_inside_ends_the_profile(device: sad.Device) -> None:
    x = given()
    profile = sad.profile()
    with pytest.raises(sad.ShapeError), profile:
        powers(x, 1, out=powers)
    assert device.runtime.observer is None
    with sad.profile() as profile:
        powers(x, 1)
    assert row(profile, "powers").count == 1
    assert device.runtime.observer is None


def test_dispatches_of_others_after_the_end_do_not_count(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, wait = given(), device.runtime.wait

    def wait_while_another_thread_runs() -> None:
        wait()
        monkeypatch.undo()
        powers(x, 1)

    with sad.profile() as outer, sad.profile() as inner:
        powers(x, 1)
        monkeypatch.setattr(device.runtime, "wait", wait_while_another_thread_runs)
    assert row(inner, "powers").count == 1
    assert row(outer, "powers").count == 2


def test_the_errors_of_a_closed_device_hide_no_others(device: sad.Device) -> None:
    runtime = device.capabilities.runtime
    other = sad.open_device(runtime)
    with pytest.raises(sad.DeviceError, match="SR0610"), sad.profile(other):
        other.close()

    def fail() -> None:
        other = sad.open_device(runtime)
        with sad.profile(other):
            other.close()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()


def test_a_profile_is_data_after_its_end(device: sad.Device, tmp_path: Path) -> None:
    profile = sad.profile()
    with profile:
        powers(given(), 1)
        assert "has not ended" in str(profile)
        with pytest.raises(sad.DeviceError, match="SR0654"):
            profile.chrome_trace(tmp_path / "trace.json")
    copied = pickle.loads(pickle.dumps(profile))
    assert copied.rows == profile.rows
    assert str(copied) == str(profile)


def test_equal_dispatches_are_counted_once(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    count = OperationCounter.count

    def counted(self: OperationCounter, numbers: Any) -> float:
        counts.append(1)
        return count(self, numbers)

    monkeypatch.setattr(OperationCounter, "count", counted)
    x, places = given(), sad.array(np.zeros(COUNT, np.int32))
    with sad.profile() as profile:
        for _ in range(4):
            gathered(x, places)
        gathered(x, places, dim=COUNT - 1)
    assert row(profile, "gathered").count == 5
    assert len(counts) == 2


def test_functions_whose_body_runs_later_are_refused(device: sad.Device) -> None:
    def parts() -> Any:
        yield 1

    async def later() -> None: ...

    with pytest.raises(sad.CallError, match="`parts`: it is a generator function"):
        sad.profiled(parts)
    with pytest.raises(sad.CallError, match="`later`: it is a coroutine function"):
        sad.profiled(later)
    with pytest.raises(sad.CallError, match="SR0295"):
        sad.profiled(5)  # type: ignore[arg-type]


def test_bad_arguments_are_named(device: sad.Device) -> None:
    with pytest.raises(sad.DeviceError, match="SR0651"):
        sad.profile("wgpu")  # type: ignore[arg-type]
    with sad.profile() as profile:
        pass
    assert profile.rows == ()
    assert str(profile).startswith("no kernel ran on this device")
    with pytest.raises(sad.DeviceError, match="SR0652"), profile:
        pass
