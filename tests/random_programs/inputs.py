"""Parameters of random kernels, and the numbers they are called with.

Half of the floats lie on a coarse grid, where ties, zeros and bounds are met exactly; the others
are in general position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.arrays.pointers import HostPointer
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    BufferType,
    LocalArray,
    Matrix,
    Pointer,
    SamplerType,
    Struct,
    TextureType,
    Type,
    Vector,
)

_GRID_STEP = 0.25
WRAPS = ("clamp", "repeat", "mirror")


@dataclass(frozen=True)
class Argument:
    """One parameter that the caller gives."""

    name: str
    type: Type
    extents: tuple[int, ...] = ()
    """Of an array."""
    constant: int | None = None
    """The value of a ``sad.Const``."""


def values_of(arguments: tuple[Argument, ...], seed: int, nudge: float = 0.0) -> tuple[Any, ...]:
    """What the kernel is called with: NumPy arrays, numbers, dicts of them for structs.

    Textures lie on the current device, and so do the arrays behind pointers.

    Args:
        arguments: What to make.
        seed: Of the numbers.
        nudge: A relative change of all floats that are not on the grid.
    """
    random = _Numbers(seed, nudge)
    return tuple(_value(random, a) for a in arguments)


class _Numbers:
    """Random numbers, those in general position moved by `nudge`."""

    def __init__(self, seed: int, nudge: float) -> None:
        self._random = np.random.default_rng(seed)
        self._factor = 1.0 + nudge

    def floats(self, extents: tuple[int, ...]) -> np.ndarray:
        """Floats of a moderate size, exact in float32."""
        random = self._random
        anywhere = random.uniform(-1.5, 2.0, extents).astype(np.float32) * self._factor
        grid = random.integers(-6, 9, extents) * _GRID_STEP
        return np.where(random.integers(0, 2, extents) > 0, anywhere, grid).astype(np.float32)

    def integers(self, low: int, high: int, extents: tuple[int, ...]) -> np.ndarray:
        return self._random.integers(low, high, extents)


def _value(random: _Numbers, argument: Argument) -> Any:
    if argument.constant is not None:
        return argument.constant
    t = argument.type
    if isinstance(t, SamplerType):
        return sad.sampler("linear", WRAPS[random.integers(0, len(WRAPS), ())])
    return _filled(random, t, argument.extents)


def _filled(random: _Numbers, t: Type, extents: tuple[int, ...]) -> Any:
    if isinstance(t, Struct):
        # Extents belong to an array of structs, or to the arrays in a struct.
        inner = () if any(_is_array(f) for _, f in t.fields) else extents
        return {n: _filled(random, f, extents if _is_array(f) else inner) for n, f in t.fields}
    if isinstance(t, TextureType):
        return sad.texture(_filled(random, t.element, extents))
    if isinstance(t, BufferType):
        return _filled(random, t.element, extents)
    if isinstance(t, Pointer):
        return sad.pointer(sad.array(_filled(random, t.element, extents), dtype=t.element))
    if isinstance(t, LocalArray):
        return _filled(random, t.element, (*extents, t.count))
    if isinstance(t, Vector):
        return _filled(random, t.element, (*extents, t.count))
    if isinstance(t, Matrix):
        return _filled(random, t.element, (*extents, t.row_count, t.column_count))
    if t == INT:
        found = random.integers(-2, 7, extents)
        return found.astype(np.int32) if extents else int(found)
    if t == BOOL:
        found = random.integers(0, 2, extents) > 0
        return found if extents else bool(found)
    assert t == FLOAT
    found = random.floats(extents)
    return found if extents else float(found)


def _is_array(t: Type) -> bool:
    return isinstance(t, BufferType | Pointer)


def directions(value: Any, random: np.random.Generator) -> Any:
    """A tangent or cotangent in the form of `value`; `None` for what holds no float."""
    if isinstance(value, dict):
        found = {name: directions(field, random) for name, field in value.items()}
        return found if any(f is not None for f in found.values()) else None
    if isinstance(value, HostPointer):
        return sad.pointer(sad.array(directions(value.numpy(), random), dtype=value.target.element))
    if isinstance(value, sad.Texture):
        return directions(value.numpy(), random)
    if isinstance(value, float):
        return float(np.float32(random.uniform(0.5, 1.5)))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return random.uniform(0.5, 1.5, value.shape).astype(np.float32)
    return None
