"""Shell commands of a page -> run in its folder, or held to what is there.

Run: `shaderad ...`, `python FILE` of a file that the page wrote, and `cd` for imports. What changes
the machine and the repository's own scripts have tests of their own: the job, file, option or extra
must exist.
"""

from __future__ import annotations

import io
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

from typer.testing import CliRunner

from shaderad.cli import app
from tests.samples.loading import ROOT


def run_commands(text: str, folder: Path) -> str:
    """Runs a block's lines in `folder`, the working folder, and returns what they print."""
    lines = text.replace("\\\n", " ").splitlines()
    return "".join(run_command(line, folder) for line in lines)


def run_command(line: str, folder: Path) -> str:
    words = shlex.split(line, comments=True)
    settings: dict[str, str] = {}
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    if not words:
        return ""
    name = Path(words[0]).name if words[0].startswith(".venv/bin/") else words[0]
    assert name in _COMMANDS, f"the page's command is not known here: {line}"
    with mock.patch.dict("os.environ", settings):
        return _COMMANDS[name](words[1:], folder)


def _shaderad(arguments: list[str], _: Path) -> str:
    result = CliRunner().invoke(app, arguments)
    printed = result.stdout
    if result.exit_code:
        assert isinstance(result.exception, SystemExit | Exception)
        printed += f"{result.exception}\n"
    return printed


def _python(arguments: list[str], folder: Path) -> str:
    if arguments[0] == "-m":
        module = ROOT / arguments[1].replace(".", "/")
        is_ours = module.exists() or module.with_suffix(".py").exists()
        assert is_ours or arguments[1] == "http.server"
        return ""
    if (ROOT / arguments[0]).exists():
        text = (ROOT / arguments[0]).read_text(encoding="utf-8")
        options = [word for word in arguments[1:] if word.startswith("--")]
        assert [option for option in options if option not in text] == []
        return ""
    with (
        redirect_stdout(io.StringIO()) as printed,
        mock.patch.object(sys, "argv", arguments),
    ):
        runpy.run_path(str(folder / arguments[0]), run_name="__main__")
    return printed.getvalue()


def _cd(arguments: list[str], _: Path) -> str:
    """Python that starts in a folder of the repository imports what lies there."""
    (folder,) = arguments
    assert (ROOT / folder).is_dir()
    sys.path.insert(0, str(ROOT / folder))
    return ""


def _torchrun(arguments: list[str], folder: Path) -> str:
    (script,) = [k for k, word in enumerate(arguments) if word.endswith(".py")]
    assert (ROOT / arguments[script]).exists()
    return _python(arguments[script:], folder)


def _scripts_run(arguments: list[str], _: Path) -> str:
    assert f"\n{arguments[0]})" in (ROOT / "scripts/run").read_text(encoding="utf-8")
    return ""


def _pip(arguments: list[str], _: Path) -> str:
    assert arguments[0] == "install"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"\[([\w,]+)\]", " ".join(arguments)):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    return ""


def _apt_get(arguments: list[str], _: Path) -> str:
    assert arguments[0] == "install"
    known = (ROOT / "scripts/setup.sh").read_text(encoding="utf-8")
    assert [package for package in arguments[1:] if package not in known] == []
    return ""


_COMMANDS: dict[str, Callable[[list[str], Path], str]] = {
    "cd": _cd,
    "shaderad": _shaderad,
    "python": _python,
    "torchrun": _torchrun,
    "scripts/run": _scripts_run,
    "pip": _pip,
    "apt-get": _apt_get,
}
