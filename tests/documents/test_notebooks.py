"""Notebooks run, and show what is kept in them; the site shows it, too."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.samples.loading import ROOT, module_of

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 100_000
"""Bytes of a notebook: pictures of 64 pixels a side are a few thousand."""
ROUNDING = {"rtol": 1e-2, "atol": 2e-4}
"""Of what is printed with four digits, after some hundred steps of a fit on another device."""
NUMBER = re.compile(r"-?\d+\.?\d*")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def cells_of(path: Path, kind: str) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def shown(path: Path) -> Iterator[tuple[list[str], str]]:
    """The forms and the text of each output, the shares of gradcheck's tolerance left out."""
    for cell in cells_of(path, "code"):
        for output in cell["outputs"]:
            assert output["output_type"] != "error", output
            text = "".join(output.get("text") or output["data"].get("text/plain", ""))
            yield sorted(output.get("data", {})), re.sub(r"\d+%", "%", text)


@pytest.mark.gpu
@pytest.mark.slow
def test_notebooks_run_and_show_what_they_are_kept_with(tmp_path: Path) -> None:
    # Imported, some of them warn of things that are no concern of ours.
    missing = [name for name in ("nbclient", "ipykernel", "torch") if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    try:
        sad.open_device("wgpu").close()
    except sad.DeviceError as failure:
        pytest.skip(failure.message)
    command = [sys.executable, "scripts/docs/notebooks.py", str(tmp_path)]
    settings = os.environ | {"SHADERAD_DEVICE": "wgpu"}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for path in NOTEBOOKS:
        for (forms, text), (kept_forms, kept) in zip(
            shown(tmp_path / path.name), shown(path), strict=True
        ):
            assert forms == kept_forms
            assert NUMBER.split(text) == NUMBER.split(kept)
            numbers, wanted = (list(map(float, NUMBER.findall(one))) for one in (text, kept))
            np.testing.assert_allclose(numbers, wanted, **ROUNDING)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_its_links_lead_to_files(path: Path) -> None:
    assert path.stat().st_size < LARGEST
    text = "".join("".join(cell["source"]) for cell in cells_of(path, "markdown"))
    linked = LINK.findall(text)
    assert linked
    assert [link for link in linked if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_pictures_and_no_error(path: Path) -> None:
    outputs = [output for cell in cells_of(path, "code") for output in cell["outputs"]]
    pictures = [one for one in outputs if "data:image/png" in str(one.get("data"))]
    assert len(pictures) >= 2
    assert all(text or "text/html" in forms for forms, text in shown(path))


def test_a_page_of_a_notebook_has_its_cells_and_what_they_show() -> None:
    pages = module_of(ROOT / "scripts" / "docs" / "notebook_pages.py")
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "[a](../a.md#b) [c](c.ipynb)"]},
        {
            "cell_type": "code",
            "source": ["f()"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n", "2\n"]},
                {"output_type": "display_data", "data": {"text/plain": ["x"]}},
                {"data": {"text/html": ["<b>\n\n", "</b>"], "text/plain": ["y"]}},
            ],
        },
    ]
    assert pages.page_of({"cells": cells}, "n.ipynb") == (
        "# Title\n[a](a.md#b) [c](notebook_c.md)\n\n*A notebook: [n.ipynb](notebooks/n.ipynb).*\n\n"
        "```python\nf()\n```\n\n```text\n1\n2\n```\n\n```text\nx\n```\n\n<div><b>\n</b></div>\n"
    )
