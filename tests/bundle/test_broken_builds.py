"""Builds that fail say why, under a code, and leave the folder as it was: see broken_builds.py."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import shaderad as sad
from shaderad import cli
from tests.bundle.broken_builds import CASES, FINE, Broken, a_person_interrupts

USUAL = ("build", "model.py", "-o", "out", "--no-validate", "--target", "wgsl")

Ended = tuple[int, str, str]
"""Exit code, standard output, standard error."""


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in paths}


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a build in it."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "model.py").write_text(FINE, encoding="utf-8")
    sad.build(folder / "model.py", folder / "out", targets="wgsl", validate=False)
    return folder


@pytest.fixture
def run(
    earlier: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[[Broken], Ended]:
    """Runs a command over a copy of the earlier build."""

    def run(case: Broken) -> Ended:
        shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
        if case.source:
            text = case.source if isinstance(case.source, bytes) else case.source.encode()
            (tmp_path / "model.py").write_bytes(text)
        for name, content in case.files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        arguments = case.instead or (*USUAL, *case.arguments)
        monkeypatch.setattr(sys, "argv", ["shaderad", *arguments])
        with monkeypatch.context() as patch:
            if case.breaks is not None:
                case.breaks(patch)
            with pytest.raises(SystemExit) as end:
                cli.main()
        said = capsys.readouterr()
        return end.value.code if isinstance(end.value.code, int) else 0, said.out, said.err

    return run


@pytest.mark.parametrize("name", CASES)
def test_a_broken_build_says_why_and_changes_nothing(
    name: str, run: Callable[[Broken], Ended], tmp_path: Path, earlier: Path
) -> None:
    case = CASES[name]
    code, out, err = run(case)
    lines = [line for line in err.splitlines() if not line.startswith("build: ")]
    if case.code:
        assert code == 1
        assert lines[0].startswith(f"error[{case.code}]: "), err
        assert " = help: " in err
    else:
        assert code == 2
        assert lines[0].startswith("Usage: ")
    assert case.words in err
    assert out == ""
    assert "Traceback" not in err
    found = files_in(tmp_path)
    assert found.keys() == {*files_in(earlier), *case.files}
    expected = {n: c for n, c in files_in(earlier).items() if n.startswith("out/")}
    assert {n: found[n] for n in expected} == expected
    assert all(found[n] == text.encode() for n, text in case.files.items())


def test_a_bug_of_ours_is_said_in_a_line_and_kept_in_a_file(
    run: Callable[[Broken], Ended],
) -> None:
    _, _, err = run(CASES["a bug of ours"])
    (path,) = re.findall(r"the traceback is in `(.*)`", err)
    assert "Traceback" in Path(path).read_text(encoding="utf-8")


def test_a_person_who_interrupts_gets_no_traceback(
    run: Callable[[Broken], Ended], tmp_path: Path, earlier: Path
) -> None:
    code, out, err = run(Broken("", "", breaks=a_person_interrupts))
    assert code != 0
    assert (out, "Traceback" in err) == ("", False)
    assert files_in(tmp_path) == files_in(earlier)


KILLED = """
import os, signal
from pathlib import Path
from shaderad.bundle.write.folder import write_folder

write, count = Path.write_bytes, [0]
def write_bytes(path, content):
    count[0] += 1
    if count[0] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(path, content)
Path.write_bytes = write_bytes
write_folder(Path("out"), {f"wgsl/{k}.wgsl": b"half" for k in range(9)})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_a_build_that_is_killed_while_it_writes_leaves_the_earlier_one(
    tmp_path: Path, earlier: Path
) -> None:
    shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
    command = (sys.executable, "-c", KILLED)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    assert files_in(tmp_path / "out") == files_in(earlier / "out")
    sad.build(tmp_path / "model.py", tmp_path / "out", targets="metal", validate=False)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["targets"]) == {"metal"}


def test_a_second_build_takes_the_place_of_the_first_in_one_step(
    tmp_path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
    exchanged: list[bool] = []
    rename = Path.rename

    def seen(path: Path, target: Path) -> Path:
        exchanged.append(False)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", seen)
    sad.build(tmp_path / "model.py", tmp_path / "out", targets="metal", validate=False)
    assert (tmp_path / "out/metal/scale_primal.metal").is_file()
    assert not (tmp_path / "out/wgsl").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"model.py", "out"}
    if sys.platform == "linux":
        assert not exchanged
