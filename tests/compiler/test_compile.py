"""Compiling through child processes: every target, every way to fail, the cache in front."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shaderad.compiler import compile as compiling
from shaderad.compiler.artifact import Code, Program
from shaderad.compiler.cache import Cache
from shaderad.compiler.child import Child, ChildTimedOut, children
from shaderad.compiler.compile import begin_compilations, compile_program
from shaderad.compiler.formats import FORMATS
from shaderad.diagnostics import CompileError
from shaderad.diagnostics.errors import MissingPackageError

LIBRARY = "module shaderad;\npublic float twice(float x) { return 2.0 * x; }\n"
TEXT = """import shaderad;
[[vk::binding(0, 0)]] StructuredBuffer<float> x;
[[vk::binding(1, 0)]] RWStructuredBuffer<float> y;
#line 3 "{file}"
float f(float v) {{ return {body}; }}
[shader("compute")] [numthreads(64, 1, 1)]
void f_primal(uint3 thread : SV_DispatchThreadID) {{ y[thread.x] = f(x[thread.x]); }}
"""
SOURCE = "import math\n\ndef f(v): return math.sin(v)\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "shaderad.slang").write_text(LIBRARY)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def program(body: str = "sin(twice(v))", file: str = "model.py") -> Program:
    return Program("f_primal", TEXT.format(body=body, file=file), (64, 1, 1), ())


@pytest.mark.parametrize(
    ("code_format", "shown"),
    [
        ("spirv", b"f_primal"),
        ("hlsl", b"void f_primal("),
        ("wgsl", b"fn f_primal("),
        ("metal", b"[[kernel]] void f_primal("),
        ("cuda", b"__global__ void f_primal("),
    ],
)
def test_every_format_keeps_the_entry_point_name(
    code_format: str, shown: bytes, library: Path, cache: Cache
) -> None:
    code = compile_program(program(), code_format, cache=cache, library=library)
    assert code.format == code_format
    assert shown in code.content
    assert code.diagnostics == ()


def test_the_formats_tested_are_all_there_are() -> None:
    assert set(FORMATS) == {"spirv", "hlsl", "wgsl", "metal", "cuda"}


@pytest.mark.parametrize("code_format", FORMATS)
def test_bytes_do_not_depend_on_what_was_compiled_before(code_format: str, library: Path) -> None:
    first = compile_program(program(), code_format, cache=Cache(None), library=library)
    compile_program(program("cos(v)"), code_format, cache=Cache(None), library=library)
    assert compile_program(program(), code_format, cache=Cache(None), library=library) == first
    children().close()
    assert compile_program(program(), code_format, cache=Cache(None), library=library) == first


@pytest.mark.parametrize("target", ["hlsl", "wgsl", "metal"])
def test_text_targets_name_no_folder_of_this_machine(target: str, library: Path) -> None:
    code = compile_program(program(), target, cache=Cache(None), library=library)
    assert str(library).encode() not in code.content


def test_one_module_may_hold_several_entry_points(library: Path) -> None:
    other = '[shader("compute")] [numthreads(8, 1, 1)] void g_primal() { y[0] = 1.0; }\n'
    both = replace(program(), slang=program().slang + other)
    for name in ("f_primal", "g_primal", "f_primal"):
        code = compile_program(replace(both, name=name), "wgsl", cache=Cache(None), library=library)
        assert f"fn {name}(".encode() in code.content


def test_a_changed_library_is_compiled_anew(tmp_path: Path, cache: Cache) -> None:
    (tmp_path / "shaderad.slang").write_text(LIBRARY)
    before = compile_program(program(), "wgsl", cache=cache, library=tmp_path)
    (tmp_path / "shaderad.slang").write_text(LIBRARY.replace("2.0", "3.0"))
    after = compile_program(program(), "wgsl", cache=cache, library=tmp_path)
    assert b"2.0f" in before.content
    assert b"3.0f" in after.content


def test_an_error_is_shown_at_its_python_line(tmp_path: Path, library: Path, cache: Cache) -> None:
    file = tmp_path / "model.py"
    file.write_text(SOURCE)
    with pytest.raises(CompileError) as caught:
        compile_program(program("sinn(v)", str(file)), "spirv", cache=cache, library=library)
    assert caught.value.code == "SR0501"
    assert "undefined identifier 'sinn'" in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (str(file), 3)
    assert "3 | def f(v): return math.sin(v)" in str(caught.value)
    assert "float f(float v) { return sinn(v); }" in caught.value.note


def test_an_internal_error_is_shown_at_the_line_it_was_working_on(
    tmp_path: Path, library: Path, cache: Cache
) -> None:
    file = tmp_path / "model.py"
    file.write_text(SOURCE)
    bad = program("float(double(v) * double(v))", str(file))
    with pytest.raises(CompileError, match="'double' type emitted") as caught:
        compile_program(bad, "wgsl", cache=cache, library=library)
    assert caught.value.span is not None
    assert caught.value.span.line == 3


def test_text_that_comes_together_with_an_error_is_refused(library: Path, cache: Cache) -> None:
    text = program().slang.replace("<float> y", "<Atomic<float>> y")
    bad = replace(program(), slang=text.replace("y[thread.x] = f(", "y[thread.x].add("))
    bad = replace(bad, slang=bad.slang.replace("x[thread.x])", "x[0])"))
    assert compile_program(bad, "spirv", cache=cache, library=library).content
    with pytest.raises(CompileError, match="floating point atomic") as caught:
        compile_program(bad, "hlsl", cache=cache, library=library)
    assert caught.value.code == "SR0501"


def test_the_compiler_works_after_an_error(library: Path, cache: Cache) -> None:
    with pytest.raises(CompileError):
        compile_program(program("+"), "spirv", cache=cache, library=library)
    assert compile_program(program(), "spirv", cache=cache, library=library).content


def test_warnings_come_with_the_code(library: Path, cache: Cache) -> None:
    text = program().slang.replace("return sin", "int whole = 3.7; return whole * sin")
    for _from_compiler_then_cache in range(2):
        code = compile_program(
            replace(program(), slang=text), "spirv", cache=cache, library=library
        )
        assert [(d.severity, d.code, d.file, d.line) for d in code.diagnostics] == [
            ("warning", "E30081", "model.py", 3)
        ]


def test_a_refusal_names_the_target_that_was_built(cache: Cache, library: Path) -> None:
    with pytest.raises(CompileError, match="refuses `f_primal` for spirv-core"):
        compile_program(program("sinn(v)"), "spirv", "spirv-core", cache=cache, library=library)


CRASHES_SLANG = """
interface IShape { [Differentiable] float area(float s); }
[[vk::binding(0, 0)]] RWStructuredBuffer<float> y;
struct Square : IShape { [Differentiable] float area(float s) { return s * s; } };
[shader("compute")] [numthreads(1, 1, 1)]
void f_primal() { Square q; var p = diffPair(y[0]); bwd_diff(q.area)(p, 1.0); y[0] = p.d; }
"""


def test_a_compiler_crash_names_the_signal_and_keeps_the_module(
    library: Path, cache: Cache
) -> None:
    bad = replace(program(), slang=CRASHES_SLANG)
    with pytest.raises(CompileError, match="signal SIG") as caught:
        compile_program(bad, "spirv", cache=cache, library=library)
    assert caught.value.code == "SR0502"
    assert "bug in shaderad or in Slang" in str(caught.value)
    assert cache.folder is not None
    (kept,) = (cache.folder / "failed").iterdir()
    assert str(kept) in str(caught.value)
    assert kept.read_text() == bad.slang
    assert compile_program(program(), "spirv", cache=cache, library=library).content


def test_a_compiler_that_takes_too_long_is_stopped(library: Path, cache: Cache) -> None:
    with pytest.raises(CompileError) as caught:
        compile_program(program(), "spirv", cache=cache, library=library, timeout=0.0)
    assert caught.value.code == "SR0503"
    assert compile_program(program(), "spirv", cache=cache, library=library).content


def test_a_child_killed_between_requests_is_replaced(library: Path, cache: Cache) -> None:
    os.kill(children().request({"kind": "ping"}, 60.0)["pid"], 9)
    assert compile_program(program(), "spirv", cache=cache, library=library).content


def test_no_interpreter_is_a_coded_error(
    monkeypatch: pytest.MonkeyPatch, library: Path, cache: Cache
) -> None:
    children().close()
    monkeypatch.setenv("SHADERAD_PYTHON", "/no/such/python")
    with pytest.raises(CompileError, match="/no/such/python") as caught:
        compile_program(program(), "spirv", cache=cache, library=library)
    assert caught.value.code == "SR0506"


def test_no_compiler_is_a_coded_error(
    monkeypatch: pytest.MonkeyPatch, library: Path, cache: Cache
) -> None:
    monkeypatch.setattr(compiling, "children", NoSlang)
    with pytest.raises(MissingPackageError, match="not installed") as caught:
        compile_program(program(), "spirv", cache=cache, library=library)
    assert caught.value.code == "SR0505"


class NoSlang:
    """A child on a machine without slangpy."""

    def request(self, message: dict[str, object], timeout: float) -> dict[str, object]:
        return {"missing": bool(message) and timeout > 0}


def test_threads_compile_side_by_side(library: Path, cache: Cache) -> None:
    compiled: dict[int, Code] = {}

    def compile_one(number: int) -> None:
        body = program(f"sin(v) + {number}.0")
        compiled[number] = compile_program(body, "wgsl", cache=cache, library=library)

    threads = [threading.Thread(target=compile_one, args=(n,)) for n in range(11, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(compiled) == list(range(11, 17))
    for number, code in compiled.items():
        assert f"{number}.0f".encode() in code.content


def test_programs_are_compiled_side_by_side_in_order(
    library: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "default_cache", lambda: cache)
    monkeypatch.setattr(compiling, "library_folder", lambda: library)
    bodies = [program(f"cos(v) + {number}.0") for number in range(21, 27)]
    codes = begin_compilations(bodies, "wgsl")
    for number, code in zip(range(21, 27), codes, strict=True):
        assert f"{number}.0f".encode() in code.result().content
    *sound, broken = begin_compilations([*bodies, program("no_such_name")], "wgsl")
    assert all(code.result().content for code in sound)
    with pytest.raises(CompileError) as caught:
        broken.result()
    assert caught.value.code == "SR0501"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_host_gets_its_own_child() -> None:
    ours = Child()
    pid = ours.request({"kind": "ping"}, 60.0)["pid"]
    forked = os.fork()
    if forked == 0:
        theirs = ours.request({"kind": "ping"}, 60.0)["pid"]
        ours.close()
        os._exit(0 if theirs != pid else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert ours.request({"kind": "ping"}, 60.0)["pid"] == pid
    ours.close()


def test_the_child_ends_with_its_host() -> None:
    script = (
        "import os; from shaderad.compiler.child import children\n"
        "print(children().request({'kind': 'ping'}, 60.0)['pid'], flush=True); os._exit(9)"
    )
    host = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=paths()
    )
    assert host.returncode == 9
    pid = int(host.stdout)
    deadline = time.monotonic() + 20.0
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)


def paths() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_late_reply_never_answers_the_next_request(tmp_path: Path) -> None:
    ours = Child()
    # Loading the compiler alone takes longer than no time at all.
    slow = {"kind": "compile", "slang": "", "entry": "f", "format": "spirv", "digest": ""}
    pid = ours.request({"kind": "ping"}, 60.0)["pid"]
    with pytest.raises(ChildTimedOut):
        ours.request({**slow, "folders": [str(tmp_path)]}, 0.0)
    assert ours.request({"kind": "ping"}, 60.0)["pid"] != pid
    ours.close()


def test_a_hit_needs_no_child_and_no_slangpy(library: Path, cache: Cache) -> None:
    compile_program(program(), "spirv", cache=cache, library=library)
    script = f"""
import sys
from pathlib import Path
from shaderad.compiler.artifact import Program
from shaderad.compiler.cache import Cache
from shaderad.compiler import compile as compiling
compiling.children = None  # A miss would fail.
program = Program("f_primal", {program().slang!r}, (64, 1, 1), ())
arguments = dict(cache=Cache(Path({str(cache.folder)!r})), library=Path({str(library)!r}))
compiling.compile_program(program, "spirv", **arguments)
assert not {{"slangpy", "wgpu"}} & set(sys.modules), sys.modules
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=paths()
    )
    assert run.returncode == 0, run.stderr
