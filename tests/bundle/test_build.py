"""`sad.build`: what it returns, what validators do to it, and that it writes all or nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import shaderad as sad
from shaderad.bundle.write import validators as judging
from shaderad.compiler import compile as compiling
from shaderad.compiler.cache import Cache
from shaderad.compiler.validate import Judgement, Status
from shaderad.lower.bindings import Mode
from tests.bundle.conftest import SOURCE, Output


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def answer(monkeypatch: pytest.MonkeyPatch, status: Status, reason: str) -> None:
    """Makes every validator give the same answer; earlier ones are forgotten."""

    def judge(*question: object) -> Judgement:
        return Judgement("judge", status, reason)

    monkeypatch.setattr(judging, "validate", judge)
    monkeypatch.setattr(judging.Naga, "__call__", judge)
    monkeypatch.setattr(judging, "default_cache", lambda: Cache(None))


def test_every_target_gets_a_file_and_its_slang_for_each_entry_point(output: Output) -> None:
    suffixes = {"spirv": ".spv", "spirv-core": ".spv", "hlsl": ".hlsl", "wgsl": ".wgsl"}
    for target, suffix in {**suffixes, "metal": ".metal"}.items():
        files = {p.name for p in (output.folder / target).iterdir()}
        stems = {Path(d["file"]).stem for d in output.dispatches(target)}
        modules = {f"{k['name']}_functions.slang" for k in output.manifest["entries"]
                   if "functions" in k["targets"][target]}  # fmt: skip
        assert modules
        assert files == modules | {stem + end for stem in stems for end in (suffix, ".slang")}
    assert (output.folder / "shaderad" / "shaderad.slang").is_file()


def test_what_was_built_is_returned(source: Path) -> None:
    built = sad.build(f"{source}:shuffle", source.parent / "out", targets="wgsl", validate=False)
    (kernel,) = built.kernels
    assert kernel.name == "shuffle"
    assert set(kernel.by_target) == {"wgsl"}
    assert built.judgements == ()
    assert {"manifest.json", "wgsl/shuffle_primal.wgsl"} <= set(built.files)
    assert all((built.folder / name).is_file() for name in built.files)


def test_targets_may_be_one_text_with_commas_and_come_in_one_order(source: Path) -> None:
    one = sad.build(f"{source}:shuffle", source.parent / "one", targets="wgsl, spirv,wgsl")
    other = sad.build(f"{source}:shuffle", source.parent / "other", targets=("spirv", "wgsl"))
    assert list(one.kernels[0].by_target) == list(other.kernels[0].by_target) == ["spirv", "wgsl"]


@pytest.mark.parametrize("targets", ["", (), " , "])
def test_a_build_for_no_target_is_refused(source: Path, targets: str | tuple[str, ...]) -> None:
    with pytest.raises(sad.CompileError) as caught:
        sad.build(source, source.parent / "out", targets=targets)
    assert caught.value.code == "SR0713"
    assert not (source.parent / "out").exists()


def test_bounds_are_those_of_calls(source: Path) -> None:
    with pytest.raises(sad.ShapeError) as caught:
        sad.build(source, source.parent / "out", bounds="clamp")
    assert caught.value.code == "SR0374"


def test_a_report_buffer_is_bound_only_where_indices_are_reported(source: Path) -> None:
    for bounds, is_reported in (("raise", True), ("ignore", False), ("unchecked", False)):
        built = sad.build(f"{source}:shuffle", source.parent / "out", targets="wgsl", bounds=bounds)
        primal = built.kernels[0].by_target["wgsl"].entry_points[0]
        names = {b.name for b in primal.lowered.program.bindings}
        assert ("report_words" in names) is is_reported


def test_double_is_refused_by_targets_that_lack_it(source: Path) -> None:
    text = source.read_text(encoding="utf-8").replace("x: sad.In[float]", "x: sad.In[sad.double]")
    source.write_text(text.replace("y: sad.Out[float]", "y: sad.Out[sad.double]"), encoding="utf-8")
    with pytest.raises(sad.CompileError) as caught:
        sad.build(f"{source}:shuffle", source.parent / "out", targets="spirv,wgsl")
    assert caught.value.code == "SR0711"
    assert "`wgsl`" in caught.value.message


def test_a_validator_that_refuses_fails_the_build_with_its_words(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, Status.REFUSED, "line 3: bad operand")
    with pytest.raises(sad.CompileError) as caught:
        sad.build(f"{source}:shuffle", source.parent / "out", targets="spirv")
    assert caught.value.code == "SR0712"
    for words in ("judge refuses `shuffle_primal` for spirv", "line 3: bad operand"):
        assert words in caught.value.message
    assert [p.name for p in source.parent.iterdir()] == ["kernels.py"]
    sad.build(f"{source}:shuffle", source.parent / "out", targets="spirv", validate=False)


@pytest.mark.parametrize("status", [Status.ACCEPTED, Status.UNAVAILABLE])
def test_a_validator_that_accepts_or_cannot_answer_fails_nothing(
    source: Path, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    answer(monkeypatch, status, "not found")
    built = sad.build(f"{source}:shuffle", source.parent / "out", targets="spirv,wgsl")
    assert [j.status for j in built.judgements] == [status, status]


def test_steps_are_told_before_they_are_taken(source: Path) -> None:
    steps: list[str] = []
    sad.build(f"{source}:shuffle", source.parent / "out", targets="spirv,wgsl", tell=steps.append)
    assert steps == ["shuffle for spirv", "shuffle for wgsl"]


TWO = """
import shaderad as sad

