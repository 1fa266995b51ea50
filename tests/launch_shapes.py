"""Other numbers than those of `compiler.launch_shapes`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shaderad.compiler.launch_shapes import TABLE, LaunchShape, launch_shape


def shape_of(
    *, is_parallel: bool = True, has_float_atomics: bool = True, lanes: int = 1
) -> LaunchShape:
    """The row of a device."""
    return launch_shape(is_parallel=is_parallel, has_float_atomics=has_float_atomics, lanes=lanes)


def change_rows(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Gives devices that are opened, and plans that are made, these numbers from now on."""
    for kind, row in TABLE.items():
        monkeypatch.setitem(TABLE, kind, replace(row, **fields))
