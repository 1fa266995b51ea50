"""The benchmarks run at tiny sizes, find right gradients, and say what they found."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import shaderad as sad
from tests.samples.loading import ROOT

pytestmark = pytest.mark.gpu

PROGRAMS = {
    "parabola": {"count": 640},
    "training": {"count": 40},
    "smoke": {"size": 8, "count": 3},
    "smoke-gradient": {"size": 8, "count": 3},
    "sweeps": {"size": 8, "count": 10},
    "sweeps-gradient": {"size": 8, "count": 10},
    "lstm": {"width": 3, "count": 5},
    "k-means": {"count": 50, "centre_count": 4},
    "ode": {"size": 12, "count": 2},
}
COUNTS = {"W1": 640, "W2": 640, "W3": 100, "W4": 1000}


def imported(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of the benchmarks, which imports its neighbours."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return import_module(name)


@pytest.mark.parametrize("name", COUNTS)
def test_a_workload_is_compared_on_every_runtime(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        sad.open_device("slangpy").close()
    except sad.DeviceError as failure:
        pytest.skip(f"slangpy, for what is written by hand: {failure.message}")
    compare = imported("compare", monkeypatch)
    lines = {line.name: line for line in compare.compare(name, COUNTS[name], rounds=1)}
    printed = capsys.readouterr().out
    assert lines["by hand"].error < 1e-4
    for runtime in ("slangpy", "wgpu"):
        line = lines.get(f"shaderad {runtime}")
        if line is None:
            assert f"{runtime} not here" in printed
            continue
        contest = compare.CONTESTS[name]
        assert line.error <= contest.error_goal
        assert line.dispatch_count >= 1
        if contest.dispatch_goal is not None:
            assert line.dispatch_count == contest.dispatch_goal
        assert f"{name} {line.text()}" in printed
    assert ("jax" in printed) == (name == "W4")


@pytest.mark.parametrize("name", COUNTS)
def test_other_libraries_find_the_gradients_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries, timing = imported("libraries", monkeypatch), imported("timing", monkeypatch)
    workload = imported("workloads", monkeypatch).WORKLOADS[name](COUNTS[name])
    able, unable = libraries.sides(name, workload.inputs)
    assert {*able, *unable} == {*libraries.LIBRARIES}
    if not able:
        pytest.skip(f"no other library is here: {unable}")
    for side in able.values():
        assert timing.relative_error(side.gradient(), workload.reference) < 1e-4


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_many_steps_gives_what_jax_gives(
    name: str, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax", reason="what the programs are compared with")
    many_steps = imported("many_steps", monkeypatch)
    program = many_steps.PROGRAMS[name](**PROGRAMS[name])
    with device:
        results = sad.graph(program.ours)(*program.resident())
        assert many_steps.error_of(results, many_steps.jax_side(program).results()) < 1e-4


def test_a_program_of_many_steps_gets_a_line(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = device.capabilities.runtime
    imported("many_steps", monkeypatch).compare("ode", runtime, rounds=1, **PROGRAMS["ode"])
    assert re.search(rf"^ode +{runtime} .* ms .* dispatches", capsys.readouterr().out, re.MULTILINE)


def test_a_step_of_twenty_dispatches_is_repeated_by_hand(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = device.capabilities.runtime
    imported("many_dispatches", monkeypatch).compare(runtime, element_count=50, rounds=1)
    printed = capsys.readouterr().out
    assert printed.startswith(runtime)
    assert "20 dispatches a step" in printed


def forget_mesh_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scripts import one another by short names."""
    for name in ("kernels", "steps", "position_steps", "scene", "fit", "soup"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(ROOT / "samples" / "mesh_interpolation")


def test_a_step_of_the_mesh_is_held_against_its_kernels(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_mesh_sample(monkeypatch)
    runtime = device.capabilities.runtime
    imported("mesh_step", monkeypatch).compare(runtime, size=32, rounds=1, repeats=2)
    printed = capsys.readouterr().out
    assert printed.startswith(runtime)
    for line in ("colors", "normals", "index buffer", "pointers"):
        assert f"\n  {line}" in printed
    assert "below" not in printed


def test_calls_and_recorded_steps_are_held_against_their_bars(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_mesh_sample(monkeypatch)
    runtime = device.capabilities.runtime
    calls = imported("calls", monkeypatch)
    monkeypatch.setitem(calls.LIMIT_BY_SIDE, "kernel", {runtime: 0.0})
    calls.compare(rounds=1, runtime=runtime)
    printed = capsys.readouterr().out
    assert re.search(r"^  kernel +[\d.]+ +[\d.]+   above 0 us", printed, re.MULTILINE)
    for name in ("mesh step", "W2 value and gradient", "ode"):
        assert re.search(rf"^  {name} +[\d.]+", printed, re.MULTILINE)
        assert re.search(rf"^  {name} +buffers .* root objects .* uploads", printed, re.MULTILINE)


def test_objects_that_a_step_creates_are_counted(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_mesh_sample(monkeypatch)
    programs = imported("calls_programs", monkeypatch)
    native = device.runtime.native
    with device:
        double = sad.graph(lambda x: x * 2.0)
        resident = sad.array([1.0, 2.0])
        counts = programs.created_by(device, lambda: double(resident), count=4)
        assert not any(counts.values())
        counts = programs.created_by(device, lambda: sad.array([1.0, 2.0]), count=4)
        assert counts["uploads"] == 1.0
        kept: list[sad.Array] = []
        counts = programs.created_by(device, lambda: kept.append(double(resident)), count=4)
        assert counts["buffers"] == 1.0
        assert counts["bind groups"] + counts["root objects"] == 1.0
    assert device.runtime.native is native


def test_vertices_of_the_mesh_are_followed(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_mesh_sample(monkeypatch)
    runtime = device.capabilities.runtime
    imported("mesh_positions", monkeypatch).follow(runtime, size=48, steps=5)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{runtime}, 6 views of 48 x 48 pixels")
    assert "\n  step   5  off by" in printed
    assert printed.endswith("below 10.0 times less\n")


@pytest.mark.parametrize("name", ["two triangles", "Spot", "silhouettes", "grid linear gradient"])
def test_rendering_is_compared(
    name: str,
    device: sad.Device,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for library in {"Spot": ("wgpu", "trimesh"), "silhouettes": ("trimesh",)}.get(name, ()):
        pytest.importorskip(
            library, reason="whose rasteriser, or whose reader of meshes, takes part"
        )
    for module in ("main", "shape", "pictures"):  # of the sample
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
        del sys.modules[module]
    monkeypatch.setattr(sys, "path", [*sys.path])
    runtime = device.capabilities.runtime
    sizes = {"count": 16, "size": 8} if name.startswith("grid") else {"size": 32}
    sizes |= {"subdivisions": 1} if name == "silhouettes" else {}
    imported("rendering", monkeypatch).compare(name, runtime, rounds=1, **sizes)
    printed = capsys.readouterr().out
    assert re.search(rf"^{name} +{runtime} +[\d.]+ ms", printed, re.MULTILINE)
    if found := re.search(r"differ by (\S+)", printed):
        assert float(found[1]) < 1e-4


def test_a_loaded_build_gives_the_gradients_of_raw_wgpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        opened = sad.open_device("wgpu")
    except sad.DeviceError as failure:
        pytest.skip(f"wgpu, which both sides run on: {failure.message}")
    lacking = {"float-atomics", "subgroups"} - opened.capabilities.features
    opened.close()
    if lacking:
        pytest.skip(f"{opened.capabilities.adapter} lacks {lacking}")
    load_time = imported("load_time", monkeypatch)
    source = tmp_path / "shade.py"
    source.write_text(load_time.SHADE, encoding="utf-8")
    sad.build(source, tmp_path / "built", targets="spirv", validate=False)
    load_time.compare(tmp_path / "built", pair_count=1)
    assert "ratio" in capsys.readouterr().out


def test_numbers_of_launch_shapes_are_compared_and_put_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = imported("launch_shapes", monkeypatch)
    table = dict(benchmark.launch_shapes.TABLE)
    contest = benchmark.CONTESTS["loop_threads"]
    try:
        benchmark.decide("wgpu", "loop_threads", contest, rounds=1)
    except sad.DeviceError as failure:
        pytest.skip(f"wgpu: {failure.message}")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(contest.programs)
    assert all(re.search(r"\(32, 64\): \d+\.\d\d", line) for line in lines)
    assert benchmark.launch_shapes.TABLE == table


def test_a_number_of_launch_shapes_with_other_results_is_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = imported("launch_shapes", monkeypatch)

    def program() -> Callable[[], sad.Array]:
        stream = next(iter(benchmark.launch_shapes.TABLE.values())).stream
        return lambda: sad.full((2,), float(stream))

    contest = benchmark.Contest(benchmark.field("stream"), (7, 32768), {"stream": program})
    try:
        benchmark.decide("wgpu", "stream", contest, rounds=1)
    except sad.DeviceError as failure:
        pytest.skip(f"wgpu: {failure.message}")
    assert "7: WRONG RESULTS" in capsys.readouterr().out


def test_each_contest_is_about_a_number_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = imported("launch_shapes", monkeypatch)
    for name, contest in benchmark.CONTESTS.items():
        for row in benchmark.launch_shapes.TABLE.values():
            own = benchmark.held(name, row)
            for value in contest.others:
                changed = contest.change(row, value)
                assert benchmark.held(name, changed) == value
                assert contest.change(changed, own) == row
