"""Writes the page that fits the mesh in a browser: WGSL, a manifest, arrays, HTML and scripts.

    python samples/mesh_interpolation/web/prepare.py [OUT]
    python -m http.server -d samples/mesh_interpolation/out/page

Any server of files will do, and no Python runs behind it: the graphs of `steps.py` are built here,
and the page runs their plans by the loader of samples/hosts/web. No device is needed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad

HERE = Path(__file__).parent
SAMPLE = HERE.parent
LOADER = SAMPLE.parent / "hosts" / "web" / "shaderad.js"
PAGE = ("*.html", "*.css", "*.js")
FITS = {
    "colors": {"title": "Colours", "graph": "color_step", "fitted": "colors", "lr": 0.05},
    "normals": {"title": "Normals", "graph": "normal_step", "fitted": "normals", "lr": 0.05},
}
"""What the page offers: the graph of a step, the input that it moves, and how fast."""

Array = np.ndarray[Any, Any]


def write_data(out: Path, subdivisions: int) -> None:
    """The mesh and what fits start from, packed, and what the page must know of them."""
    sys.path.insert(0, str(SAMPLE))
    import fit
    import scene

    model = scene.spot(subdivisions)
    to_camera = -np.asarray(scene.orbit().forward)
    vectors = {
        "positions": model.positions,
        "normals": model.normals,
        "colors": model.colors,
        "start_colors": np.full_like(model.colors, fit.GREY),
        "start_normals": np.broadcast_to(to_camera, model.normals.shape),
    }
    model.corners.astype("<i4").tofile(out / "corners.bin")
    for name, array in vectors.items():
        array.astype("<f4").tofile(out / f"{name}.bin")
    content = {
        "arrays": {"corners": "int3", **dict.fromkeys(vectors, "float3")},
        "camera": {"aim": scene.AIM.tolist(), "focal": scene.FOCAL, "distance": scene.DISTANCE,
                   "turn": scene.TURN, "lift": scene.LIFT},
        "fits": {name: {**fit, "start": f"start_{name}"} for name, fit in FITS.items()},
    }  # fmt: skip
    (out / "scene.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=SAMPLE / "out" / "page")
    parser.add_argument("--subdivisions", type=int, default=1, help="of the mesh; default: 1")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    sad.build(SAMPLE / "steps.py", given.out / "build", targets="wgsl")
    write_data(given.out, given.subdivisions)
    for path in [LOADER, *(found for pattern in PAGE for found in HERE.glob(pattern))]:
        shutil.copyfile(path, given.out / path.name)
    print(f"wrote {given.out}; serve it: python -m http.server -d {given.out}")


if __name__ == "__main__":
    main()
