"""`shaderad doctor` tells the truth about machines that lack something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from shaderad import doctor
from shaderad.compiler.validate import Judgement, Status
from shaderad.diagnostics import error
from shaderad.doctor import Finding
from shaderad.runtime import Capabilities
from shaderad.runtime.texture_formats import TEXTURE_FORMATS
from tests.fake_runtime import CAPABILITIES


def run_doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-c", "from shaderad.cli import main; main()", "doctor"),
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def findings_of(runtime: str) -> list[Finding]:
    return [found for found in doctor._runtime(runtime) if found.area == "runtimes"]


def answer_with(monkeypatch: pytest.MonkeyPatch, code: int, stdout: str, stderr: str) -> None:
    """Makes each process that the doctor starts end like this."""

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.gpu
@pytest.mark.skipif(sys.platform != "linux", reason="drivers are hidden by a Linux variable")
def test_without_a_driver_it_fails_and_says_what_to_install(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.json")
    done = run_doctor(VK_DRIVER_FILES=nowhere, VK_ICD_FILENAMES=nowhere, SHADERAD_DEVICE="")
    assert done.returncode == 1, done.stdout
    assert "no driver is installed" in done.stdout
    assert "mesa-vulkan-drivers" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_runtime_that_crashes_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, -11, "", "")
    (found,) = findings_of("wgpu")
    assert found.status == "failed"
    assert "SIGSEGV" in found.detail
    assert "SHADERAD_DEVICE" in found.remedy


def test_a_runtime_that_hangs_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: tuple[str, ...], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(subprocess, "run", run)
    (found,) = findings_of("wgpu")
    assert found.status == "failed"
    assert "no answer" in found.detail


def test_a_missing_system_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "libatomic.so.1: cannot open shared object file: No such file or directory"
    answer_with(monkeypatch, 1, "", f"Traceback\nImportError: {reason}\n")
    (found,) = findings_of("slangpy")
    assert reason in found.detail
    assert "libatomic1" in found.remedy


def test_a_runtime_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = error("SR0625", runtime="slangpy")
    answer_with(monkeypatch, 0, json.dumps({"failure": failure.message}), "")
    (found,) = findings_of("slangpy")
    assert found.remedy == "pip install slangpy"


def test_a_machine_without_the_compiler_runs_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_library", lambda: None)
    (found,) = doctor._compiler()
    assert (found.status, found.remedy.split()[-1]) == ("none", "slangpy")
    assert "folders of `shaderad build` run" in found.detail
    answer = doctor._try_runtime("wgpu")
    assert answer["route"] == "no program was tried"


def test_a_driver_that_greets_does_not_spoil_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, 0, 'hello from the driver\n{"failure": "too old"}\n', "")
    (found,) = findings_of("slangpy")
    assert found.detail == "too old"


def test_a_validator_that_cannot_judge_what_slang_writes_is_not_ok() -> None:
    old = Judgement("spirv-val", Status.UNAVAILABLE, "too old", "update it", "/bin/spirv-val")
    found = doctor._validator(old)
    assert (found.status, found.remedy) == ("failed", "update it")
    assert "/bin/spirv-val" in found.detail
    assert "too old" in found.detail


def test_a_missing_validator_can_be_done_without() -> None:
    missing = Judgement("spirv-val", Status.UNAVAILABLE, "not found", "install it")
    found = doctor._validator(missing)
    assert (found.status, found.remedy) == ("none", "install it")


def test_the_report_shows_areas_once_and_remedies_below_their_finding() -> None:
    findings = [
        Finding("runtimes", "wgpu", "failed", "too old\nby years", "update it"),
        Finding("versions", "numpy", "fact", "2.0"),
        Finding("runtimes", "slangpy", "ok", "fine"),
    ]
    assert [text for text, _ in doctor.report_lines(findings)] == [
        "runtimes",
        "  failed  wgpu     too old",
        "                   by years",
        "                   -> update it",
        "  ok      slangpy  fine",
        "versions",
        "          numpy    2.0",
    ]


def test_one_runtime_that_works_is_enough() -> None:
    broken = Finding("runtimes", "wgpu", "failed", "")
    assert doctor.can_run([broken, Finding("runtimes", "slangpy", "ok", "")])
    assert not doctor.can_run([broken, Finding("compiler", "libslang", "ok", "")])


def test_formats_of_textures_that_are_not_there_or_not_filtered_are_named() -> None:
    few = replace(
        CAPABILITIES,
        texture_formats=frozenset(TEXTURE_FORMATS) - {"rgba8unorm-srgb"},
        filtered_formats=frozenset({"r8unorm", "rg8unorm", "rgba8unorm", "rgba16float"}),
    )
    (line,) = (each for each in texts_of(few) if each.startswith("textures"))
    assert line == (
        "textures of up to 8192 x 8192 texels, and 256 layers; filters all but r16float, "
        "r32float, rg16float, rg32float, rgba32float of their formats; lacks rgba8unorm-srgb"
    )
    every = replace(few, texture_formats=few.filtered_formats | {"rgba8unorm"})
    assert "; filters all of their formats; lacks " in "\n".join(texts_of(every))


def texts_of(capabilities: Capabilities) -> list[str]:
    return doctor._capability_text(asdict(capabilities), "a route").splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="drivers are looked for in Linux's folders")
def test_a_container_with_cuda_alone_is_told_how_to_get_vulkan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_vulkan_manifests", lambda: iter(()))
    monkeypatch.setattr(doctor, "has_nvidia_driver", lambda: True)
    (found,) = doctor._vulkan_drivers()
    assert "NVIDIA_DRIVER_CAPABILITIES" in found.remedy


def test_a_toolkit_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = error("SR0637", program="double_each", part="NVRTC (`libnvrtc.so`)")
    answer_with(monkeypatch, 0, json.dumps({"failure": failure.message}), "")
    (found,) = findings_of("slangpy")
    assert found.remedy == "install the CUDA toolkit, or a Vulkan driver, which needs none"
