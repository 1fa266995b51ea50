"""Every code block of the README and of docs/ does what its page says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shaderad as sad
from tests.documents.blocks import Block, blocks_of
from tests.documents.page_pictures import PAGE_PICTURES, are_alike
from tests.documents.page_run import PageRun, found_in, holds, matches
from tests.samples.loading import ROOT

DOCS = sorted((ROOT / "docs").glob("*.md"))
LIBRARIES = {"torch": "torch", "scale": "torch", "jax": "jax", "quick_start": "torch"}
"""Pages whose blocks need a library that is not always there, and its module."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a page runs: it sees the samples as from the root of the repository."""
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def any_device() -> Iterator[None]:
    try:
        opened = sad.open_device()
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    with opened:
        yield
    opened.close()


def run_page(page: Path, folder: Path) -> None:
    run = PageRun(page.stem, folder)
    try:
        for block in blocks_of(page):
            try:
                run.do(block)
            except (AssertionError, Exception) as failure:
                raise AssertionError(f"{page.name}:{block.first_line}: {failure}") from failure
        run.finish()
    finally:
        run.close()


@pytest.mark.gpu
@pytest.mark.usefixtures("device")
def test_every_block_of_the_readme_does_what_it_says(folder: Path) -> None:
    run_page(ROOT / "README.md", folder)


@pytest.mark.gpu
@pytest.mark.usefixtures("any_device")
@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_every_block_of_a_page_does_what_it_says(page: Path, folder: Path) -> None:
    if page.stem in LIBRARIES:
        pytest.importorskip(LIBRARIES[page.stem])
    run_page(page, folder)
    if page.stem in PAGE_PICTURES:
        written, shown = PAGE_PICTURES[page.stem]
        assert are_alike(folder / written, ROOT / "docs/pictures" / shown), f"copy {written} there"


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```\n```text\n2\n```\n",
        "```python\nprint(1)\n```\n",
        "```text\n1\n```\n",
        "```sh\nshaderad biuld model.py\n```\n",
        "```sh\nscripts/run nothing\n```\n",
        "```sh\nrm -r build\n```\n",
        "```py\nf(1)\n```\n",
        "```slang\nfloat f()\n```\n",
    ],
)
def test_a_block_that_is_not_true_is_found(text: str, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match="page"):
        run_page(page, folder)


def test_three_dots_stand_for_anything_in_what_is_shown() -> None:
    assert matches("loss ...\ndone", "loss 0.25\ndone\n")
    assert not matches("loss ...", "gain 0.25")
    assert found_in("a\n    b(1);\n    c;\n", "b(...);\nc;")


def test_json_that_is_shown_may_leave_out_fields_but_not_change_them() -> None:
    actual = {"kernels": [{"name": "shade", "words": [1, 2]}]}
    assert holds(actual, {"name": "shade"})
    assert not holds(actual, {"name": "light"})
    assert not holds(actual, {"words": [1]})


def test_blocks_know_their_titles_and_lines(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text('# A\n\n```python title="a.py"\nx = 1\n```\n')
    assert blocks_of(tmp_path / "page.md") == [Block("python", "a.py", 4, "x = 1\n")]
