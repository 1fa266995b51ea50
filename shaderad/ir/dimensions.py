"""The dimensions of textures, as a table: how texels are arranged, stored, addressed, and seen.

A texture has extents along x, y and z on level 0; a missing axis counts as 1. A level is half as
large as the level before along some axes. Along the others it has the same layers or faces.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shaderad.ir.tables import check_rows


class Dimension(Enum):
    """The arrangement of a texture's texels, and the shape in which an entry point sees a texture.

    The value is the word in `sad.texture` and manifests, which is WebGPU's view dimension.
    """

    __hash__ = object.__hash__

    LINE = "1d"
    PLANE = "2d"
    LAYERS = "2d-array"
    VOLUME = "3d"
    CUBE = "cube"

    @property
    def row(self) -> DimensionRow:
        """Its row in the table."""
        return _ROWS[self]


@dataclass(frozen=True, slots=True)
class DimensionRow:
    """The properties of a dimension."""

    name: str
    """The type of textures in annotations, manifests and Slang."""
    axes: int
    """The axes of a level, of which layers and faces are the first in NumPy. A kernel addresses a
    texel by as many ints, x first, and a sample by as many floats."""
    halved_axes: int
    """The axes, x first, along which a level is half as large as the level before."""
    step_axes: int
    """The floats of a step of `sample_grad`."""
    extents: str
    """The components of the size that `shape` of kernels gives, rows before columns."""
    texel_view: Dimension
    """The view through which programs load single texels. No target loads those of a cube."""
    is_filtered: bool = True
    """False if WGSL and Metal cannot sample levels, so that kernels compute samples from texels."""

    @property
    def has_layers(self) -> bool:
        """True if the last axis has layers or faces, which are as many on each level."""
        return self.axes > self.halved_axes

    @property
    def samples_layers(self) -> bool:
        """True if the last coordinate of a sample is a layer, which has no derivative."""
        return self.axes > self.step_axes

    def is_halved(self, letter: str) -> bool:
        """True if a level is half as large as the level before along axis `letter` of the size."""
        return "xyz".index(letter) < self.halved_axes


_ROWS = {
    Dimension.LINE: DimensionRow("Texture1D", 1, 1, 1, "x", Dimension.LINE, is_filtered=False),
    Dimension.PLANE: DimensionRow("Texture2D", 2, 2, 2, "yx", Dimension.PLANE),
    Dimension.LAYERS: DimensionRow("Texture2DArray", 3, 2, 2, "zyx", Dimension.LAYERS),
    Dimension.VOLUME: DimensionRow("Texture3D", 3, 3, 3, "zyx", Dimension.VOLUME),
    Dimension.CUBE: DimensionRow("TextureCube", 3, 2, 3, "yx", Dimension.LAYERS),
}
check_rows(_ROWS, Dimension)

FACE_COUNT = 6
"""The faces of a cube, +x, -x, +y, -y, +z, -z: layers of a texture."""
