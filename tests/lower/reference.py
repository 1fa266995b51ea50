"""What a kernel computes and how it changes, from running its Python text in float64.

The kernel's own source runs once a thread on guarded NumPy arrays; central differences of that
give derivatives to nine digits. Only kernels over scalars can be run so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import shaderad as sad
from shaderad.ir.types import Access, BufferType
from shaderad.language.host import PythonFunction, UserFunction

# Central differences in float64: the error is near 1e-10 of the derivatives here.
_EPS = 1e-6


@dataclass(frozen=True)
class Case:
    """A kernel and what it is called with."""

    kernel: Any
    args: tuple[Any, ...]
    dim: int | tuple[int, ...]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further call keywords."""

    @property
    def call(self) -> dict[str, Any]:
        shapes = {"shapes": dict(self.shapes)} if self.shapes else {}
        return {"dim": self.dim, **shapes, **self.options}

    @property
    def float_positions(self) -> list[int]:
        """Arguments that can carry a derivative."""
        return [k for k, a in enumerate(self.args) if np.asarray(a).dtype.kind == "f"]


class Guarded:
    """An array as kernels see it: out of range reads 0 and writes nothing."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.shape = data.shape

    def __len__(self) -> int:
        return len(self.data)

    def _has(self, index: Any) -> bool:
        indices = index if isinstance(index, tuple) else (index,)
        return all(0 <= i < n for i, n in zip(indices, self.shape, strict=True))

    def __getitem__(self, index: Any) -> Any:
        return self.data[index].item() if self._has(index) else self.data.dtype.type(0).item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._has(index):
            self.data[index] = value


class _LocalArrays:
    def __getitem__(self, what: Any) -> Callable[[], Any]:
        element, count = what
        if callable(element) and not isinstance(element, type):
            return lambda: [element() for _ in range(count)]
        return lambda: [element(0)] * count


def _range(*bounds: int, limit: int | None = None) -> Sequence[int]:
    return range(*bounds)[:limit]


SHIM = SimpleNamespace(
    range=_range,
    static_range=range,
    limit=lambda condition, n: condition,
    unique=lambda index: index,
    detach=lambda x: x,
    LocalArray=_LocalArrays(),
    select=lambda condition, a, b: a if condition else b,
    min=min, max=max, sin=math.sin, cos=math.cos, exp=math.exp, sqrt=math.sqrt, tanh=math.tanh,
    log=math.log,
)  # fmt: skip


def python_of(function: PythonFunction) -> FunctionType:
    """The function's Python, with everything it calls as Python too."""
    plain = function.python
    space = {
        name: python_of(value)
        if isinstance(value, UserFunction)
        else (SHIM if value is sad else value)
        for name, value in plain.__globals__.items()
        if name in plain.__code__.co_names or name == "sad"
    }
    return FunctionType(plain.__code__, space, plain.__name__, None, plain.__closure__)


def primal(case: Case, args: Sequence[Any]) -> list[np.ndarray]:
    """The written arrays, in parameter order."""
    dims = case.dim if isinstance(case.dim, tuple) else (case.dim,)
    given = iter(args)
    values: list[Any] = []
    outputs: list[np.ndarray] = []
    for p in case.kernel.signature.parameters:
        if isinstance(p.type, BufferType) and p.type.access is not Access.IN:
            outputs.append(_fresh(p.type, case.shapes.get(p.name, dims)))
            values.append(Guarded(outputs[-1]))
        else:
            value = next(given)
            values.append(Guarded(np.asarray(value)) if np.ndim(value) else value)
    run = python_of(case.kernel)
    for index in product(*map(range, dims)):
        run(*index, *values)
    return outputs


def _fresh(t: BufferType, shape: tuple[int, ...]) -> np.ndarray:
    start = {Access.MIN: np.inf, Access.MAX: -np.inf}.get(t.access, 0.0)
    return np.full(shape, start)


def widened(args: Sequence[Any]) -> list[Any]:
    """The arguments with their floats in double precision."""
    return [
        np.asarray(a, np.float64) if np.asarray(a).dtype.kind == "f" and np.ndim(a) else a
        for a in args
    ]


def directional(case: Case, directions: Mapping[int, Any]) -> list[np.ndarray]:
    """Change of every result when the arguments move along `directions`."""
    ends: list[list[np.ndarray]] = []
    for sign in (1, -1):
        moved = widened(case.args)
        for k, direction in directions.items():
            moved[k] = moved[k] + sign * _EPS * np.asarray(direction, np.float64)
        ends.append(primal(case, moved))
    # What stays +-inf does not change.
    pairs = zip(*ends, strict=True)
    return [np.where(np.isfinite(a), a - b, 0.0) / (2 * _EPS) for a, b in pairs]


def gradients(case: Case, cotangents: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """The gradient of ``sum(cotangent * result)`` by every float argument, element by element."""
    found: dict[int, np.ndarray] = {}
    for k in case.float_positions:
        shape = np.shape(case.args[k])
        gradient = np.zeros(shape)
        for place in np.ndindex(*shape):
            direction = np.zeros(shape)
            direction[place] = 1.0
            changes = directional(case, {k: direction})
            gradient[place] = sum(
                float(np.sum(c * d)) for c, d in zip(cotangents, changes, strict=True)
            )
        found[k] = gradient
    return found
