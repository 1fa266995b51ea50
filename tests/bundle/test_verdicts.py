"""Builds with naga's verdicts: hosts may believe them, `sad.load` only what it asked here."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.compiler import compile as compiling
from shaderad.compiler import validate as validators
from shaderad.compiler.artifact import Code
from shaderad.compiler.cache import Cache
from tests.bundle.test_loading import copied, edit

# `shaderad.runtime` has a function of this name.
devices = import_module("shaderad.runtime.devices")

pytestmark = pytest.mark.gpu

SQUARE = """
import shaderad as sad

@sad.kernel
def square(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * x[i]
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("verdicts") / "model.py"
    path.write_text(SQUARE, encoding="utf-8")
    try:
        devices.vetting_device()
    except sad.DeviceError as failure:
        pytest.skip(f"wgpu, which is asked: {failure.message}")
    return path


@pytest.fixture(scope="module")
def folder(source: Path) -> Path:
    sad.build(source, source.parent / "out", targets="spirv,hlsl,wgsl", validate=False, vet=True)
    return source.parent / "out"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The code that the child is shown; it has no cache, and refuses everything."""
    shown: list[str] = []

    class Child:
        def request(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
            assert timeout
            shown.append(message["format"])
            return {"refused": "by this test"}

    monkeypatch.setattr(validators, "vetter", Child)
    monkeypatch.setattr(validators, "default_cache", lambda: Cache(None))
    return shown


def gradient(folder: Path) -> tuple[list[float], set[str]]:
    """The gradient of the sum of squares at (1, 3), and which code gave it."""
    with sad.open_device("wgpu") as device:
        _, pullback = sad.vjp(sad.load(folder).square, [1.0, 3.0], dim=2)
        found = pullback(np.ones(2))[0].numpy().tolist()
        return found, {route.target for route in device.runtime.routes()}


def test_what_wgpu_takes_stands_in_the_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    verdicts = manifest["verdicts"]
    assert verdicts["wgpu_native"] == devices.vetting_device().version
    wanted = {name for name in manifest["files"] if name.endswith((".spv", ".wgsl"))}
    assert verdicts["accepts"] == dict.fromkeys(sorted(wanted), True)


def test_a_build_that_does_not_ask_has_no_verdicts(source: Path, tmp_path: Path) -> None:
    sad.build(source, tmp_path / "out", targets="wgsl", validate=False)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert manifest["verdicts"] is None


def test_verdicts_of_a_folder_are_not_believed(folder: Path, asked: list[str]) -> None:
    with pytest.raises(sad.CompileError) as caught:
        gradient(folder)
    assert caught.value.code == "SR0612"
    assert asked == ["spirv", "wgsl"]


def test_a_verdict_against_code_is_not_believed(folder: Path, tmp_path: Path) -> None:
    changed = copied(folder, tmp_path)
    edit(changed, lambda m: m["verdicts"].update(accepts=dict.fromkeys(m["files"], False)))
    assert gradient(changed) == ([2.0, 6.0], {"spirv"})


def test_what_a_build_asked_is_known_on_its_machine(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    for module in (compiling, validators):
        monkeypatch.setattr(module, "default_cache", lambda: cache)
    sad.build(source, tmp_path / "out", targets="spirv", validate=False, vet=True)

    def no_child() -> None:
        pytest.fail("the child is asked again")

    monkeypatch.setattr(validators, "vetter", no_child)
    assert gradient(tmp_path / "out") == ([2.0, 6.0], {"spirv"})


def test_what_the_child_said_is_kept_by_the_version_of_wgpu_native(
    asked: list[str], tmp_path: Path
) -> None:
    device = validators.VettingDevice("a test", "none", "0", (), {}, version="29.0")
    code, cache = Code("wgsl", b"fn main() {}"), Cache(tmp_path)
    layout = validators.PipelineLayout((), 0, 0, 0)
    for version, count in (("29.0", 1), ("29.0", 1), ("29.1", 2), ("29.1", 2)):
        other = replace(device, version=version)
        verdict = validators.vet(code, "main", other, layout, cache=cache)
        assert (verdict.reason, len(asked)) == ("by this test", count)


@pytest.mark.parametrize("lack", ["a feature", "buffers"])
def test_a_device_that_could_not_run_the_code_is_no_judge(
    lack: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = devices.vetting_device()
    few = {**device.limits, "max-storage-buffers-per-shader-stage": 1}
    lesser = replace(device, offers=frozenset()) if lack == "a feature" else replace(
        device, limits=few)  # fmt: skip
    monkeypatch.setattr(devices, "vetting_device", lambda: lesser)
    text = source.read_text(encoding="utf-8").replace("x: sad.In[float]", "x: sad.In[sad.half]")
    path = tmp_path / "model.py"
    path.write_text(text.replace("x[i] * x[i]", "float(x[i])"), encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        sad.build(path, tmp_path / "out", targets="spirv", validate=False, vet=True)
    assert caught.value.code == "SR0750"
    assert not (tmp_path / "out").exists()


def test_no_verdict_stands_in_no_manifest(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_answer = validators.Verdict(False, "naga was killed", is_final=False)
    monkeypatch.setattr("shaderad.bundle.write.validators.vet", lambda *_: no_answer)
    with pytest.raises(sad.CompileError, match="naga was killed") as caught:
        sad.build(source, tmp_path / "out", targets="spirv", validate=False, vet=True)
    assert caught.value.code == "SR0757"
    assert not (tmp_path / "out").exists()
