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

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, is_host_array
from shaderad.arrays.containers import container_of
from shaderad.arrays.textures import Texture, kind_but_textures
from shaderad.arrays.traced_sizes import shown
from shaderad.calls.run_operator import run_operator
from shaderad.diagnostics import error
from shaderad.differentiate.leaves import Linearised
from shaderad.differentiate.linearised_traces import TraceCore
from shaderad.functions import layout, loops
from shaderad.functions.batching import vmap
from shaderad.ir import building as b
from shaderad.ir import sizes, types
from shaderad.ir.arrays import Graph
from shaderad.ir.prints import silent_graph
from shaderad.ir.sizes import Shape, Size
from shaderad.runtime import buffers
from shaderad.trace import components, elements
from shaderad.trace.primitives import made
from shaderad.trace.traced import TracedArray

CHUNK_BYTES = 64 << 20
"""The memory that the largest value of a function takes in one chunk of its Jacobian."""

Derivatives = Callable[[Any], list[Any]]
"""A unit vector -> gradients, or one tangent; of a batch of unit vectors, a batch of each."""


def jacobians_at(
    at: Linearised, args: Sequence[Any], positions: Sequence[int], mode: str, *, is_silent: bool
) -> list[Any]:
    """The Jacobian by each argument at `positions`, built like it.

    `mode` is ``"reverse"`` or ``"forward"``.
    `is_silent`: True if the graph of the Jacobian computes the result, too, which prints.

    Raises:
        DerivativeError: SR0468 for arrays of structs.
    """
    if is_silent and isinstance(at.core, TraceCore):
        silent = replace(at.core, graph=silent_graph(at.core.graph), zero_wins=True)
        at = replace(at, core=silent)
    if mode == "reverse":
        return _by_rows(at, positions)
    return [_by_columns(at, args, position) for position in positions]


def _by_rows(at: Linearised, positions: Sequence[int]) -> list[Any]:
    """The gradients, with a row for each scalar of the result."""
    gradients: list[Any] = []

    def pulled(unit: Any) -> list[Array]:
        gradients[:] = at.pull(unit, positions, None)
        return [
            _plain(leaf, position)
            for position, gradient in zip(positions, gradients, strict=True)
            for leaf in trees.leaves(gradient)
            if isinstance(leaf, Array)
        ]

    rows = iter(_of_units(pulled, at.out, at))

    def laid_out(leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            return leaf
        x = next(rows)
        return _laid_out(x, at.out, _spelled(x)[1:], is_forward=False)

    return [trees.mapped(laid_out, gradient) for gradient in gradients]


def _by_columns(at: Linearised, args: Sequence[Any], position: int) -> Any:
    """The Jacobian by one argument, with a column for each of its scalars."""

    def column(like: Any, tangent_of: Callable[[Any], Any]) -> Array:
        def pushed(unit: Any) -> list[Any]:
            tangents = [tangent_of(unit) if k == position else None for k in range(len(args))]
            return [at.push(tangents)]

        (rows,) = _of_units(pushed, _plain(like, position), at)
        return _laid_out(rows, at.out, _spelled(like), is_forward=True)

    argument = args[position]
    is_list = isinstance(argument, list) and container_of(argument) is not None
    if is_list and not isinstance(at.core, TraceCore):  # host structs as an array
        raise error("SR0468", position=position, found=trees.described(argument))
    leaves, structure = trees.flatten(argument, kind_but_textures)

    def by_leaf(k: int, leaf: Any) -> Any:
        def alone(tangent: Any) -> Any:
            return structure.unflatten([tangent if j == k else None for j in range(len(leaves))])

        if isinstance(leaf, Texture):
            zeros = _levels(leaf)
            levels = [column(x, partial(_one_of, zeros, j, alone)) for j, x in enumerate(zeros)]
            return levels[0] if len(levels) == 1 else tuple(levels)
        return column(leaf, alone) if _holds_floats(leaf) else None

    return structure.derivative([by_leaf(k, leaf) for k, leaf in enumerate(leaves)])


def _one_of(zeros: Sequence[Any], k: int, alone: Callable[[Any], Any], unit: Any) -> Any:
    """The tangent of a texture, of which one level moves."""
    return alone(unit if len(zeros) == 1 else (*zeros[:k], unit, *zeros[k + 1 :]))


def _levels(texture: Texture) -> list[Any]:
    """Zeros in the form of the derivative by a texture: of level 0, or of each given level."""
    channels = (texture.channel_count,) if texture.channel_count > 1 else ()
    count = 1 if texture.mips_are_made else texture.level_count
    return [np.zeros((*texture.shape_of(k), *channels), np.float32) for k in range(count)]


def _holds_floats(leaf: Any) -> bool:
    if isinstance(leaf, Array):
        return types.is_differentiable(leaf.element)
    return (isinstance(leaf, int | float | list) or is_host_array(leaf)) and (
        np.asarray(leaf).dtype.kind == "f"
    )


def _plain(x: Any, position: int) -> Any:
    """`x`, unless it is an array of structs.

    Raises:
        DerivativeError: SR0468 if it is one.
    """
    if isinstance(x, Array) and not types.is_float(x.element):
        raise error("SR0468", position=position, found=x.element)
    return x


def _laid_out(rows: Array, out: Array, behind: Shape, *, is_forward: bool) -> Array:
    """The derivatives for all unit vectors, along the first axis of `rows`, as a Jacobian.

    `behind`: the axes of the argument.
    """
    is_double = types.DOUBLE in (buffers.base_of(out.element), buffers.base_of(rows.element))
    scalar = types.DOUBLE if is_double else types.FLOAT
    shape = tuple(map(shown, (*_spelled(out), *behind)))
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
