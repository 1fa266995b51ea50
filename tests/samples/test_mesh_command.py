"""`samples/mesh_interpolation/main.py` as a command: its files, its errors, Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.gpu

FEW = ["--size", "48", "--steps", "7"]
WRITTEN = {
    "target.png", "start.png", "fit.png", "difference.png", "gradient.png", "overview.png",
    "loss.svg", "fit.webp", "report.html", "build",
}  # fmt: skip

SLANG = "void color_bwd()\n{\n    addGradient<float3, mesh_colors_in>();\n}\n"
LIBRARY = "public void addGradient<T>()\n{\n}\n"


@pytest.fixture
def quick_build(monkeypatch: pytest.MonkeyPatch, mesh_sample: SimpleNamespace) -> None:
    """In place of what `sad.build` writes: what a report shows of it."""

    def write(source: Path, out: Path, **_: object) -> None:
        (out / "spirv").mkdir(parents=True)
        (out / "spirv/shade_bwd.slang").write_text(SLANG)
        (out / "shaderad").mkdir()
        (out / "shaderad/access.slang").write_text(LIBRARY)

    monkeypatch.setattr(mesh_sample.main.sad, "build", write)


@pytest.mark.parametrize("runtime", ["wgpu", "slangpy"])
def test_the_command_writes_every_file(
    mesh_sample: SimpleNamespace,
    quick_build: None,
    runtime: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mesh_sample.main.main(["--out", str(tmp_path), "--runtime", runtime, *FEW])
    assert {path.name for path in tmp_path.iterdir()} == WRITTEN
    shown = capsys.readouterr().out
    assert "7 steps" in shown
    assert f"on {runtime}" in shown
    with Image.open(tmp_path / "overview.png") as overview:
        assert overview.size == (4 * 48, 48)
    pixels = {
        name: np.asarray(Image.open(tmp_path / f"{name}.png")).astype(int)
        for name in ("start", "fit", "target")
    }
    errors = {k: np.abs(pixels[k] - pixels["target"]).mean() for k in ("start", "fit")}
    assert errors["fit"] < 0.9 * errors["start"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--steps", "0"], "argument --steps: 0 is not a whole number above 0"),
        (["--steps", "-3"], "argument --steps: -3 is not a whole number above 0"),
        (["--size", "0"], "argument --size: 0 is not"),
        (["--size", "many"], "argument --size: many is not"),
        (["--runtime", "metal"], "argument --runtime: invalid choice: 'metal'"),
        (["--fit", "hair"], "argument --fit: invalid choice: 'hair'"),
    ],
)
def test_a_wrong_argument_is_named(
    mesh_sample: SimpleNamespace,
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        mesh_sample.main.main(["--out", str(tmp_path / "out"), *arguments])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_to_is_named_before_the_fit(
    mesh_sample: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        mesh_sample.main.main(["--out", str(tmp_path / "file"), *FEW])
    assert stopped.value.code == 2
    assert f"cannot write into {tmp_path / 'file'}: File exists" in capsys.readouterr().err


@pytest.mark.parametrize(("last_step", "kept"), [(0, {"start.png", "target.png"}), (5, WRITTEN)])
def test_ctrl_c_keeps_what_is_there_and_says_so(
    mesh_sample: SimpleNamespace,
    quick_build: None,
    last_step: int,
    kept: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fit = mesh_sample.fit
    step = fit.ColorFit.step

    def interrupted(self: object) -> None:
        if self.steps_done == last_step:
            raise KeyboardInterrupt
        step(self)

    monkeypatch.setattr(fit.ColorFit, "step", interrupted)
    with pytest.raises(SystemExit) as stopped:
        mesh_sample.main.main(["--out", str(tmp_path), *FEW])
    assert stopped.value.code == mesh_sample.main.INTERRUPTED
    shown = capsys.readouterr().out
    assert f"stopped; what was written stays in {tmp_path}" in shown
    assert {path.name for path in tmp_path.iterdir()} == kept | {"build"}


def test_looks_are_at_the_first_and_the_last_step_and_more_often_early_on(
    mesh_sample: SimpleNamespace,
) -> None:
    record = mesh_sample.record
    for steps in (1, 2, 7, 200, 5000):
        places = record.looks(steps)
        assert places[0] == 1
        assert places[-1] == steps
        assert len(places) <= record.LOOKS
        assert places == sorted(set(places))
    gaps = np.diff(record.looks(2000))
    assert gaps[0] < 0.2 * gaps[-1]


@pytest.mark.slow
def test_every_attribute_has_a_report_with_the_code_that_reads_it(
    mesh_sample: SimpleNamespace, tmp_path: Path
) -> None:
    attributes = mesh_sample.fit.ATTRIBUTES
    assert set(attributes) <= set(mesh_sample.report.SUBJECTS)
    for attribute in attributes:
        mesh_sample.main.main(["--out", str(tmp_path), "--fit", attribute, *FEW])
        page = (tmp_path / "report.html").read_text()
        assert mesh_sample.report.SUBJECTS[attribute].title in page
        assert ("of the start" in page) == (attribute == "positions")
    svg = (tmp_path / "vertex_error.svg").read_text()
    assert "in units of the mesh" in svg
    manifest = json.loads((tmp_path / "build/manifest.json").read_text())
    (kernel,) = [one for one in manifest["entries"] if one["name"] == "shade"]
    for target in ("spirv", "hlsl", "wgsl"):
        assert {"primal", "backward"} <= kernel["targets"][target].keys()
        for program in kernel["targets"][target]["programs"]:
            assert (tmp_path / "build" / program["file"]).stat().st_size
