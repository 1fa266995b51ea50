"""Results and gradients of a call -> vectors of their floats, and a vector -> a cotangent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from shaderad.check.slots import Slot
from shaderad.check.vectors import Vector, filled, floats_of, has_floats
from shaderad.ir import types
from shaderad.session import trees
from shaderad.session.arrays import Array


def gradient_vectors(
    slots: Sequence[Slot], args: Sequence[Any], pulled: Sequence[Any]
) -> list[Vector]:
    found: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        if isinstance(part, Array):
            found.append(floats_of(part.numpy()))

    def collect_columns(given: Any, column: Any) -> None:
        """A dict of columns was one array of structs; its gradient is one too."""
        if isinstance(given, Mapping):
            for field, part in cast("Mapping[str, Any]", given).items():
                collect_columns(part, column[field])
        elif has_floats(np.asarray(given)):
            found.append(floats_of(column))

    for given, gradient in zip(args, pulled, strict=True):
        if isinstance(given, Mapping) and isinstance(gradient, Array):
            collect_columns(given, gradient.numpy())
        else:
            trees.mapped(collect, given, gradient)
    if [one.size for one in found] != [slot.values.size for slot in slots]:
        raise RuntimeError("gradients do not match the arguments they belong to")
    return found


def result_floats(out: Any) -> Vector:
    parts = [
        floats_of(leaf.numpy())
        for leaf in trees.leaves(out)
        if isinstance(leaf, Array) and types.is_differentiable(leaf.element)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def derivative_floats(out: Any, pushed: Any) -> Vector:
    parts: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        if isinstance(part, Array):
            parts.append(floats_of(part.numpy()))

    trees.mapped(collect, out, pushed)
    return np.concatenate(parts) if parts else np.zeros(0)


def as_tree(out: Any, cotangent: Vector) -> Any:
    offset = 0

    def part(leaf: Any) -> Any:
        nonlocal offset
        if not isinstance(leaf, Array) or not types.is_differentiable(leaf.element):
            return None
        blank = np.zeros_like(leaf.numpy())
        count = floats_of(blank).size
        offset += count
        return filled(blank, cotangent[offset - count : offset])

    return trees.mapped(part, out)
