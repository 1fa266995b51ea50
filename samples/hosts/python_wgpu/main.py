"""The gradients of a mesh, a graph and a texture, by raw wgpu from builds, without shaderad.

    python samples/hosts/python_wgpu/main.py [FOLDER] [--target wgsl|spirv]

FOLDER is the output of `prepare.py`, by default `out` beside it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from shaderad_build import Array, Build, HostError

TOLERANCE = 1e-5
"""Relative to the largest number: float32, hundreds of terms added in any order."""
UNIT_TOLERANCE = 4e-3
"""For texture units of GPUs, which filter with weights of eight bits."""
ARRAYS = {
    "mesh_corners": "int3",
    "mesh_colors": "float3",
    "samples": "Sample",
    "target": "float3",
}


def data(folder: Path, name: str) -> bytes:
    try:
        return (folder / f"{name}.bin").read_bytes()
    except OSError as failure:
        raise HostError(f"{failure.filename}: {failure.strerror}; run prepare.py") from None


def run_kernel(out: Path, target: str) -> bool:
    """Computes the gradient of a mesh, and returns true if all numbers are as expected."""
    build = Build(out / "mesh", target)
    kernel = build.kernel("squared_error")
    inputs = {name: build.array(data(out / "mesh_data", name), t) for name, t in ARRAYS.items()}
    dim = inputs["samples"].shape
    found = kernel.primal(inputs, dim, shapes={"total": (1,)})
    one = build.array(np.float32(1).tobytes(), "float")
    found |= kernel.backward(inputs, {"total": one}, dim, shapes={"total": (1,)})
    judged = [agrees(build, out / "mesh_data", name, array) for name, array in found.items()]
    return all(judged)


def run_graph(out: Path) -> bool:
    """The same for a graph, which `prepare.py` built for WGSL."""
    build = Build(out / "scan", "wgsl")
    x = build.array(data(out / "scan_data", "x"), "float")
    one = build.array(np.float32(1).tobytes(), "float", ())
    value, gradient = build.graph("scan_product").run("backward", [x, one])
    found = {"value": value, "x": gradient}
    judged = [agrees(build, out / "scan_data", name, array) for name, array in found.items()]
    return all(judged)


def run_texture(out: Path, target: str) -> bool:
    """The same for a texture."""
    build = Build(out / "texture", target)
    kernel = build.kernel("squared_difference")
    folder = out / "texture_data"
    levels = [data(folder, name) for name in ("picture", "picture_mip")]
    inputs = {
        "picture": build.texture(levels, (24, 16, 1)),
        "smooth": build.sampler(),
        "at": build.array(data(folder, "at"), "float2"),
        "target": build.array(data(folder, "target"), "float4"),
    }
    dim = inputs["at"].shape
    found = kernel.primal(inputs, dim, shapes={"total": (1,)})
    one = build.array(np.float32(1).tobytes(), "float")
    bars = kernel.backward(inputs, {"total": one}, dim, shapes={"total": (1,)})
    is_right = agrees(build, folder, "total", found["total"], UNIT_TOLERANCE)
    return all([is_right, *(agrees(build, folder, *item) for item in bars.items())])


def agrees(
    build: Build, folder: Path, name: str, array: Array, tolerance: float = TOLERANCE
) -> bool:
    """True if an array agrees with that of the Python API; all its parts are float32, or zero."""
    found = np.frombuffer(build.read(array), np.float32)
    wanted = np.frombuffer(data(folder, f"expected_{name}"), np.float32)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    print(f"{name:12} {len(array.shape) and array.shape[0]:5} elements   error {error:.1e}")
    return bool(error <= tolerance)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[1] / "out")
    parser.add_argument("--target", choices=["wgsl", "spirv"], default="wgsl")
    given = parser.parse_args()
    try:
        is_right = run_kernel(given.folder, given.target)
        is_right = run_graph(given.folder) and is_right
        is_right = run_texture(given.folder, given.target) and is_right
    except HostError as failure:
        sys.exit(f"error: {failure}")
    print("PASS" if is_right else "FAIL")
    sys.exit(not is_right)


if __name__ == "__main__":
    main()
