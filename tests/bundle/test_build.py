"""`shaderad build`: what lies in the folder, and that nothing is lost where a build fails."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shaderad as sad
from shaderad.cli import app

KERNELS = """
import shaderad as sad
from shaderad import float3


@sad.kernel
def brighten(i: sad.Index, color: sad.In[float3], gain: float, out: sad.Out[float3]):
    out[i] = color[i] * gain


@sad.kernel
def shuffle(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    y[target[i]] = x[i]
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


def run(*arguments: object) -> tuple[int, str]:
    """Exit code of the command, and its error's code if it was one of ours."""
    result = CliRunner().invoke(app, ["build", *map(str, arguments)])
    return result.exit_code, getattr(result.exception, "code", result.output)


def test_every_kernel_and_target_is_built_and_listed_with_its_hash(source: Path) -> None:
    out = source.parent / "out"
    code, said = run(source, "-o", out, "--target", "spirv,hlsl,wgsl")
    assert code == 0, said
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    brighten, shuffle = manifest["kernels"]
    assert set(brighten["targets"]) == {"spirv", "hlsl", "wgsl"}
    for modes in brighten["targets"].values():
        assert {"primal", "backward"} <= set(modes)
    assert "backward" not in {m for m, d in shuffle["targets"]["spirv"].items() if d}
    suffixes = {p.suffix for p in out.rglob("*") if p.is_file()}
    assert {".slang", ".spv", ".hlsl", ".wgsl", ".json"} <= suffixes
    for name, digest in _digests(manifest["files"]):
        assert sha256((out / name).read_bytes()).hexdigest() == digest


def _digests(files: object) -> list[tuple[str, str]]:
    if isinstance(files, dict):
        return list(files.items())
    assert isinstance(files, list)
    return [(f["file"], f["sha256"]) for f in files]


def test_the_same_source_gives_the_same_bytes_in_another_folder(source: Path) -> None:
    one, other = source.parent / "one", source.parent / "other"
    assert run(source, "-o", one, "--target", "spirv")[0] == 0
    assert run(source, "-o", other, "--target", "spirv")[0] == 0
    names = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    assert all((one / n).read_bytes() == (other / n).read_bytes() for n in names)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("missing.py", "-o", "out"), "SR0701"),
        (("kernels.py", "-o", "out", "--target", "glsl"), "SR0504"),
    ],
)
def test_a_failed_build_says_why_and_leaves_what_was_there(
    source: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: str
) -> None:
    monkeypatch.chdir(source.parent)
    kept = source.parent / "out" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    assert run(*arguments) == (1, code)
    assert [p.name for p in kept.parent.iterdir()] == ["kept.txt"]


def test_a_kernel_without_gradient_fails_only_where_one_is_required(source: Path) -> None:
    out = source.parent / "out"
    code, said = run(f"{source}:shuffle", "-o", out, "--target", "spirv", "--require-bwd")
    assert code != 0, said
    assert not out.exists()


def test_python_builds_what_the_command_builds(source: Path) -> None:
    by_command, by_python = source.parent / "one", source.parent / "other"
    assert run(source, "-o", by_command, "--target", "wgsl")[0] == 0
    built = sad.build(source, by_python, targets=["wgsl"])
    assert [each.kernel.name for each in built.kernels] == ["brighten", "shuffle"]
    for name in built.files:
        assert (by_python / name).read_bytes() == (by_command / name).read_bytes()


CROWDED = """
import shaderad as sad


@sad.kernel
def crowded(
    i: sad.Index,
    a: sad.In[float], b: sad.In[float], c: sad.In[float], d: sad.In[float],
    e: sad.In[float], f: sad.In[float], g: sad.In[float], h: sad.In[float],
    y: sad.Out[float],
):
    y[i] = a[i] * b[i] + c[i] * d[i] + e[i] * f[i] + g[i] * h[i]


@sad.kernel
def less_crowded(
    i: sad.Index, x: sad.In[float],
    a: sad.Min[float], b: sad.Min[float], c: sad.Min[float], d: sad.Min[float], e: sad.Min[float],
):
    a[0] = sad.min(a[0], x[i])
    b[0] = sad.min(b[0], x[i] + 1.0)
    c[0] = sad.min(c[0], x[i] + 2.0)
    d[0] = sad.min(d[0], x[i] + 3.0)
    e[0] = sad.min(e[0], x[i] + 4.0)
"""


def test_a_kernel_with_too_many_arrays_for_a_target_is_refused_with_both_names(
    source: Path,
) -> None:
    source.write_text(CROWDED, encoding="utf-8")
    out = source.parent / "out"
    with pytest.raises(sad.CompileError) as caught:
        sad.build(f"{source}:crowded", out, targets=("spirv", "wgsl"))
    assert caught.value.code == "SR0507"
    assert "`crowded_primal` needs 10 storage buffers" in caught.value.message
    assert "`wgsl` has 8" in caught.value.message
    assert "`a`, `b`, `c`" in caught.value.note
    assert not out.exists()
    assert not list(source.parent.glob(".out*"))
    assert run(f"{source}:crowded", "-o", out, "--target", "spirv")[0] == 0


def test_a_backward_with_too_many_arrays_for_a_target_is_left_out_there(source: Path) -> None:
    source.write_text(CROWDED, encoding="utf-8")
    built = sad.build(f"{source}:less_crowded", source.parent / "out", targets=("spirv", "wgsl"))
    (kernel,) = built.kernels
    assert kernel.by_target["spirv"].refusal is None
    refusal = kernel.by_target["wgsl"].refusal
    assert refusal is not None
    assert refusal.code == "SR0417"
    assert "`less_crowded_bwd` needs" in refusal.reason
    assert "`wgsl` has 8" in refusal.reason


POINTERS = """
import shaderad as sad


@sad.struct
class Scene:
    weights: sad.Pointer[float]


@sad.kernel
def look(i: sad.Index, scene: Scene, out: sad.Out[float]):
    out[i] = scene.weights[i]
"""


def test_a_kernel_with_pointers_is_refused_with_the_pointer_named(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(POINTERS, encoding="utf-8")
    assert run(path, "-o", tmp_path / "out") == (1, "SR0715")
    assert not (tmp_path / "out").exists()
