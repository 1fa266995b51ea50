"""The command line: options, exit codes, and messages instead of tracebacks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from shaderad import cli, doctor
from shaderad.doctor import Finding

KERNELS = """
import shaderad as sad


@sad.kernel
def scale(i: sad.Index, x: sad.In[float], count: sad.Const[int], y: sad.Out[float]):
    y[i] = x[i] * count


@sad.kernel
def shuffle(i: sad.Index, x: sad.In[float], target: sad.In[int], y: sad.Out[float]):
    y[target[i]] = x[i]
"""


@dataclass(frozen=True)
class Finished:
    """How a run of the command ended."""

    code: int
    out: str
    err: str
    steps: list[str]
    """What `build` said it was doing, on standard error too."""


Run = Callable[..., Finished]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `shaderad ...` in a folder that holds `kernels.py`."""
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["shaderad", *arguments])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        lines = said.err.splitlines(keepends=True)
        steps = [line.strip() for line in lines if line.startswith("build: ")]
        err = "".join(line for line in lines if not line.startswith("build: "))
        return Finished(code if isinstance(code, int) else 0, said.out, err, steps)

    return run


def built_kernels(folder: str) -> dict[str, set[str]]:
    """The targets of each entry that the manifest lists."""
    manifest = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
    return {entry["name"]: set(entry["targets"]) for entry in manifest["entries"]}


TARGETS = ("spirv", "hlsl", "wgsl")


def test_a_build_says_what_it_made_and_what_has_no_backward(run: Run) -> None:
    done = run("build", "kernels.py", "-o", "out", "--define", "count=3")
    steps = [f"build: {name} for {t}" for name in ("scale", "shuffle") for t in TARGETS]
    assert (done.code, done.err, done.steps) == (0, "", steps)
    first, second, reason, *_, last = done.out.splitlines()
    assert first == "scale    primal, backward  spirv hlsl wgsl"
    assert second == "shuffle  primal only       spirv hlsl wgsl"
    assert "no backward: SR0414" in reason
    assert "(kernels.py:11)" in reason
    assert last.startswith("wrote ")
    assert last.endswith(" files to out")
    everywhere = {"spirv", "hlsl", "wgsl"}
    assert built_kernels("out") == {"scale": everywhere, "shuffle": everywhere}


def test_targets_add_up_over_options_and_commas(run: Run) -> None:
    targets = ("--target", "metal,hlsl", "--target", "spirv-core")
    assert run("build", "kernels.py:shuffle", "--out", "out", "--no-validate", *targets).code == 0
    assert built_kernels("out") == {"shuffle": {"metal", "hlsl", "spirv-core"}}


def test_definitions_and_bounds_reach_the_kernels(run: Run) -> None:
    options = ("--define", "scale.count=7", "--bounds", "unchecked", "--target", "wgsl")
    assert run("build", "kernels.py:scale", "-o", "out", *options).code == 0
    slang = Path("out/wgsl/scale_primal.slang").read_text(encoding="utf-8")
    assert "7.0" in slang
    assert "report" not in slang


def test_entries_are_named_in_the_source_or_by_option(run: Run) -> None:
    options = ("--entry", "scale", "--define", "count=2", "--target", "wgsl", "--no-validate")
    assert run("build", "kernels.py", "-o", "one", *options).code == 0
    assert set(built_kernels("one")) == {"scale"}
    assert run("build", "kernels.py:shuffle", "-o", "both", *options).code == 0
    assert set(built_kernels("both")) == {"scale", "shuffle"}


def test_workgroups_and_places_are_those_of_the_command(run: Run) -> None:
    options = ("--workgroup", "32", "--space", "2", "--binding-base", "7", "--no-validate")
    assert run("build", "kernels.py:shuffle", "-o", "out", "--target", "wgsl", *options).code == 0
    code = Path("out/wgsl/shuffle_primal.wgsl").read_text(encoding="utf-8")
    assert "@workgroup_size(32, 1, 1)" in code
    assert "@binding(7) @group(2) var<uniform> parameters" in code


def test_atomics_and_features_change_the_targets(run: Run) -> None:
    options = (
        "--target",
        "spirv,wgsl",
        "--atomics",
        "spirv:exchange",
        "--features",
        "no-subgroups",
    )
    assert run("build", "kernels.py:shuffle", "-o", "out", "--no-validate", *options).code == 0
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    assert {t["atomics"] for t in manifest["targets"].values()} == {"exchange"}
    assert [t["features"] for t in manifest["targets"].values()] == [[], []]


def test_a_report_tells_what_threads_move(run: Run) -> None:
    options = ("--define", "count=3", "--target", "wgsl", "--no-validate", "--report")
    lines = run("build", "kernels.py", "-o", "out", *options).out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if " wgsl " in line}
    size = Path("out/wgsl/scale_bwd.wgsl").stat().st_size
    assert rows["scale_primal"][:5] == ["wgsl", "4", "4", "0", "0"]
    assert rows["scale_bwd"] == ["wgsl", "4", "4", "0", "0", "3", str(size)]
    assert rows["shuffle_primal"][:5] == ["wgsl", "8", "4", "0", "0"]
    assert "    gradient of x: exclusive" in lines