@sad.kernel
def first(i: sad.Index, x: sad.In[int], y: sad.Out[int]):
    y[i] = x[i] + 1

@sad.kernel
def second(i: sad.Index, x: sad.In[int], y: sad.Out[int]):
    y[i] = x[i] + 2
"""
UNFIT = TWO.replace("y[i] = x[i] + 2", "wide = sad.double(x[i])\n    y[i] = int(wide)")
"""The second kernel needs doubles, which WGSL does not have."""


def test_programs_of_all_entries_compile_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "two.py").write_text(TWO, encoding="utf-8")
    meeting, compiled = threading.Barrier(2, timeout=60.0), compiling.compile_program

    def compile_when_met(*arguments: Any, **keywords: Any) -> Any:
        meeting.wait()  # breaks if no other program is compiled meanwhile
        return compiled(*arguments, **keywords)

    monkeypatch.setattr(compiling, "compile_program", compile_when_met)
    built = sad.build(tmp_path / "two.py", tmp_path / "out", targets="wgsl", validate=False)
    assert [one.name for one in built.kernels] == ["first", "second"]


def test_the_error_of_the_first_entry_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "two.py").write_text(UNFIT, encoding="utf-8")
    with pytest.raises(sad.CompileError, match="SR0711"):
        sad.build(tmp_path / "two.py", tmp_path / "out", targets="wgsl", validate=False)

    def refusing(*_arguments: Any, **_keywords: Any) -> Any:
        raise sad.CompileError("SR0501", "a fault of the first")

    monkeypatch.setattr(compiling, "compile_program", refusing)
    with pytest.raises(sad.CompileError, match="a fault of the first"):
        sad.build(tmp_path / "two.py", tmp_path / "out", targets="wgsl", validate=False)


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
    sad.build(f"{source}:crowded", out, targets="spirv")


def test_a_backward_with_too_many_arrays_for_a_target_is_left_out_there(source: Path) -> None:
    source.write_text(CROWDED, encoding="utf-8")
    built = sad.build(f"{source}:less_crowded", source.parent / "out", targets=("spirv", "wgsl"))
    (kernel,) = built.kernels
    assert not kernel.by_target["spirv"].refusals
    refusal = kernel.by_target["wgsl"].refusals[Mode.BACKWARD]
    assert refusal.code == "SR0417"
    assert "`less_crowded_winner` needs" in refusal.reason
    assert "`wgsl` has 8" in refusal.reason


NAMED = """
import shaderad as sad


@sad.kernel
def LONG(i: sad.Index, x: sad.In[float], out: sad.Out[float]):
    out[i] = 2.0 * x[i]
"""


@pytest.mark.parametrize("name", ['a\n#error "x".py', "a\rb.py"])
def test_a_file_name_with_control_characters_ends_no_comment(tmp_path: Path, name: str) -> None:
    source, out = tmp_path / name, tmp_path / "out"
    source.write_text(NAMED)
    sad.build(source, out, targets="spirv")
    assert sad.load(out).LONG is not None
    (header,) = out.glob("*.h")
    assert header.name.isprintable()
    for text in (header, out / "spirv/LONG_primal.slang"):
        assert "#error" not in [line[:6] for line in text.read_text().splitlines()]


def test_long_names_keep_what_tells_entry_points_apart(tmp_path: Path) -> None:
    source, out = tmp_path / "long.py", tmp_path / "out"
    source.write_text(NAMED.replace("LONG", "n" * 1000))
    sad.build(source, out, targets="spirv")
    ends = {path.stem.rpartition("_")[2] for path in (out / "spirv").glob("*.spv")}
    assert ends == {"primal", "bwd"}
    assert max(len(path.name) for path in out.rglob("*")) < 100
    assert getattr(sad.load(out), "n" * 1000) is not None


def test_names_that_no_manifest_takes_are_refused(tmp_path: Path) -> None:
    source, out = tmp_path / "long.py", tmp_path / "out"
    source.write_text(NAMED.replace("LONG", "n" * 5000))
    with pytest.raises(sad.CompileError, match="SR0715") as caught:
        sad.build(source, out, targets="spirv")
    assert "$.entries[0].name" in caught.value.note
    assert len(str(caught.value)) < 1000
    assert not out.exists()
