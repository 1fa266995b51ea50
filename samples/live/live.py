"""A sample's graphs and arrays -> a page that runs its fit in a browser: WGSL, HTML, scripts.

Any file server can serve it, because no Python runs behind it. A sample provides a file of graphs,
one of which is `step`. Its inputs are the constants, then the carry; its outputs are the loss, then
the new carry. Every other graph is a view, which makes a picture or a film from inputs of `step`.
No device is needed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad

HERE = Path(__file__).parent
LOADER = HERE.parent / "hosts" / "web" / "shaderad.js"
PAGE = ("*.html", "*.css", "*.js")


@dataclass(frozen=True)
class Page:
    """The texts and options of a page."""

    title: str
    text: str
    size: int
    """Pixels along an edge of the view, a multiple of 8."""
    steps: int
    """The number of steps after which the page stops."""
    views: Mapping[str, str]
    """The graphs that make pictures, by their names on the page."""


def write_page(out: Path, source: Path, page: Page, arrays: Mapping[str, Any]) -> None:
    """Writes all files of the page.

    Args:
        out: The folder.
        source: The file of the graphs.
        page: The texts and options of the page.
        arrays: The initial inputs of `step` by name: `model.w1` for `model["w1"]`. Other inputs
            are zeros.
    """
    out.mkdir(parents=True, exist_ok=True)
    graphs = ["step", *page.views.values()]
    # A step contains the gradient that the page needs, and is not differentiated itself.
    sad.build(source, out / "build", entries=graphs, targets="wgsl", wrt="none")
    inputs = inputs_of_step(out / "build")
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        extents = inputs[name]["shape"]
        shape = np.shape(array)[: len(extents)]
        sizes |= {e: n for e, n in zip(extents, shape, strict=True) if isinstance(e, str)}
        packed(array, inputs[name]["type"]).tofile(out / f"{name}.bin")
    content = {**asdict(page), "sizes": sizes, "arrays": list(arrays)}
    (out / "page.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for path in [LOADER, *(found for pattern in PAGE for found in HERE.glob(pattern))]:
        shutil.copyfile(path, out / path.name)
    print(f"wrote {out}; serve it: python -m http.server -d {out}")


def inputs_of_step(build: Path) -> dict[str, Any]:
    """The inputs of the graph `step`, by name."""
    manifest = json.loads((build / "manifest.json").read_text(encoding="utf-8"))
    (step,) = (entry for entry in manifest["entries"] if entry["name"] == "step")
    return {one["name"]: one for one in step["inputs"]}


def packed(array: Any, kind: str) -> np.ndarray[Any, Any]:
    """Elements of a type in the layout of a buffer."""
    word = "<u4" if kind.startswith("uint") else "<i4" if kind.startswith("int") else "<f4"
    return np.ascontiguousarray(array, word)
