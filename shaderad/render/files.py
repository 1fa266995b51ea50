"""Files of meshes and pictures -> NumPy arrays, through trimesh and pillow (extra `render`)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary

__all__ = ["Mesh", "load_image", "load_mesh"]

Floats = np.ndarray[Any, np.dtype[np.float32]]
Ints = np.ndarray[Any, np.dtype[np.int32]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Mesh(NamedTuple):
    """A mesh of triangles, in NumPy arrays.

    Attributes:
        positions: float32 of shape [vertices, 3].
        triangles: int32 of shape [triangles, 3], indices of vertices.
        uv: Texture coordinates at the vertices, float32 of shape [vertices, 2], with (0, 0) at
            the top left of the picture; `None` if the file has none.
        colors: Colours at the vertices, float32 of shape [vertices, 3], from 0 to 1 as in the
            file; `None` if it has none.
    """

    positions: Floats
    triangles: Ints
    uv: Floats | None
    colors: Floats | None


@api_boundary
def load_mesh(path: str | Path) -> Mesh:
    """Reads a file of triangles: OBJ, PLY, STL, glTF, or another format that trimesh reads.

    Args:
        path: The file; its suffix gives the format. Several meshes in it become one.

    Returns:
        The mesh. Vertices at the same position with different texture coordinates stay separate.

    Raises:
        MissingPackageError: SR0624 without trimesh.
        Error: SR0813 for a file that cannot be read, or has no triangles.
    """
    trimesh: Any = _package("trimesh", "trimesh")
    file = _existing(path)
    try:
        mesh = trimesh.load(file, force="mesh", process=False)
    except Exception as failure:  # readers of trimesh may raise anything
        raise error("SR0813", path=file, reason=f"{type(failure).__name__}: {failure}") from None
    faces = np.asarray(getattr(mesh, "faces", ()), np.int32).reshape(-1, 3)
    if not len(faces):
        raise error("SR0813", path=file, reason="it has no triangles")
    visual = mesh.visual
    uv, colors = getattr(visual, "uv", None), None
    if visual.kind == "vertex":
        colors = np.asarray(visual.vertex_colors[:, :3] / 255, np.float32)
    return Mesh(
        np.asarray(mesh.vertices, np.float32),
        faces,
        None if uv is None else np.asarray(uv * [1, -1] + [0, 1], np.float32),
        colors,
    )


@api_boundary
def load_image(path: str | Path) -> Bytes:
    """Reads a picture: PNG, JPEG, WebP, or another format that pillow reads.

    Args:
        path: The file.

    Returns:
        uint8 of shape [height, width, channels], with 1 channel for grey or 3 for colours, and one
        more for alpha. The colours are in sRGB: ``Texture(load_image(path), srgb=True)``.

    Raises:
        MissingPackageError: SR0624 without pillow.
        Error: SR0813 for a file that cannot be read.
    """
    pillow: Any = _package("PIL.Image", "pillow")
    file = _existing(path)
    try:
        with pillow.open(file) as picture:
            mode = {"1": "L", "LA": "LA", "L": "L", "RGBA": "RGBA"}.get(picture.mode)
            has_alpha = "transparency" in picture.info or picture.mode.endswith(("A", "a"))
            data = np.asarray(picture.convert(mode or ("RGBA" if has_alpha else "RGB")))
    except OSError as failure:
        raise error("SR0813", path=file, reason=str(failure)) from None
    return cast("Bytes", data[..., None] if data.ndim == 2 else data)


def _package(module: str, library: str) -> Any:
    """Imports a module of an optional package."""
    if find_spec(module.partition(".")[0]) is None:
        raise error("SR0624", name="render", library=library)
    return import_module(module)


def _existing(path: str | Path) -> Path:
    file = Path(path)
    if not file.is_file():
        raise error("SR0813", path=file, reason="there is no such file")
    return file
