"""A function at its arguments -> its Jacobian: `vmap` of its pullback or of its tangents.

A Jacobian is a graph, in which the unit vectors are a batch, in chunks that fit memory. Where the
function cannot be traced, one unit vector follows the other.
Invariant: vector axes are spelled out, behind the axes of their array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import shown
from shaderad.differentiate.leaves import Linearised
from shaderad.differentiate.linearised_traces import TraceCore
from shaderad.functions import components, elements, layout, loops
from shaderad.functions.batching import vmap
from shaderad.functions.run_operator import run_operator
from shaderad.ir import sizes, types
from shaderad.ir.arrays import Graph
from shaderad.ir.prints import silent_graph
from shaderad.ir.sizes import Shape, Size
from shaderad.rules.arrays import building as b
from shaderad.runtime import buffers
from shaderad.trace.primitives import made
from shaderad.trace.traced import TracedArray

CHUNK_BYTES = 64 << 20
"""The memory that the largest value of a function takes in one chunk of its Jacobian."""

Derivatives = Callable[[Any], list[Any]]
"""A unit vector -> gradients, or one tangent; of a batch of unit vectors, a batch of each."""


def jacobians_at(
    at: Linearised, args: Sequence[Any], positions: Sequence[int], mode: str, *, is_silent: bool
) -> list[Array]:
    """The Jacobian by each argument at `positions`; `mode` is ``"reverse"`` or ``"forward"``.

    `is_silent`: True if the graph of the Jacobian computes the result, too, which prints.
    """
    if is_silent and isinstance(at.core, TraceCore):
        silent = replace(at.core, graph=silent_graph(at.core.graph), zero_wins=True)
        at = replace(at, core=silent)
    if mode == "reverse":
        rows = _of_units(lambda unit: at.pull(unit, positions, None), at.out, at)
        pairs = zip(positions, rows, strict=True)
        return [_laid_out(x, at.out, args[k], is_forward=False) for k, x in pairs]

    def pushed(position: int, unit: Any) -> list[Any]:
        return [at.push([unit if k == position else None for k in range(len(args))])]

    columns = {k: _of_units(partial(pushed, k), args[k], at)[0] for k in positions}
    return [_laid_out(columns[k], at.out, args[k], is_forward=True) for k in positions]


def _laid_out(rows: Array, out: Array, argument: Any, *, is_forward: bool) -> Array:
    """The derivatives for all unit vectors, along the first axis of `rows`, as a Jacobian."""
    sides = [buffers.base_of(x.element) for x in (out, argument) if isinstance(x, Array)]
    scalar = types.DOUBLE if types.DOUBLE in sides else types.FLOAT
    shape = tuple(map(shown, (*_spelled(out), *_spelled(argument))))
    return run_operator(_reshaped, rows, scalar, shape, is_forward)


def _reshaped(rows: TracedArray, scalar: types.Scalar, shape: Shape, is_forward: bool) -> Array:
    if is_forward:
        rows = layout.moved_axis(rows, 0, len(rows.extents) - 1)
    return layout.reshape(elements.cast_to(rows, scalar), shape)


def _spelled(x: Any) -> Shape:
    if not isinstance(x, Array):
        return np.shape(x)
    extents = x.extents if isinstance(x, TracedArray) else x.shape
    return (*extents, *buffers.element_axes(x.element))


def _of_units(function: Derivatives, like: Any, at: Linearised) -> list[Any]:
    """`function` of each unit vector of the form of `like`, along a first axis."""
    if not isinstance(at.core, TraceCore):
        return _one_by_one(function, like)
    form = elements.as_array(like)

    def spelled(unit: Any) -> list[Any]:
        return [components.spelled_out(x) for x in function(unit)]

    return _in_chunks(vmap(spelled), form, _chunk(sizes.product(_spelled(form)), at.core.graph))


def _chunk(count: Size, graph: Graph) -> Size:
    """The number of the `count` unit vectors that are a batch."""
    values = [*graph.inputs, *(v for node in graph.nodes for v in node.results)]
    counts = dict.fromkeys(
        sizes.multiply(types.byte_count(v.element), sizes.product(v.shape)) for v in values
    )
    fitting = sizes.floor_divide(CHUNK_BYTES, reduce(sizes.maximum, counts, 1))
    chunk = sizes.minimum(count, sizes.maximum(fitting, 1))
    return chunk if isinstance(count, int) else sizes.maximum(chunk, 1)


def _in_chunks(function: Derivatives, like: TracedArray, chunk: Size) -> list[TracedArray]:
    """`function` of the unit vectors in batches of `chunk`; those behind the last one are 0."""
    shape = _spelled(like)
    count = sizes.product(shape)

    def units(first: Any) -> Array:
        row, column = (made(b.iota((chunk, count), axis)) for axis in (0, 1))
        hits = elements.cast_to(
            elements.binary("equal", elements.binary("add", row, first), column), types.INT
        )
        flat = elements.cast_to(hits, buffers.base_of(like.element))
        return layout.reshape(flat, tuple(map(shown, (chunk, *shape))))

    if chunk == count:
        return function(units(0))
    steps = sizes.divide_up(count, chunk)

    def step(carry: Any, k: TracedArray) -> tuple[Any, list[Array]]:
        return carry, function(units(elements.binary("mul", k, shown(chunk))))

    _, found = loops.loop(step, (), made(b.iota((steps,), 0)))
    whole = sizes.multiply(steps, chunk)
    joined = (b.reshape(x.value, (whole, *x.extents[2:])) for x in found)
    return [made(b.piece(value, 0, 0, count)) for value in joined]


def _one_by_one(function: Derivatives, like: Any) -> list[Array]:
    """`function` of one unit vector after the other, outside of graphs."""
    shape = cast("tuple[int, ...]", _spelled(like))
    count = prod(shape)
    # Even where there is none, the derivative of a zero vector has the shape of a row.
    units = np.eye(max(count, 1), count, dtype=np.float32).reshape((max(count, 1), *shape))
    columns = zip(*map(function, units), strict=True)
    return [run_operator(_stacked, column)[:count] for column in columns]


def _stacked(rows: Sequence[Any]) -> Array:
    return layout.stack([components.spelled_out(elements.as_array(row)) for row in rows])
