"""`shaderad inspect`: what a person is told of a folder, read from its manifest alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import shaderad as sad
from shaderad.bundle.read.inspection import inspect

FILE = """
import shaderad as sad


@sad.kernel
def scale(i: sad.Index, x: sad.In[float], by: sad.Const[int], total: sad.Add[float]):
    total[0] += x[i] * by


@sad.kernel
def shuffle(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    y[target[i]] = x[i]


@sad.graph
def energy(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(x * x)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("inspection") / "file.py"
    source.write_text(FILE, encoding="utf-8")
    sad.build(source, source.parent / "out", targets="spirv,wgsl", defines={"by": 3},
              binding_base=2, validate=False)  # fmt: skip
    return source.parent / "out"


def told(folder: Path) -> list[str]:
    return [text for text, _ in inspect(folder)]


def test_entries_are_told_with_parameters_bindings_and_refusals(built: Path) -> None:
    lines = told(built)
    size = (built / "spirv/scale_bwd.spv").stat().st_size
    for line in (
        "  spirv: native atomics, float-atomics, subgroups, 64 threads a workgroup, space 0 from "
        "slot 2 on",
        "kernel scale[i] (file.py:6), bounds raise",
        "  x: array float",
        "  by: constant int = 3",
        f"  spirv: scale_bwd in spirv/scale_bwd.spv, {size} bytes",
        "    set 0 binding 3  read, cotangent of total",
        "    gradient of x: exclusive",
        "graph energy[n] (file.py:15), bounds raise",
        "  takes x: float[n]",
        "  gives result_0: float[]",
    ):
        assert line in lines
    assert any(line.startswith("  wgsl: no backward: SR0414: ") for line in lines)
    plans = [line for line in lines if " plan: " in line]
    assert len(plans) == 10
    assert all(" dispatches" in line and " buffers" in line for line in plans)


def test_files_that_are_not_as_they_were_built_are_told(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    shutil.copytree(built, copy)
    assert not [text for text, kind in inspect(copy) if kind == "failed"]
    (copy / "wgsl/scale_bwd.wgsl").write_text("fn main() {}", encoding="utf-8")
    (copy / "spirv/scale_bwd.spv").unlink()
    failed = [text for text, kind in inspect(copy) if kind == "failed"]
    assert failed == [
        "  spirv/scale_bwd.spv: No such file or directory",
        "  wgsl/scale_bwd.wgsl: was changed since it was built",
    ]
    assert "  spirv: scale_bwd in spirv/scale_bwd.spv, missing" in told(copy)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "SR0720"),
        ("{}", "SR0720"),
        ('{"schema": "shaderad-manifest", "schema_version": 2}', "SR0721"),
        ('{"schema": "shaderad-manifest", "schema_version": 3}', "SR0720"),
    ],
)
def test_a_folder_without_a_build_is_refused(
    tmp_path: Path, content: str | None, code: str
) -> None:
    if content is not None:
        (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        told(tmp_path)
    assert caught.value.code == code
