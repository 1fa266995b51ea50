"""Builds the kernels for the hosts beside this script, and computes the numbers to compare with.

    python samples/hosts/prepare.py [OUT]

OUT/mesh, OUT/scan and OUT/texture are builds as an engine would ship them. OUT/mesh_data and the
like hold arrays without a header, with elements packed as in the builds: the arguments, and in
``expected_*.bin`` the results and gradients that shaderad's Python API computes for them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import shaderad as sad

HERE = Path(__file__).parent
MESH_SOURCE = HERE / "kernels.py"
GRAPH_SOURCE = HERE / "scan_product.py"
TEXTURE_SOURCE = HERE / "textured.py"
TARGETS = ("spirv", "hlsl", "wgsl")
VERTICES_PER_SIDE = 12
SAMPLES = 2000
SCAN_LENGTH = 5000
LEVEL_SHAPES, PLACES = {"picture": (16, 24, 4), "picture_mip": (8, 12, 4)}, 3000

Array = np.ndarray[Any, Any]


def mesh_arrays() -> dict[str, Array]:
    """A square grid of triangles, and random samples on it: about 40 for each vertex."""
    draw = np.random.default_rng(7)
    side = VERTICES_PER_SIDE
    first = np.arange(side * side).reshape(side, side)[:-1, :-1].reshape(-1, 1)
    triangles = np.array([[0, 1, side], [1, side + 1, side]])
    corners = (first + triangles[:, None]).reshape(-1, 3)
    uv = draw.random((SAMPLES, 2))
    outside = uv.sum(1) > 1
    uv[outside] = 1 - uv[outside]
    samples = np.zeros(SAMPLES, dtype=[("face", "<i4"), ("uv", "<f4", 2), ("light", "<f4", 3)])
    samples["face"] = draw.integers(0, len(corners), SAMPLES)
    samples["uv"] = uv
    samples["light"] = draw.uniform(0.5, 1.5, (SAMPLES, 3))
    return {
        "mesh_corners": corners.astype("<i4"),
        "mesh_colors": draw.random((side * side, 3)).astype("<f4"),
        "samples": samples,
        "target": draw.random((SAMPLES, 3)).astype("<f4"),
    }


def mesh_expected(given: Mapping[str, Array]) -> dict[str, Array]:
    """The squared error over all samples, and its gradients."""
    from kernels import Mesh, Sample, squared_error

    mesh = Mesh(
        sad.array(given["mesh_corners"], dtype=sad.int3),
        sad.array(given["mesh_colors"], dtype=sad.float3),
    )
    samples = sad.array(given["samples"], dtype=Sample)
    value, (by_mesh, by_samples, by_target) = sad.value_and_grad(squared_error, (0, 1, 2))(
        mesh, samples, given["target"], dim=SAMPLES, shapes={"total": (1,)}
    )
    return {
        "total": value.numpy(),
        "mesh_colors": by_mesh.colors.numpy(),
        "samples": by_samples.numpy(),
        "target": by_target.numpy(),
    }


def scan_arrays() -> dict[str, Array]:
    """Numbers near 1, whose running product neither grows nor vanishes."""
    return {"x": np.random.default_rng(8).uniform(0.99, 1.01, SCAN_LENGTH).astype("<f4")}


def scan_expected(given: Mapping[str, Array]) -> dict[str, Array]:
    from scan_product import scan_product

    value, gradient = sad.value_and_grad(scan_product)(given["x"])
    return {"value": value.numpy(), "x": gradient.numpy()}


def texture_arrays() -> dict[str, Array]:
    """The two levels of a picture, and points on it."""
    draw = np.random.default_rng(9)
    return {
        **{name: draw.random(shape).astype("<f4") for name, shape in LEVEL_SHAPES.items()},
        "at": draw.uniform(-0.5, 1.5, (PLACES, 2)).astype("<f4"),
        "target": draw.random((PLACES, 4)).astype("<f4"),
    }


def texture_expected(given: Mapping[str, Array]) -> dict[str, Array]:
    """The squared difference over all points, and its gradients.

    The gradient by the picture is an array of the texels of all levels.
    """
    from textured import squared_difference

    picture = sad.texture([given[name] for name in LEVEL_SHAPES])
    value, pullback = sad.vjp(
        squared_difference, picture, sad.sampler(), given["at"], given["target"],
        dim=PLACES, shapes={"total": (1,)},
    )  # fmt: skip
    by_levels, _, by_at, by_target = pullback(np.ones(1, "<f4"))
    return {
        "total": value.numpy(),
        "picture": np.concatenate([level.numpy().reshape(-1, 4) for level in by_levels]),
        "at": by_at.numpy(),
        "target": by_target.numpy(),
    }


def save(folder: Path, given: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in given.items():
        array.tofile(folder / f"{name}.bin")
    for name, array in expected.items():
        array.tofile(folder / f"expected_{name}.bin")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=HERE / "out")
    out = parser.parse_args(arguments).out
    sad.build(MESH_SOURCE, out / "mesh", targets=TARGETS)
    sad.build(GRAPH_SOURCE, out / "scan", targets="wgsl")
    sad.build(TEXTURE_SOURCE, out / "texture", targets=("spirv", "wgsl"))
    mesh, scan, texture = mesh_arrays(), scan_arrays(), texture_arrays()
    save(out / "mesh_data", mesh, mesh_expected(mesh))
    save(out / "scan_data", scan, scan_expected(scan))
    save(out / "texture_data", texture, texture_expected(texture))
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
