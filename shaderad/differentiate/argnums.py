"""``argnums`` and the arguments of transforms, checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.trees import struct_fields
from shaderad.diagnostics import error, text_of
from shaderad.differentiate.leaves import Linearised
from shaderad.ir import types


def positions_of(argnums: int | Sequence[int], count: int) -> list[int]:
    """Checked positions of positional arguments."""
    items = list(argnums) if isinstance(argnums, tuple | list) else [argnums]
    found: list[int] = []
    for item in items:
        try:
            position = operator.index(item)  # pyright: ignore[reportArgumentType]
        except TypeError:
            raise error("SR0455", found=text_of(item), count=count) from None
        if isinstance(item, bool) or not 0 <= position < count:
            raise error("SR0455", found=text_of(item), count=count)
        found.append(position)
    return found


def spread_tangents(given: Any, argnums: int | Sequence[int], count: int) -> list[Any]:
    """The tangents of all primals, of which only those in `argnums` move."""
    positions = positions_of(argnums, count)
    moving: Sequence[Any] = given if isinstance(argnums, tuple | list) else (given,)
    if not isinstance(moving, tuple | list) or len(moving) != len(positions):
        found = len(moving) if isinstance(moving, tuple | list) else 1
        raise error("SR0459", primals=len(positions), tangents=found)
    tangent_by_position = dict(zip(positions, moving, strict=True))
    return [tangent_by_position.get(k) for k in range(count)]


def check_differentiable(at: Linearised, positions: Sequence[int]) -> None:
    for position in positions:
        if not at.is_differentiable(position):
            raise error("SR0456", position=position)


def check_one_array(given: Any, position: int) -> None:
    is_floats = isinstance(given, Array) and types.is_float(given.element)
    if isinstance(given, Array) or struct_fields(given) is not None:
        is_plain = is_floats
    else:
        is_list = isinstance(given, tuple | list | dict)
        is_plain = not is_list and np.asarray(given).dtype.kind in "fiu"
    if not is_plain:
        raise error("SR0468", position=position, found=trees.described(given))


def as_arguments(given: Any) -> Sequence[Any]:
    """A tuple or list of arguments; anything else is one argument."""
    return cast("Sequence[Any]", given) if isinstance(given, tuple | list) else (given,)
