"""Runs the notebooks of docs/notebooks and writes what their cells show.

Run ``python scripts/docs/notebooks.py [DIR]``: the notebooks with new outputs go to DIR, by default
to where they are. The outputs are in the repository, because readers on the web see nothing else.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
SECONDS_PER_CELL = 300
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def run(path: Path, out: Path) -> None:
    """Writes the notebook at `path` with its outputs to the folder `out`.

    Raises:
        CellExecutionError: Where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    settings = {"timeout": SECONDS_PER_CELL, "extra_arguments": ["--log-level=ERROR"]}
    place = {"metadata": {"path": str(out)}}
    NotebookClient(notebook, kernel_name="python3", resources=place, **settings).execute()
    # No times, versions or random names: the same outputs give the same bytes.
    notebook.metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):  # Values as text beside a picture or table.
                output.data.pop("text/plain", None)
    nbformat.write(notebook, out / path.name)


def main() -> None:
    out = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    os.environ["SHADERAD_PROGRESS"] = "0"  # What compiles long on one machine does not on another.
    for path in sorted(FOLDER.glob("*.ipynb")):
        run(path, out)


if __name__ == "__main__":
    main()
