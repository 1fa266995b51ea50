"""A function at its arguments -> its Jacobian, one pullback or push for each unit vector.

Three ways give the same array. Outside of all transforms the rows are gathered on the host; inside
of another transform they are stacked on the device, and each is a step of that one's trace; in a
function that is traced a loop makes them, because a size may be open. Invariant: vector axes are
spelled out, behind the axes of their array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from shaderad.arrays.arrays import Array, array
from shaderad.arrays.traced_sizes import shown
from shaderad.differentiate.linearised import Linearised
from shaderad.execute.convert import recorded_form
from shaderad.functions import components, elements, layout, loops
from shaderad.functions.run_operator import run_operator
from shaderad.ir import sizes, types
from shaderad.ir.sizes import Shape
from shaderad.rules.arrays import building as b
from shaderad.runtime import buffers
from shaderad.trace import primitives
from shaderad.trace.traced import TracedArray

Linearise = Callable[[], Linearised]


def scalar_of(out: Array, argument: Any) -> types.Scalar:
    """The element type of a Jacobian: double where either side holds doubles."""
    sides = [x.element for x in (out, argument) if isinstance(x, Array)]
    return types.DOUBLE if types.DOUBLE in map(buffers.base_of, sides) else types.FLOAT


def gathered(
    at: Linearised, args: Sequence[Any], positions: Sequence[int], mode: str
) -> list[Array]:
    """The Jacobian by each argument at `positions`, through the host."""
    return [
        _placed([np.asarray(row.numpy()) for row in rows], at, args[position], mode)
        for position, rows in zip(positions, _rows(at, args, positions, mode), strict=True)
    ]


def _placed(
    rows: Sequence[np.ndarray[Any, Any]], at: Linearised, argument: Any, mode: str
) -> Array:
    scalar = scalar_of(at.out, argument)
    outer, inner = _spelled(at.out), _spelled(argument)
    first, second = (outer, inner) if mode == "reverse" else (inner, outer)
    whole = np.asarray(rows, buffers.host_dtype(scalar)).reshape((prod(first), *second))
    if mode == "forward":
        whole = np.moveaxis(whole, 0, -1)
    return array(whole.reshape((*outer, *inner)), dtype=scalar, device=at.out.device)


def stacked(
    at: Linearised, args: Sequence[Any], positions: Sequence[int], mode: str
) -> list[Array]:
    """Likewise, on the device, where another transform follows what is computed."""
    return [
        _joined(list(rows), at, args[position], mode)
        for position, rows in zip(positions, _rows(at, args, positions, mode), strict=True)
    ]


def _joined(rows: Sequence[Array], at: Linearised, argument: Any, mode: str) -> Array:
    scalar = scalar_of(at.out, argument)
    shape = (*_spelled(at.out), *_spelled(argument))
    if not rows:
        return array(np.zeros(shape), dtype=scalar, device=at.out.device)
    flat = [recorded_form(x, scalar, (prod(_spelled(x)),)) for x in rows]
    return run_operator(_laid_out, flat, shape, mode == "forward")


def _laid_out(rows: list[Any], shape: Shape, is_forward: bool) -> Array:
    return layout.reshape(layout.stack(rows, -1 if is_forward else 0), shape)


def _rows(
    at: Linearised, args: Sequence[Any], positions: Sequence[int], mode: str
) -> Iterator[list[Array]]:
    """For each argument the gradients of all scalars of the result, or its tangents."""
    if mode == "reverse":
        found = [at.pull(unit, positions, None) for unit in _units(_spelled(at.out))]
        yield from ([row[k] for row in found] for k in range(len(positions)))
        return
    for position in positions:
        tangents: list[Any] = [None] * len(args)
        rows: list[Array] = []
        for unit in _units(_spelled(args[position])):
            tangents[position] = unit
            rows.append(at.push(tangents))
        yield rows


def _units(shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    """Arrays of `shape` that are 1 in one place, in row-major order."""
    return list(np.eye(prod(shape), dtype=np.float32).reshape((prod(shape), *shape)))


def _spelled(value: Any) -> tuple[int, ...]:
    if not isinstance(value, Array):
        return np.shape(value)
    return (*value.shape, *buffers.element_axes(value.element))


# -- in a function that is traced --------------------------------------------------------------


def traced(
    linearise: Linearise, out: Array, args: Sequence[Any], positions: Sequence[int], mode: str
) -> list[Array]:
    """Likewise, by loops of the graph.

    Args:
        linearise: Gives the function at its arguments in whatever is being traced.
        out: Its result.
        args: The arguments.
        positions: Those to differentiate by.
        mode: ``"reverse"`` or ``"forward"``.
    """
    given = {k: elements.as_array(args[k]) for k in positions}
    result = primitives.traced(out)
    if mode == "reverse":
        pulled = _looped(lambda unit: linearise().pull(unit, positions, None), result)
        return [_shaped(rows, result, given[k]) for k, rows in zip(positions, pulled, strict=True)]
    found: list[Array] = []
    for position in positions:

        def push(unit: Any, at: int = position) -> list[Any]:
            tangents = [unit if k == at else None for k in range(len(args))]
            return [linearise().push(tangents)]

        (columns,) = _looped(push, given[position])
        rank = len(columns.extents)
        moved = layout.moved_axis(columns, 0, rank - 1)
        found.append(_shaped(moved, result, given[position]))
    return found


def _looped(function: Callable[[Any], list[Any]], like: TracedArray) -> list[TracedArray]:
    """`function` of each unit vector of the form of `like`, along a first axis."""
    shape = _extents(like)
    rows = primitives.made(b.iota((sizes.product(shape),), 0))

    def step(carry: Any, k: TracedArray) -> tuple[Any, list[Array]]:
        hits = elements.binary("equal", rows, k)
        flat = elements.cast_to(elements.cast_to(hits, types.INT), buffers.base_of(like.element))
        unit = layout.reshape(flat, tuple(map(shown, shape)))
        return carry, [components.spelled_out(x) for x in function(unit)]

    _, found = loops.loop(step, 0, rows)
    return cast("list[TracedArray]", found)


def _shaped(rows: TracedArray, result: TracedArray, argument: TracedArray) -> Array:
    shape = (*_extents(result), *_extents(argument))
    entries = elements.cast_to(rows, scalar_of(result, argument))
    return layout.reshape(entries, tuple(map(shown, shape)))


def _extents(x: TracedArray) -> Shape:
    return (*x.extents, *buffers.element_axes(x.element))
