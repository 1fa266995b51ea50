"""What the README and the architecture page claim: files are there, the example runs as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shaderad as sad
from tests.samples.loading import ROOT, module_of

PAGES = [
    "README.md",
    "docs/ARCHITECTURE.md",
    "samples/first_steps/README.md",
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
def test_the_example_of_the_readme_prints_what_it_says(
    device: sad.Device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    code, printed = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)[0]
    script = tmp_path / "readme_example.py"
    script.write_text(code)
    module_of(script, "readme_example")
    assert capsys.readouterr().out == printed
