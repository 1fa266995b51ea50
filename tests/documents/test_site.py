"""The documentation as a site: built strictly, without a network for whoever reads it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.samples.loading import ROOT

LOADED = re.compile(r'(?:src|href)="(https?://[^"]*)"[^>]*>')
LINKS = re.compile(r'<a [^>]*href="https?://[^"]*"[^>]*>')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(out)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = LINKS.sub("", page.read_text(encoding="utf-8"))
        assert LOADED.findall(text) == [], page.name


def test_the_site_has_every_page_and_every_error(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}
    assert 'id="SR0415"' in (site / "errors.html").read_text(encoding="utf-8")


def test_the_site_shows_notebooks_with_their_outputs(site: Path) -> None:
    for notebook in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        text = (site / f"notebook_{notebook.stem}.html").read_text(encoding="utf-8")
        assert text.count('src="data:image/png;base64,') >= 2
        assert (site / "notebooks" / notebook.name).read_bytes() == notebook.read_bytes()


def test_a_code_in_prose_leads_to_its_row(site: Path) -> None:
    text = (site / "limitations.html").read_text(encoding="utf-8")
    assert '<a href="errors.html#SR0415">SR0415</a>' in text


def test_files_of_the_repository_that_pages_link_to_are_in_the_site(site: Path) -> None:
    text = (site / "quick_start.html").read_text(encoding="utf-8")
    (linked, *_) = re.findall(r'href="(source/samples/[^"]*README\.md\.txt)"', text)
    assert (site / linked).read_bytes() == (ROOT / linked[7:-4]).read_bytes()
