"""Kernels are timed and steps profiled if results are right; processes share trials of a part."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import shaderad as sad
from scripts.gpu import timed_programs
from scripts.gpu.kernel_times import measured
from scripts.gpu.launch_rows import change_rows
from shaderad.compiler.launch_shapes import TABLE
from tests.devices import entered
from tests.samples.loading import ROOT

SMALL = timed_programs.Sizes(is_small=True)


@pytest.fixture(scope="module", params=["wgpu", "slangpy"])
def timed_device(request: pytest.FixtureRequest) -> Iterator[sad.Device]:
    with entered(request.param) as device:
        if device.runtime.new_clock() is None:
            pytest.skip(f"{device.capabilities.adapter} has no timestamps")
        yield device


def printed(module: str, *arguments: str, runtime: str) -> tuple[int, list[str]]:
    """The exit code and the lines of a script."""
    done = subprocess.run(
        (sys.executable, "-m", f"scripts.gpu.{module}", *arguments),
        cwd=ROOT, env={**os.environ, "SHADERAD_DEVICE": runtime}, stdout=subprocess.PIPE, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


@pytest.mark.gpu
def test_kernels_are_timed_once_their_results_are_right(timed_device: sad.Device) -> None:
    for program in timed_programs.rows(timed_device, SMALL):
        facts = measured(program, timed_device, is_small=True)
        assert facts["error"] <= program.tolerance, facts
        assert facts["dispatches"] == sum(count for count, _, _ in facts["kernels"].values())
        times = [microseconds for _, microseconds, _ in facts["kernels"].values()]
        assert min(times) > 0.0
        assert facts["kernels_us"] == pytest.approx(sum(times), abs=0.1 * len(times))


@pytest.mark.gpu
def test_a_wrong_result_gets_no_time(timed_device: sad.Device) -> None:
    program, *_ = timed_programs.rows(timed_device, SMALL)
    wrong = dataclasses.replace(
        program, error=lambda results: program.error(tuple(1.001 * x for x in (results,)))
    )
    facts = measured(wrong, timed_device, is_small=True)
    assert facts["wrong"] == "above 0.0001"
    assert not {"kernels_us", "step_us", "host_us"} & {*facts}
    broken = dataclasses.replace(program, error=lambda results: float(np.nan))
    assert "wrong" in measured(broken, timed_device, is_small=True)


@pytest.mark.gpu
@pytest.mark.slow
def test_every_set_has_the_results_of_numpy(timed_device: sad.Device) -> None:
    runtime = timed_device.capabilities.runtime
    code, lines = printed("kernel_times", "--small", runtime=runtime)
    facts = [json.loads(line) for line in lines]
    assert [line["what"] for line in facts if "kernels_us" not in line] == []
    assert code == 0
    assert {f"W{k} gradient" for k in range(1, 5)} <= {line["what"] for line in facts}


@pytest.mark.gpu
def test_the_host_is_profiled_beside_a_right_gradient() -> None:
    code, lines = printed("host_profile", "--small", "--rows", "40", "W2", runtime="wgpu")
    assert code == 0
    facts = json.loads(lines[0])
    assert facts["error"] < 1e-4
    assert min(facts["host_us"], facts["step_us"], facts["waited_us"]) > 0.0
    assert facts["dispatches"] == 1
    assert any("(record)" in line for line in lines[1:])


@pytest.mark.gpu
def test_processes_share_the_trials_of_a_part_with_other_launch_shapes() -> None:
    options = ("open", "--processes", "2", "--shape", "workgroup=32")
    code, lines = printed("trials_on_gpu", *options, runtime="wgpu")
    facts = json.loads(lines[0])
    assert (facts["device"], facts["passed"], facts["not passed"]) == ("wgpu", 7, [])
    assert code == 0


def test_numbers_of_an_option_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, row in TABLE.items():
        monkeypatch.setitem(TABLE, kind, row)
    change_rows("workgroup=32,tile_rows=4")
    assert {(row.workgroup, row.tile_rows) for row in TABLE.values()} == {(32, 4)}
    with pytest.raises(ValueError, match="workgroup"):
        change_rows("workgroup=0")
