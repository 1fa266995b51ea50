"""``argnums`` and the arguments of transforms, checked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

from shaderad.diagnostics import error, text_of
from shaderad.differentiate.leaves import Linearised


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


def as_arguments(given: Any) -> Sequence[Any]:
    """A tuple or list of arguments; anything else is one argument."""
    return cast("Sequence[Any]", given) if isinstance(given, tuple | list) else (given,)
