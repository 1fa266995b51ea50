"""What pages claim of this repository: files are there, commands are understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.blocks import blocks_of
from tests.documents.commands import run_command
from tests.samples.loading import ROOT

PAGES = [
    "README.md",
    *sorted(
        str(page.relative_to(ROOT))
        for folder in ("benchmarks", "docs", "samples")
        for page in (ROOT / folder).rglob("*.md")
    ),
]
PLACE = re.compile(r"`((?:shaderad|shaders|docs|samples|scripts|tests|benchmarks)/[\w/.]+)`")
BARE = re.compile(r"`(\w+\.py)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)\)")


GENERATED = re.compile(r"<!-- (?:errors|api):.*?<!-- end -->", re.DOTALL)


def written(page: str) -> str:
    """What people wrote of a page: without the parts that scripts/docs/reference.py makes."""
    return GENERATED.sub("", (ROOT / page).read_text())


def named_files(page: str) -> list[Path]:
    text = (ROOT / page).read_text()
    linked = [(ROOT / page).parent / link for link in LINK.findall(text)]
    return linked + [ROOT / place for place in PLACE.findall(text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    assert [str(path) for path in named_files(page) if not path.exists()] == []


def test_files_are_found_in_links_and_in_code() -> None:
    named = named_files("docs/ARCHITECTURE.md")
    assert ROOT / "docs/../samples/hosts/kernels.py" in named
    assert ROOT / "shaderad/decorators.py" in named


def test_every_short_file_name_of_the_architecture_is_one_of_the_frontend() -> None:
    names = BARE.findall((ROOT / "docs/ARCHITECTURE.md").read_text())
    assert names
    assert [name for name in names if not (ROOT / "shaderad/frontend" / name).exists()] == []


def test_the_architecture_names_every_stage_folder() -> None:
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    folders = {p.parent.name for p in (ROOT / "shaderad").glob("*/__init__.py")}
    missing = {f for f in folders if f"shaderad/{f}/" not in text}
    assert missing == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_script_that_a_page_runs_exists_and_has_those_options(
    page: str, tmp_path: Path
) -> None:
    """The commands of the README and of docs/ are run, too, by `test_blocks.py`."""
    for block in blocks_of(ROOT / page):
        if block.language == "sh":
            for line in re.findall(r"^(?:python|scripts/run) .*$", block.text, re.MULTILINE):
                run_command(line, tmp_path)


@pytest.mark.parametrize("page", ["README.md", *(p for p in PAGES if p.startswith("docs/"))])
def test_no_code_stands_without_a_fence_and_thus_without_a_test(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", written(page), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"(?<=\n\n)(?: {4}|\t)\S.*", text) == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_short(page: str) -> None:
    """Rows of tables are looked up, not read."""
    limit = 150 if page == "README.md" else 250
    assert sum(not line.startswith("| ") for line in written(page).splitlines()) < limit
