"""The wheel and the sdist, installed where nothing else of the repository is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.documents.blocks import blocks_of
from tests.packaging.environments import COMPILER, PROJECT, Environment, names
from tests.samples.loading import ROOT

pytestmark = pytest.mark.slow

HERE = ROOT / "tests" / "packaging"
TARGETS = ("spirv", "wgsl")
WHERE = "import shaderad; print(shaderad.__file__, shaderad.__version__)"


def test_the_wheel_has_every_file_of_the_package_and_no_other(built: tuple[Path, Path]) -> None:
    wheel, sdist = built
    package = {f"shaderad/{path}" for path in tracked("shaderad")}
    package |= {f"shaderad/shaders/{path}" for path in tracked("shaders")}
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == package
    assert {"shaderad/py.typed", "shaderad/bundle/manifest.schema.json"} <= files
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "tests/packaging/test_wheel.py"} <= held


def tracked(folder: str) -> list[str]:
    """The files of a folder that are in the repository, or would be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, check=True)
    return listed.stdout.split()


@pytest.mark.gpu
def test_the_wheel_alone_runs_a_kernel_and_its_gradient(complete: Environment) -> None:
    file, version = complete.printed("-c", WHERE).split()
    assert Path(file).is_relative_to(complete.folder)
    assert version == PROJECT["version"]
    shutil.copy(HERE / "consumer.py", complete.place)
    shapes, ratio, *report = complete.printed("consumer.py").splitlines()
    assert shapes == "(3,) (3, 3)"
    assert ratio == "1.0"
    assert report[0] == "gradcheck of shade: vjp agrees with jvp"
    assert report[-1] == "(3,) 2"
    assert complete.command("doctor").returncode == 0


def test_a_program_that_is_type_checked_against_the_wheel_passes(complete: Environment) -> None:
    pytest.importorskip("pyright")
    shutil.copy(HERE / "consumer.py", complete.place)
    wrong = complete.place / "wrong.py"
    wrong.write_text("import shaderad as sad\nx: int = sad.array([1.0])\n")
    assert errors_of(complete, "consumer.py") == []
    (error,) = errors_of(complete, "wrong.py")
    assert '"Array" is not assignable to "int"' in error


def errors_of(environment: Environment, file: str) -> list[str]:
    """What pyright has against a file in its strict mode."""
    (environment.place / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath",
               str(environment.python), file]  # fmt: skip
    done = subprocess.run(
        command, cwd=environment.place, capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    return [each["message"] for each in found["generalDiagnostics"]]


def without_compiler() -> list[list[str]]:
    """What docs/install.md tells pip for an installation without the compiler, a call a line."""
    page = blocks_of(ROOT / "docs" / "install.md")
    (text,) = (block.text for block in page if "--no-deps" in block.text)
    lines = text.replace("\\\n", " ").replace("'", "").splitlines()
    return [line.split()[2:] for line in lines]


def test_an_installation_without_the_compiler_has_all_other_dependencies() -> None:
    package, dependencies = without_compiler()
    assert package == ["--no-deps", "."]
    wanted = [one for one in PROJECT["dependencies"] if not one.startswith(COMPILER)]
    assert names(dependencies) == names(wanted)
    bounded = [one for one in wanted if "<" in one]
    assert [one for one in dependencies if re.search("[<>=]", one)] == bounded


@pytest.mark.gpu
def test_builds_run_with_their_gradients_where_there_is_no_compiler(
    built: tuple[Path, Path], complete: Environment, tmp_path: Path
) -> None:
    _, sdist = built
    shutil.copy(HERE / "model.py", complete.place)
    for target in TARGETS:
        done = complete.command("build", "model.py", "-o", target, "--target", target)
        assert done.returncode == 0, done.stderr
    bare = Environment.made(tmp_path)
    (_, dependencies) = without_compiler()
    bare.install("--no-deps", str(sdist))
    bare.install(*dependencies)
    shutil.copy(HERE / "without_compiler.py", bare.place)
    shutil.copy(HERE / "model.py", bare.place)
    folders = [str(complete.place / target) for target in TARGETS]
    assert bare.printed("without_compiler.py", *folders) == "{'wgpu'}\n"
    doctor = bare.command("doctor")
    assert doctor.returncode == 0
    assert "nothing can be compiled, folders of `shaderad build` run" in doctor.stdout
    assert "-> pip install slangpy" in doctor.stdout
    refused = bare.command("build", "model.py", "-o", "again")
    assert refused.returncode == 1
    assert "pip install slangpy" in refused.stderr
    assert bare.command("inspect", folders[0]).returncode == 0
