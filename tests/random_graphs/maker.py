"""One random graph while it grows: its inputs, and the values among which steps choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import FLOAT, INT

Rng = np.random.Generator
N, M = sizes.symbol("n"), sizes.symbol("m")
EXTENTS: tuple[Size, ...] = (N, M, 3)
LARGEST_RANK = 4
MOST_ELEMENTS = 2**20
"""The most elements of a value that later steps use."""
Step = Callable[["Maker", Value], Value]


class Maker:
    """One graph while it grows.

    Args:
        rng: Chooses.
        steps: Make a value of the graph from others.
        known: The sizes at which the graph runs.
        shapes: The shapes of the first inputs.
    """

    def __init__(
        self,
        rng: Rng,
        steps: Sequence[Step],
        known: Mapping[str, int],
        shapes: Sequence[Shape] = ((N,), (M, N), (N,), (3,), ()),
    ) -> None:
        self.rng, self.steps, self.known = rng, steps, known
        self.inputs = [Value(ArrayType(FLOAT, shape)) for shape in shapes]
        self.pool = list(self.inputs)

    def graph(self) -> Graph:
        self.grow(self.whole(3, 12))
        return Graph(tuple(self.inputs), tuple(self.pool[-3:]))

    def grow(self, count: int) -> None:
        for _ in range(count):
            x = self.pick(self.pool)
            value = bounded(self.pick(self.steps)(self, x))
            if self.is_small(value.shape):
                self.pool.append(value)

    def pick(self, choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def alike(self, x: Value) -> Value:
        return self.pick([v for v in self.pool if v.shape == x.shape])

    def axis(self, x: Value) -> int:
        return self.whole(0, len(x.shape))

    def add_input(self, *shape: Size) -> Value:
        """Another input, which later steps may use, too."""
        x = Value(ArrayType(FLOAT, shape))
        self.inputs.append(x)
        self.pool.insert(0, x)  # The last values are results.
        return x

    def is_small(self, shape: Shape, most: int = MOST_ELEMENTS) -> bool:
        """True if an array of this shape may be a value of the graph."""
        count = sizes.evaluate(sizes.product(shape), self.known)
        return len(shape) <= LARGEST_RANK and count <= most


def bounded(x: Value) -> Value:
    """Values between -1 and 1, so that chains of products stay in range."""
    return b.applied(ops.SIN, x) if x.element == FLOAT else x


def numbers(shape: Shape, axis: int, modulus: int, shift: int) -> Value:
    """Whole numbers from `shift` on, in turn; no `modulus` in use divides 11."""
    i = c.variable("i", INT)
    rest = c.apply(ops.MOD, c.apply(ops.MUL, i, c.whole(11)), c.whole(modulus))
    return b.elementwise(c.apply(ops.ADD, rest, c.whole(shift)), {"i": b.iota(shape, axis)}, shape)
