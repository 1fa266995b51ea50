"""Reads and writes by index arrays: `gather`, `take_along_axis`, `scatter`,
`scatter_add`, `compact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.functions.layout import moved_axis
from shaderad.functions.reductions import sum_of
from shaderad.ir import arrays, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value
from shaderad.ir.sizes import Size
from shaderad.ir.types import BOOL, FLOAT_KINDS, INT, INTEGER_KINDS, UINT, scalars
from shaderad.trace.elements import as_array, cast_to, conform
from shaderad.trace.primitives import (
    axis_of,
    broadcast_shapes,
    known_shape,
    made,
    repeats_to,
    spread,
    traced,
)
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["compact", "gather", "scatter", "scatter_add", "take_along_axis"]


@array_function
def gather(x: Any, index: Any, bounds: str = "raise") -> Array:
    """The elements, or rows, at index positions: ``x[index]``.

    ``result[j...] = x[index[j...]]``

    Args:
        x: Elements of any type, with at least one axis.
        index: Ints of any shape. Out of range, negative ones included, reads 0.
        bounds: ``"raise"`` reports what is out of range, ``"ignore"`` does not.

    Returns:
        An array of shape ``index.shape + x.shape[1:]``.

    Raises:
        BoundsError: SR0660 at the next synchronisation, for an index out of range.
        ShapeError: SR0340 for an index that holds no ints, SR0374 for other `bounds`, SR0381 where
            `x` has no axis.

    Differentiable in `x`: a cotangent is added where its element was read, and an index out of
    range adds nothing.
    """
    if bounds not in ("raise", "ignore", "unchecked"):
        raise error("SR0374", user_span(), found=text_of(bounds))
    return gathered(traced(x, "x"), [index], is_reported=bounds == "raise")


def gathered(x: TracedArray, index: Sequence[Any], *, is_reported: bool) -> TracedArray:
    """`x` indexed by one array for each of its first axes; the arrays broadcast to one shape."""
    if len(x.extents) < len(index):
        raise error("SR0381", user_span(), count=len(index), shape=known_shape(x.extents))
    indices = [_index(item) for item in index]
    shape = broadcast_shapes(*(positions.extents for positions in indices))
    operands = (x.value, *(spread(positions, shape) for positions in indices))
    return made(arrays.Gather(operands=operands, is_reported=is_reported, span=user_span()).result)


@array_function
def take_along_axis(x: Any, index: Any, axis: int = -1) -> Array:
    """The elements at positions along an axis, with separate positions for each row.

    ``result[..., j] = x[..., index[..., j]]``, as in NumPy; ``take_along_axis(x, argsort(x))`` is
    ``sort(x)``.

    Args:
        x: Elements of any type, with at least one axis.
        index: Ints, with an axis for each of `x`; axes other than `axis` broadcast. Out of range,
            negative ones included, reads 0 and is reported.
        axis: The axis along which positions count.

    Returns:
        An array of the shape of `index`, with its axes of 1 repeated.

    Raises:
        BoundsError: SR0660 at the next synchronisation, for an index out of range.
        ShapeError: SR0323 for an axis, SR0340 for an index that holds no ints, SR0379, where axes
            do not broadcast, SR0389 for an index with another number of axes.

    Differentiable in `x`: a cotangent is added where its element was read, and an index out of
    range adds nothing.
    """
    source, positions = traced(x, "x"), _index(index)
    rank = len(source.extents)
    last, position = rank - 1, axis_of(axis, rank)
    if len(positions.extents) != rank:
        raise error("SR0389", user_span(), found=known_shape(positions.extents),
                    shape=known_shape(source.extents))  # fmt: skip
    source, positions = (moved_axis(y, position, last) for y in (source, positions))
    around = broadcast_shapes(source.extents[:-1], positions.extents[:-1])
    rows = made(spread(source, (*around, source.extents[-1])))
    shape = (*around, positions.extents[-1])
    leading = [made(b.iota(shape, k)) for k in range(last)]
    rows_read = gathered(rows, [*leading, positions], is_reported=True)
    return moved_axis(rows_read, last, position)


def _index(index: Any) -> TracedArray:
    """An index array of ints.

    Raises:
        ShapeError: SR0340 if it does not hold integers.
    """
    positions = as_array(index)
    if positions.element == UINT:
        return cast_to(positions, INT)
    if positions.element != INT:
        raise error("SR0340", user_span(), found=positions.element)
    return positions


@array_function
def scatter_add(base: Any, index: Any, values: Any) -> Array:
    """`base` with values added, as JAX's ``base.at[index].add(values)``.

    PyTorch's ``scatter_add(base, dim, index, values)`` takes positions along one axis for each row.

    ``result = base; result[index[j...]] += values[j...]``

    Args:
        base: Numbers, vectors, or structs of floats or of integers, with at least one axis.
        index: Ints of any shape; one out of range, negative ones included, is ignored.
        values: The summands, of a shape that broadcasts to ``index.shape + base.shape[1:]``.

    Raises:
        ShapeError: SR0326 for elements that hold bools, or both floats and integers, SR0330 for
            values of another type, SR0340 for an index that holds no ints, SR0341 where the values
            do not fit.

    Differentiable in `base`, whose cotangent is the result's, and in `values`: a gather of that.
    Floats are added in any order (docs/conventions.md, "Sums and order").
    """
    target, row_index = as_array(base), _index(index)
    kinds = {s.kind for s in scalars(target.element)}
    if not (kinds <= FLOAT_KINDS or kinds <= INTEGER_KINDS):
        raise error("SR0326", user_span(), name="scatter_add", element=target.element,
                    takes="numbers, or structs of floats or of integers")  # fmt: skip
    operands = (target.value, _rows_of(target, row_index, values), row_index.value)
    return made(arrays.ScatterAdd(operands=operands, span=user_span()).result)


def _rows_of(target: TracedArray, positions: TracedArray, values: Any) -> Value:
    """The values as one row of `target` per position.

    Raises:
        ShapeError: SR0341 if `target` has no axis or the values do not fit.
    """
    if not target.extents:
        raise error("SR0341", user_span(), found=(), wanted="an axis to index")
    rows = conform(values, target.element, "values")
    wanted = (*positions.extents, *target.extents[1:])
    if not repeats_to(rows.extents, wanted):
        raise error("SR0341", user_span(), found=known_shape(rows.extents),
                    wanted=known_shape(wanted))  # fmt: skip
    return spread(rows, wanted)


@array_function
def scatter(base: Any, index: Any, values: Any) -> Array:
    """`base` with rows replaced, as JAX's ``base.at[index].set(values)``; the last writer lasts.

    PyTorch's ``scatter(base, dim, index, values)`` takes positions along one axis for each row.

    ``result = base; result[index[j...]] = values[j...]``

    Args:
        base: Elements of any type, with at least one axis.
        index: Ints of any shape; one out of range, negative ones included, is ignored.
        values: The new elements, of a shape that broadcasts to ``index.shape + base.shape[1:]``.

    Raises:
        ShapeError: SR0330 for values of another type, SR0340 for an index that holds no ints,
            SR0341 where the values do not fit.

    Differentiable in `base` and `values`: a cotangent goes to the value that was written last, or
    to `base` where none was. Overwritten values get 0.
    """
    target, positions = as_array(base), _index(index)
    count, rest = sizes.product(positions.extents), target.extents[1:]
    rows = b.reshape(_rows_of(target, positions, values), (count, *rest))
    return written_by(target, b.reshape(positions.value, (count,)), rows)


def written_by(target: TracedArray, index: Value, rows: Value) -> TracedArray:
    """`target` with row ``index[j]`` replaced by ``rows[j]``; the last writer wins."""
    count, *_ = target.extents
    last = last_writer(index, count)
    written = arrays.Gather(operands=(rows, last), is_reported=False).result
    is_written = b.applied(ops.GE, last, b.full(last.shape, c.whole(0)))
    holds = b.broadcast(is_written, target.extents, [0])
    return made(b.where(holds, written, target.value))


def last_writer(index: Value, count: Size) -> Value:
    return arrays.LastWriter(operands=(index,), count=count).result


@array_function
def compact(x: Any, mask: Any) -> tuple[Array, Array]:
    """The rows where the mask holds, then zeros up to the shape of `x`; and how many there are.

    NumPy's ``x[mask]`` and ``compress`` drop the other rows; here the shape stays.

    Args:
        x: Elements of any type, with at least one axis.
        mask: A bool for each element of the first axis.

    Returns:
        An array of the shape of `x` that starts with the chosen rows in their order, and an int.

    Raises:
        ShapeError: SR0342 for another mask.

    Differentiable in `x`: a cotangent goes back to where its row came from.
    """
    source, holds = traced(x, "x"), traced(mask, "mask")
    fits = source.extents and len(holds.extents) == 1 and holds.element == BOOL
    if not fits or not tracing().are_equal(source.value.shape[0], holds.value.shape[0]):
        raise error("SR0342", user_span(), found=holds.element, shape=known_shape(holds.extents),
                    wanted=known_shape(source.extents[:1]))  # fmt: skip
    count = source.value.shape[0]
    holds = made(b.reshape(holds.value, (count,)))
    ones = cast_to(holds, INT).value
    before = b.shift_right(b.scan(ops.ADD, ones), c.whole(0))
    nowhere = b.full((count,), c.whole(-1))
    row_index = last_writer(b.where(holds.value, before, nowhere), count)
    rows = arrays.Gather(operands=(source.value, row_index), is_reported=False).result
    return made(rows), sum_of(holds)
