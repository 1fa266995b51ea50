"""Results and gradients in any form -> their numbers by path, and cotangents in their form."""

from __future__ import annotations

from typing import Any

import numpy as np

from shaderad.arrays.containers import struct_fields

Leaves = dict[str, np.ndarray]


def leaves_of(value: Any, path: str = "") -> Leaves:
    """Every array of numbers in `value`, in float64 (ints and bools as they are)."""
    if value is None:
        return {}
    if isinstance(value, tuple | list):
        return _joined((f"{path}[{k}]", part) for k, part in enumerate(value))
    fields = struct_fields(value)
    if fields is not None:
        return _joined((f"{path}.{name}", part) for name, part in fields.items())
    numbers = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if numbers.dtype.names is not None:
        return _joined((f"{path}.{name}", numbers[name]) for name in numbers.dtype.names)
    return {path: numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers}


def _joined(parts: Any) -> Leaves:
    found: Leaves = {}
    for path, part in parts:
        found.update(leaves_of(part, path))
    return found


def floats_in(leaves: Leaves) -> Leaves:
    """Derivatives: what is no float carries none."""
    return {path: numbers for path, numbers in leaves.items() if numbers.dtype.kind == "f"}


def cotangent_of(result: Any, random: np.random.Generator) -> np.ndarray | None:
    """A cotangent in the form of a result; 0 where the result is not finite."""
    numbers = np.asarray(result.numpy())
    if numbers.dtype.names is None and numbers.dtype.kind != "f":
        return None
    made = np.zeros_like(numbers)
    _fill(made, numbers, random)
    return made


def _fill(made: np.ndarray, numbers: np.ndarray, random: np.random.Generator) -> None:
    for name in numbers.dtype.names or ():
        _fill(made[name], numbers[name], random)
    if numbers.dtype.names is None and numbers.dtype.kind == "f":
        weights = random.uniform(0.5, 1.5, numbers.shape)
        made[...] = np.where(np.isfinite(numbers), weights, 0.0)
