"""The names by which a manifest mentions element types -> the types."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shaderad.bundle.description import Layout
from shaderad.ir.types import Kind, LocalArray, Matrix, Pointer, Scalar, Struct, Type, Vector

_BUILTIN = re.compile(r"(float|half|double|int|uint|bool)(?:([2-4])(?:x([2-4]))?)?")
_LOCAL_ARRAY = re.compile(r"LocalArray\[(.+), (\d+)\]")


class TypeNames:
    """The types of one manifest; inverse of `manifest.Types`."""

    def __init__(self, layouts: Mapping[str, Layout]) -> None:
        self._layouts = layouts
        self._known: dict[str, Type] = {}

    def type(self, name: str) -> Type:
        """The type.

        Raises:
            KeyError: Where the manifest does not say what `name` is.
        """
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Type:
        builtin = _BUILTIN.fullmatch(name)
        if builtin is not None:
            scalar = Scalar(Kind(builtin[1]))
            if builtin[2] is None:
                return scalar
            count = int(builtin[2])
            return Matrix(scalar, count, int(builtin[3])) if builtin[3] else Vector(scalar, count)
        local_array = _LOCAL_ARRAY.fullmatch(name)
        if local_array is not None:
            return LocalArray(self.type(local_array[1]), int(local_array[2]))
        layout = self._layouts[name]
        if layout.element:
            return Pointer(self.type(layout.element), layout.pointers[0].target)
        return Struct(name, tuple((f.name, self.type(f.type)) for f in layout.fields))
