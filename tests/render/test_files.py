"""Meshes and pictures from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shaderad as sad
from shaderad import render

OBJ = """
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
f 1/1 2/2 3/3 4/4
"""


def test_mesh_has_the_triangles_and_coordinates_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "square.obj"
    path.write_text(OBJ)
    mesh = render.load_mesh(path)
    assert (mesh.positions.dtype, mesh.triangles.dtype) == (np.float32, np.int32)
    assert mesh.triangles.shape == (2, 3)
    a, b, c = (mesh.positions[mesh.triangles[:, k]] for k in range(3))
    assert np.isclose(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum(), 1.0)
    assert mesh.uv is not None
    # A picture's rows go down where the file's second coordinate goes up.
    assert np.allclose(mesh.uv, mesh.positions[:, :2] * [1, -1] + [0, 1])
    assert mesh.colors is None


def test_mesh_has_the_colors_of_its_vertices(tmp_path: Path) -> None:
    path = tmp_path / "colors.ply"
    head = "ply\nformat ascii 1.0\nelement vertex 3\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    head += "".join(f"property uchar {color}\n" for color in ("red", "green", "blue"))
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    path.write_text(head + "0 0 0 255 0 0\n1 0 0 0 255 0\n0 1 0 0 0 51\n3 0 1 2\n")
    mesh = render.load_mesh(path)
    assert mesh.colors is not None
    assert np.allclose(mesh.colors, [[1, 0, 0], [0, 1, 0], [0, 0, 0.2]])
    assert mesh.uv is None


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4), ("P", 3), ("1", 1)]
)
def test_picture_has_the_channels_of_its_file(tmp_path: Path, mode: str, channels: int) -> None:
    data = np.random.default_rng(0).integers(0, 256, (5, 7, 4)).astype(np.uint8)
    path = tmp_path / "picture.png"
    Image.fromarray(data[..., :3] if mode == "P" else data).convert(mode).save(path)
    found = render.load_image(str(path))
    assert found.dtype == np.uint8
    assert found.shape == (5, 7, channels)
    if mode == "RGBA":
        assert np.array_equal(found, data)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"nothing")
    empty = tmp_path / "empty.obj"
    empty.write_text("v 0 0 0\n")
    unknown = tmp_path / "mesh.unknown"
    unknown.write_text("")
    for read, path in ((render.load_image, broken), (render.load_image, tmp_path / "no.png"),
                       (render.load_mesh, empty), (render.load_mesh, unknown),
                       (render.load_mesh, tmp_path / "no.obj")):  # fmt: skip
        with pytest.raises(sad.Error, match=f"SR0813.*{path.name}"):
            read(path)
