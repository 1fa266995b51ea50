"""What the README and the architecture page claim: files are there, the example runs as shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shaderad as sad
from shaderad.cli import app
from tests.samples.loading import ROOT, module_of

PAGES = [
    "README.md",
    "benchmarks/README.md",
    "docs/ARCHITECTURE.md",
    "samples/first_steps/README.md",
    "samples/hosts/README.md",
    "samples/mesh_interpolation/README.md",
]
PLACE = re.compile(r"`((?:shaderad|shaders|docs|samples|scripts|tests|benchmarks)/[\w/.]+)`")
BARE = re.compile(r"`(\w+\.py)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def named_files(page: str) -> list[Path]:
    text = (ROOT / page).read_text()
    linked = [(ROOT / page).parent / link for link in LINK.findall(text)]
    return linked + [ROOT / place for place in PLACE.findall(text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = named_files(page)
    assert named
    assert [str(path) for path in named if not path.exists()] == []


def test_every_short_file_name_of_the_architecture_is_one_of_the_frontend() -> None:
    names = BARE.findall((ROOT / "docs/ARCHITECTURE.md").read_text())
    assert names
    assert [name for name in names if not (ROOT / "shaderad/frontend" / name).exists()] == []


def test_the_architecture_names_every_stage_folder() -> None:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    folders = {p.parent.name for p in (ROOT / "shaderad").glob("*/__init__.py")}
    missing = {f for f in folders if f"shaderad/{f}/" not in text}
    assert missing == set()


@pytest.mark.gpu
@pytest.mark.parametrize("position", [0, 1])
def test_an_example_of_the_readme_prints_what_it_says(
    position: int, device: sad.Device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    examples = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    code, printed = examples[position]
    script = tmp_path / "readme_example.py"
    script.write_text(code)
    module_of(script, "readme_example")
    assert capsys.readouterr().out == printed


@pytest.mark.gpu
def test_the_slang_of_the_readme_is_what_its_example_becomes(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    shown = re.findall(r"```slang\n(.*?)```", text, re.DOTALL)[0]
    script = tmp_path / "readme_example.py"
    script.write_text(code)
    sad.build(script, tmp_path / "out", targets="metal")
    emitted = (tmp_path / "out/metal/shade_bwd.slang").read_text()
    start, _, end = shown.partition("..;")  # The README leaves out the rest of the sum.
    assert start in emitted
    assert end == "\n}\n"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_understood(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    for line in re.findall(r"^\.venv/bin/shaderad (.*)$", text, re.MULTILINE):
        arguments = shlex.split(line)
        if arguments[0] == "build":
            arguments[arguments.index("-o") + 1] = str(tmp_path / "out")
            arguments[1] = str(ROOT / arguments[1])
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{line}: {result.output}{result.exception}"
    jobs = (ROOT / "scripts/run").read_text()
    for job in re.findall(r"scripts/run (\w+)", text):
        assert f"\n{job})" in jobs
