"""The quick start, from top to bottom, in an empty folder with nothing but the installed wheel."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import Block, blocks_of
from tests.documents.page_pictures import are_alike
from tests.documents.page_run import matches
from tests.packaging.environments import Environment
from tests.samples.loading import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.gpu]

PAGE = ROOT / "docs" / "quick_start.md"
LIBRARIES = (
    "torch torchgen functorch sympy mpmath networkx jinja2 markupsafe fsspec typing_extensions "
    "PIL pillow.libs"
)
"""Pillow and PyTorch, which the page installs, and what they import."""


def test_the_quick_start_runs_with_the_wheel_alone(complete: Environment, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("PIL.Image")
    place = tmp_path / "place"
    place.mkdir()
    environment = Environment(complete.folder)
    environment.place = place
    blocks = blocks_of(PAGE)
    for block in blocks:
        if block.title:
            (place / block.title).write_text(block.text, encoding="utf-8")
    (place / "program.py").write_text("\n".join(statements(blocks, linked(tmp_path))))
    printed = environment.printed("program.py")
    shown = "".join(block.text for block in blocks if block.language == "text")
    assert matches(shown, printed), printed
    kept = ROOT / "docs" / "pictures" / "quick_start.png"
    assert are_alike(place / "fit.png", kept), "save the page's fit.png as docs/pictures"


def statements(blocks: list[Block], libraries: Path) -> Iterator[str]:
    """The page as one program, in which commands run where they stand."""
    yield f"import pathlib, subprocess, sys; sys.path.append({str(libraries)!r})"
    for block in blocks:
        if block.language == "python" and not block.title:
            yield block.text
        elif block.language == "sh" and block.text.startswith("shaderad"):
            yield "command = [str(pathlib.Path(sys.executable).with_name('shaderad'))]"
            yield f"command += {shlex.split(block.text)[1:]!r}"
            yield "print(subprocess.run(command, capture_output=True, text=True).stdout, end='')"


def linked(folder: Path) -> Path:
    """A folder with this Python's libraries, and nothing else of its packages."""
    links = folder / "libraries"
    links.mkdir()
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    packages = Path(spec.origin).parents[1]
    for name in LIBRARIES.split():
        for path in (packages / name, packages / f"{name}.py"):
            if path.exists():
                (links / path.name).symlink_to(path)
    assert (links / "torch").exists(), sys.path
    return links
