"""Results and gradients of a call -> vectors of their floats, and a vector -> a cotangent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.check.slots import Slot
from shaderad.check.vectors import Vector, filled, floats_of, has_floats
from shaderad.ir import types


def gradient_vectors(
    slots: Sequence[Slot], args: Sequence[Any], pulled: Sequence[Any]
) -> list[Vector]:
    """The floats of the gradients `pulled`, one vector per slot."""
    vectors: list[Vector] = []
    for arg, gradient in zip(args, pulled, strict=True):
        if isinstance(arg, Mapping) and isinstance(gradient, Array):
            vectors += _column_vectors(arg, gradient.numpy())
        else:
            vectors += _part_vectors(arg, gradient)
    if [vector.size for vector in vectors] != [slot.values.size for slot in slots]:
        raise RuntimeError("gradients do not match the arguments they belong to")
    return vectors


def _column_vectors(columns: Any, gradient: Any) -> list[Vector]:
    """A dict of columns was an array of structs; its gradient is such an array too."""
    if isinstance(columns, Mapping):
        fields = cast("Mapping[str, Any]", columns).items()
        return [v for name, column in fields for v in _column_vectors(column, gradient[name])]
    return [floats_of(gradient)] if has_floats(np.asarray(columns)) else []


def _part_vectors(tree: Any, derivative: Any) -> list[Vector]:
    """The floats of each array in `derivative`, which is built like `tree`."""
    vectors: list[Vector] = []

    def collect(_: Any, part: Any) -> None:
        if isinstance(part, Array):
            vectors.append(floats_of(part.numpy()))

    trees.mapped(collect, tree, derivative)
    return vectors


def result_floats(out: Any) -> Vector:
    """The floats of all results as one vector."""
    return _joined(
        [
            floats_of(leaf.numpy())
            for leaf in trees.leaves(out)
            if isinstance(leaf, Array) and types.is_differentiable(leaf.element)
        ]
    )


def tangent_floats(out: Any, pushed: Any) -> Vector:
    """The floats of the tangents `pushed` of the results `out` as one vector."""
    return _joined(_part_vectors(out, pushed))


def _joined(parts: Sequence[Vector]) -> Vector:
    return np.concatenate(parts) if parts else np.zeros(0)


def cotangent_tree(out: Any, cotangent: Vector) -> Any:
    """A tree like `out` whose arrays hold the floats of `cotangent`."""
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
