"""The documentation as a site: built strictly, without a network for whoever reads it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shaderad as sad
from tests.samples import browser
from tests.samples.loading import ROOT, module_of

LOADED = re.compile(r'(?:src|href)="(https?://[^"]*)"[^>]*>')
LINKS = re.compile(r'<a [^>]*href="https?://[^"]*"[^>]*>')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "docs" / "site.py"), "--out", str(out)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return out / sad.__version__


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


def test_a_link_to_a_notebook_leads_to_its_page_and_from_there_to_the_file(site: Path) -> None:
    assert 'href="notebook_first_steps.html"' in (site / "index.html").read_text()
    page = (site / "notebook_first_steps.html").read_text(encoding="utf-8")
    assert 'href="notebooks/first_steps.ipynb"' in page
    assert 'href="notebook_torch_training.html"' in page


def test_a_code_in_prose_leads_to_its_row(site: Path) -> None:
    text = (site / "limitations.html").read_text(encoding="utf-8")
    assert '<a href="errors.html#SR0415">SR0415</a>' in text


def test_files_of_the_repository_that_pages_link_to_are_pages(site: Path) -> None:
    text = (site / "fit_a_mesh.html").read_text(encoding="utf-8")
    assert 'href="source/samples/mesh_interpolation/index.html"' in text
    shown = (site / "source/samples/mesh_interpolation/kernels.py.html").read_text(encoding="utf-8")
    assert "NO_FACE" in shown
    assert "highlight" in shown


def test_what_a_linked_readme_links_to_is_in_the_site(site: Path) -> None:
    hosts = site / "source/samples/hosts"
    text = (hosts / "index.html").read_text(encoding="utf-8")
    for linked in ("cpp_vulkan/mesh.cpp.html", "web/index.html", "../../../plans.html"):
        assert f'href="{linked}"' in text
        assert (hosts / linked).is_file()


@pytest.fixture(scope="module")
def versions(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of several versions, to which the one that was built was added."""
    out = tmp_path_factory.mktemp("versions")
    for version in ("0.0.9", "0.0.10", "dev", sad.__version__):
        shutil.copytree(site, out / version)
    module_of(ROOT / "scripts" / "docs" / "site.py", "docs_site").index(out)
    return out


def test_versions_are_listed_from_the_newest_on_and_the_root_leads_there(versions: Path) -> None:
    listed = json.loads((versions / "versions.json").read_text(encoding="utf-8"))
    names = [each["version"] for each in listed]
    assert names == [sad.__version__, "0.0.10", "0.0.9", "dev"]
    assert [each["aliases"] for each in listed] == [["latest"], [], [], []]
    assert f"url={sad.__version__}/index.html" in (versions / "index.html").read_text()


SWITCHED = """new Promise((done) => {
    const look = () => {
        const links = [...document.querySelectorAll(".md-version__link")];
        const current = document.querySelector(".md-version__current");
        if (!links.length) return setTimeout(look, 50);
        done([current.textContent.trim(), ...links.map((one) => one.href)]);
    };
    look();
})"""


@pytest.mark.slow
@browser.needed
def test_a_page_has_a_menu_of_all_versions(versions: Path) -> None:
    with browser.chromium.served(versions) as address, browser.chromium.Tab(flags=()) as tab:
        tab.open(f"{address}/0.0.9/quick_start.html")
        current, *links = tab.value(SWITCHED)
    assert current.startswith("0.0.9")
    names = (sad.__version__, "0.0.10", "0.0.9", "dev")
    assert links == [f"{address}/{name}/" for name in names]
