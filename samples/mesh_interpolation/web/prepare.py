"""Writes the page that fits the mesh in a browser: WGSL, a manifest, arrays, HTML and scripts.

    python samples/mesh_interpolation/web/prepare.py [OUT]
    python -m http.server -d samples/mesh_interpolation/out/page

Any file server can serve it, because no Python runs behind it: the graphs of `steps.py` are built
here, and the page runs their plans by the loader of samples/hosts/web. No device is needed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad

HERE = Path(__file__).parent
SAMPLE = HERE.parent
PAGE = ("*.html", "*.css", "*.js")
SHARED = [
    SAMPLE.parent / "hosts" / "web" / "shaderad.js",
    *(SAMPLE.parent / "live" / name for name in ("canvas.js", "curve.js", "page.css", "parts.js")),
]
"""The loader of builds, and files that pages of other samples use as well."""
# The graphs of each file that the page runs.
BUILDS = {
    "steps": ["hits_of", "picture", "difference", "heated", "color_step", "normal_step"],
    "position_steps": ["adjacent", "watched", "position_step"],
}
SURFACE = {
    "model": "spot",
    "first": [["hits_of", ["hits"]], ["picture", ["target"]]],
    "size": 512,
    "schedule": {"lr": [0.05, 0.05]},
    "scheduled": 1,
}
FITS = {
    "colors": {
        **SURFACE,
        "title": "Colours",
        "graph": "color_step",
        "fitted": "colors",
        "start": "grey",
    },
    "normals": {
        **SURFACE,
        "title": "Normals",
        "graph": "normal_step",
        "fitted": "normals",
        "start": "flat",
    },
    "positions": {
        "title": "Positions",
        "model": "marbled",
        "first": [["adjacent", ["adjacency"]], ["watched", ["targets", "shown"]]],
        "graph": "position_step",
        "fitted": "positions",
        "start": "dented",
        "size": 256,
        "schedule": {"lr": [0.03, 0.003], "stiffness": [30.0, 1.0], "outlier": [0.15, 0.02]},
        "scheduled": 200,
    },
}
"""The fits on the page. Each has the model, the graphs that run before the first step and the use
of their outputs, the graph of a step, the input that it moves, and inputs that change from one
number to another in a number of steps."""

Arrays = dict[str, tuple[str, np.ndarray[Any, Any]]]
"""The type of elements and their numbers by name; the last axis holds those of one element."""


def spot(subdivisions: int) -> Arrays:
    """The model whose colours and normals are fitted, and their initial values."""
    import fit
    import scene

    model = scene.spot(subdivisions)
    to_camera = -np.asarray(scene.orbit().forward)
    return {
        **mesh(model),
        "grey": ("float3", np.full_like(model.colors, fit.GREY)),
        "flat": ("float3", np.broadcast_to(to_camera, model.normals.shape)),
    }


def marbled() -> Arrays:
    """The model whose positions are fitted, and its views."""
    import scene

    model = scene.spot(subdivisions=0)
    model = replace(model, colors=scene.marbled(model.positions))
    views = [np.reshape(part, (len(part), -1)) for part in scene.together(scene.around()).values()]
    return {
        **mesh(model),
        "dented": ("float3", scene.dented(model.positions)),
        "neighbours": ("int", scene.neighbours_of(model.corners)),
        "views": ("Camera", np.concatenate(views, axis=1)),
    }


def mesh(model: Any) -> Arrays:
    vectors = ("positions", "normals", "colors")
    return {
        "corners": ("int3", model.corners),
        **{name: ("float3", getattr(model, name)) for name in vectors},
    }


def write_data(out: Path, subdivisions: int) -> None:
    """Writes all arrays, packed, and their description for the page."""
    import scene

    told = {}
    for model, arrays in {"spot": spot(subdivisions), "marbled": marbled()}.items():
        (out / model).mkdir(exist_ok=True)
        for name, (kind, array) in arrays.items():
            packed = array.astype("<i4" if kind.startswith("int") else "<f4")
            packed.tofile(out / model / f"{name}.bin")
            shape = packed.shape if kind == "int" else packed.shape[:-1]
            told[f"{model}/{name}"] = {"type": kind, "shape": shape}
    camera = {"aim": scene.AIM.tolist(), "focal": scene.FOCAL, "distance": scene.DISTANCE,
              "turn": scene.TURN, "lift": scene.LIFT}  # fmt: skip
    content = {"builds": list(BUILDS), "arrays": told, "camera": camera, "fits": FITS}
    (out / "scene.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def write_page(out: Path, subdivisions: int) -> None:
    """Writes all files of the page."""
    out.mkdir(parents=True, exist_ok=True)
    for name, graphs in BUILDS.items():
        # A step contains the gradient that the page needs, and is not differentiated itself.
        source, folder = SAMPLE / f"{name}.py", out / name
        sad.build(source, folder, entries=graphs, targets="wgsl", wrt="none")
    write_data(out, subdivisions)
    for path in [*SHARED, *(found for pattern in PAGE for found in HERE.glob(pattern))]:
        shutil.copyfile(path, out / path.name)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=SAMPLE / "out" / "page")
    parser.add_argument(
        "--subdivisions", type=int, default=1, choices=range(4), help="of the mesh; default: 1"
    )
    given = parser.parse_args(arguments)
    sys.path.insert(0, str(SAMPLE))
    try:
        write_page(given.out, given.subdivisions)
    except OSError as failure:
        parser.error(f"cannot write into {given.out}: {failure.strerror or failure}")
    print(f"wrote {given.out}; serve it: python -m http.server -d {given.out}")


if __name__ == "__main__":
    main()