def test_json_is_one_document_of_result_and_report(run: Run) -> None:
    options = ("--define", "count=3", "--target", "wgsl", "--json")
    done = run("build", "kernels.py", "-o", "out", *options)
    document = json.loads(done.out)
    assert (done.code, document["ok"], document["folder"]) == (0, True, "out")
    assert all((Path("out") / name).is_file() for name in document["files"])
    scale, shuffle = document["entries"]
    assert scale["targets"]["wgsl"] == {"modes": ["primal", "backward"], "refusals": {}}
    refusal = shuffle["targets"]["wgsl"]["refusals"]["backward"]
    assert (refusal["code"], refusal["line"]) == ("SR0414", 11)
    assert {one["validator"] for one in document["validators"]} == {"naga"}
    backward = document["report"][1]
    assert backward["entry_point"] == "scale_bwd"
    assert (backward["read_bytes"], backward["strategies"]) == (4, {"x": "exclusive"})
    assert document["diagnostics"] == []


def test_json_of_a_failure_says_where_it_is(run: Run) -> None:
    Path("bad.py").write_text(f"{KERNELS}\n    y[i] = 'text'", encoding="utf-8")
    done = run("build", "bad.py", "-o", "out", "--define", "count=3", "--json")
    document = json.loads(done.out)
    assert (done.code, document["ok"]) == (1, False)
    assert done.err == ""
    (found,) = document["diagnostics"]
    assert (found["code"], found["line"]) == ("SR0202", 14)
    assert Path(found["file"]).name == "bad.py"
    assert (found["column"], found["end_column"]) == (12, 18)
    assert not Path("out").exists()


def test_inspect_tells_of_a_folder_and_fails_where_files_differ(run: Run) -> None:
    run("build", "kernels.py:shuffle", "-o", "out", "--target", "wgsl", "--no-validate")
    done = run("inspect", "out")
    assert (done.code, done.err) == (0, "")
    assert "kernel shuffle[i] (kernels.py:11), bounds raise" in done.out
    Path("out/wgsl/shuffle_primal.wgsl").unlink()
    assert run("inspect", "out").code == 1
    missing = run("inspect", "nowhere")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("error[SR0720]: ")


def test_help_teaches_by_examples_that_are_understood(run: Run) -> None:
    done = run("build", "--help")
    examples = re.findall(r"^ +shaderad (build model\.py.*?) *$", done.out, re.MULTILINE)
    assert len(examples) == 4
    for example in examples:
        words = example.replace("model.py", "kernels.py").split()
        # The file has other entries, so that nothing is built; but the options are understood.
        assert run(*words, "--entry", "missing").code == 1
    assert "Exit codes: 0" in done.out


def test_validators_are_asked_unless_told_not_to(run: Run) -> None:
    asked = run("build", "kernels.py:shuffle", "-o", "out", "--target", "spirv")
    assert "spirv-val" in asked.out
    unasked = run("build", "kernels.py:shuffle", "-o", "out", "--target", "spirv", "--no-validate")
    assert (unasked.code, "spirv-val" in unasked.out) == (0, False)


BUILD = ("build", "kernels.py", "-o", "out", "--target", "wgsl")
FAILURES = {
    "no such file": (("build", "missing.py", "-o", "out"), "SR0701"),
    "no such kernel": (("build", "kernels.py:sacle", "-o", "out"), "SR0704"),
    "no constant given": (BUILD, "SR0705"),
    "definition without value": ((*BUILD, "--define", "count"), "SR0706"),
    "definition that is no literal": ((*BUILD, "--define", "count=many"), "SR0706"),
    "definition of nothing": ((*BUILD, "--define", "count=1", "--define", "size=1"), "SR0707"),
    "definition of the wrong type": ((*BUILD, "--define", "count=1.5"), "SR0303"),
    "definition that is no number": ((*BUILD, "--define", "count='3'"), "SR0227"),
    "glsl": (("build", "kernels.py", "-o", "out", "--target", "wgsl,glsl"), "SR0504"),
    "atomics that a target lacks": ((*BUILD, "--atomics", "native"), "SR0743"),
    "no such feature": ((*BUILD, "--features", "doubles"), "SR0741"),
    "too many threads": ((*BUILD, "--workgroup", "512"), "SR0745"),
    "no such entry": ((*BUILD, "--entry", "sacle"), "SR0704"),
    "no target": (("build", "kernels.py", "-o", "out", "--target", ""), "SR0713"),
    "a file as folder": (("build", "kernels.py", "-o", "kernels.py"), "SR0708"),
    "no gradient where one is required": (
        (*BUILD, "--define", "count=1", "--require-bwd"),
        "SR0710",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_build_that_fails_says_why_and_writes_nothing(run: Run, name: str) -> None:
    arguments, code = FAILURES[name]
    done = run(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error[{code}]: ")
    assert " = help: " in done.err
    assert [p.name for p in Path().iterdir()] == ["kernels.py"]


def test_glsl_is_refused_with_the_targets_that_work(run: Run) -> None:
    done = run("build", "kernels.py", "-o", "out", "--target", "glsl")
    assert "`glsl`" in done.err
    for target in ("spirv", "spirv-core", "hlsl", "wgsl", "metal"):
        assert f"`{target}`" in done.err


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("def f(:", "SR0702", "def f(:"),
        ("import nowhere_at_all", "SR0702", "import nowhere_at_all"),
        ("import shaderad as sad\n\nx = sad.InOut[float]", "SR0229", "x = sad.InOut[float]"),
        (f"{KERNELS}\n    y[i] = 'text'", "SR0202", "y[i] = 'text'"),
        ("x = 1", "SR0703", ""),
    ],
    ids=["syntax", "import", "unknown name", "kernel", "no kernel"],
)
def test_what_is_wrong_in_the_file_is_shown_at_its_line(
    run: Run, text: str, code: str, line: str
) -> None:
    Path("wrong.py").write_text(text, encoding="utf-8")
    done = run("build", "wrong.py", "-o", "out", "--target", "wgsl", "--define", "count=1")
    assert done.code == 1
    assert done.err.startswith(f"error[{code}]: ")
    assert line in done.err
    assert not Path("out").exists()


def test_a_second_build_keeps_the_files_of_others(run: Run) -> None:
    options = ("-o", "out", "--no-validate", "--target")
    assert run("build", "kernels.py:shuffle", *options, "wgsl").code == 0
    Path("out/mine.txt").write_text("mine", encoding="utf-8")
    assert run("build", "kernels.py:shuffle", *options, "metal").code == 0
    assert Path("out/mine.txt").read_text(encoding="utf-8") == "mine"
    assert built_kernels("out") == {"shuffle": {"metal"}}
    assert not Path("out/wgsl").exists()


def test_a_build_over_files_of_others_is_refused(run: Run) -> None:
    mine = Path("out/metal/shuffle_primal.metal")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    done = run("build", "kernels.py:shuffle", "-o", "out", "--target", "metal")
    assert done.code == 1
    assert done.err.startswith("error[SR0709]: `metal/shuffle_primal.metal` is in the way")
    assert [p for p in Path("out").rglob("*") if p.is_file()] == [mine]
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that even root cannot write to")
def test_a_folder_that_cannot_be_written_to_is_said(run: Run) -> None:
    done = run("build", "kernels.py:shuffle", "-o", "/proc/out", "--target", "metal")
    assert done.code == 1
    assert done.err.startswith("error[SR0708]: cannot write to the folder `/proc/out`")


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "kernels.py"),
        ("build", "-o", "out"),
        ("build", "kernels.py", "-o", "out", "--bounds", "clamp"),
        ("build", "kernels.py", "-o", "out", "--fast"),
        ("make",),
        (),
    ],
)
def test_a_command_line_that_is_wrong_ends_with_two(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2
    assert not Path("out").exists()


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == Finished(0, f"{metadata.version('shaderad')}\n", "", [])


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("failed", 1)])
def test_doctor_ends_with_zero_where_a_runtime_works(
    run: Run, monkeypatch: pytest.MonkeyPatch, status: doctor.Kind, code: int
) -> None:
    found = Finding("runtimes", "wgpu", status, "this one", "update it")
    monkeypatch.setattr(doctor, "examine", lambda: [found])
    done = run("doctor")
    assert done.code == code
    assert "this one" in done.out
    assert "-> update it" in done.out


def test_the_installed_command_ends_as_the_function_does(run: Run) -> None:
    del run
    command = [sys.executable, "-c", "from shaderad.cli import main; main()", "build", "missing.py"]
    done = subprocess.run([*command, "-o", "out"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[SR0701]: there is no file `missing.py`")


SHARED = """
import shaderad as sad


@sad.function
def weight(w: sad.In[float], k: int) -> float:
    return w[k + 1]


@sad.kernel
def shared(i: sad.Index, w: sad.In[float], at: sad.In[int], x: sad.In[float], y: sad.Out[float]):
    total = w[at[i]] * x[i]
    for k in range(9):
        total += w[k] * weight(w, k)
    y[i] = total
"""


@pytest.mark.parametrize(
    ("target", "by"), [("spirv", "wave"), ("spirv-core", "group"), ("wgsl", "group")]
)
def test_a_report_tells_how_each_read_is_added(run: Run, target: str, by: str) -> None:
    Path("shared.py").write_text(SHARED, encoding="utf-8")
    options = ("--target", target, "--no-validate", "--wrt", "w", "--report")
    lines = run("build", "shared.py", "-o", "out", *options).out.splitlines()
    start = lines.index("    gradient of w: scattered")
    assert lines[start + 1 :][:3] == [
        f"        line 7, `w[k + 1]`: one add a {by}",
        "        line 12, `w[at[i]]`: one add a thread",
        f"        line 14, `w[k]`: one add a {by}",
    ]
