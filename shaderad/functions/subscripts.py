"""``x[..]`` of traced arrays, as NumPy's: positions, slices, `None`, `...`, index arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import size_or_none
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.indexing import gathered
from shaderad.functions.layout import transpose
from shaderad.ir import arrays, sizes
from shaderad.ir.sizes import Shape, Size
from shaderad.rules.arrays import building as b
from shaderad.trace.primitives import known_shape, made, traced
from shaderad.trace.traced import TracedArray, is_less


@dataclass(frozen=True, slots=True)
class AxisPart:
    """The positions of one axis that a key selects."""

    start: Size
    step: int
    count: Size
    is_kept: bool


def subscripted(source: Array, key: Any) -> TracedArray:
    """The part of `source` that `key` selects.

    Raises:
        ShapeError: SR0380 for keys of another sort, SR0381 for too many.
        BoundsError: SR0665, where a position is out of range.
    """
    x = traced(source)
    keys = expanded(key, x.extents)
    if not any(is_index_array(item) for item in keys):
        return _basic(x, keys)
    plain = [slice(None) if is_index_array(item) else item for item in keys]
    found = _basic(x, plain)
    axes: list[int] = []
    axis = 0
    for item in keys:
        if is_index_array(item):
            axes.append(axis)
        if item is None or isinstance(item, slice) or is_index_array(item):
            axis += 1
    return _by_arrays(found, axes, [item for item in keys if is_index_array(item)],
                      _are_adjacent(keys))  # fmt: skip


def is_index_array(item: Any) -> bool:
    """Whether a key is one position an element; an array without axes is a position, too."""
    if isinstance(item, Array):
        return bool(item.shape) or isinstance(item, TracedArray)
    return isinstance(item, np.ndarray | list)


def _are_adjacent(keys: Sequence[Any]) -> bool:
    """Whether index arrays and positions stand next to each other, as NumPy counts them."""
    at = [k for k, item in enumerate(keys) if item is not None and not isinstance(item, slice)]
    return at[-1] - at[0] == len(at) - 1


def _by_arrays(
    x: TracedArray, axes: Sequence[int], index: Sequence[Any], are_adjacent: bool
) -> TracedArray:
    """`x` read at one index array for each of `axes`."""
    rest = [k for k in range(len(x.extents)) if k not in axes]
    found = gathered(transpose(x, [*axes, *rest]), index, is_reported=True)
    rank = len(found.extents) - len(rest)
    before = sum(k < axes[0] for k in rest) if are_adjacent else 0
    # The axes of the index stand in front; NumPy puts them where the index arrays stood.
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))]
    return transpose(found, order)


def expanded(key: Any, extents: Shape) -> list[Any]:
    """One item an axis, and the `None`s between them.

    Raises:
        ShapeError: SR0380 for a second ``...``, SR0381 for too many items.
    """
    items = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    count = sum(item is not None and item is not Ellipsis for item in items)
    rank = len(extents)
    if count > rank:
        raise error("SR0381", user_span(), count=count, shape=known_shape(extents))
    at = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(at) > 1:
        raise error("SR0380", user_span(), found="`...` twice")
    rest = [slice(None)] * (rank - count)
    if not at:
        return [*items, *rest]
    return [*items[: at[0]], *rest, *items[at[0] + 1 :]]


def _basic(x: TracedArray, keys: Sequence[Any]) -> TracedArray:
    """Positions, slices and new axes."""
    parts = axis_parts(keys, x.extents)
    skipped = len(x.batch)
    whole = (*x.batch, *(one.count for one in parts))
    value = x.value
    if any((one.start, one.step, one.count) != (0, 1, e)
           for one, e in zip(parts, x.extents, strict=True)):  # fmt: skip
        value = arrays.Slice(
            operands=(value,),
            starts=(*(0,) * skipped, *(one.start for one in parts)),
            steps=(*(1,) * skipped, *(one.step for one in parts)),
            shape=whole,
        ).result
    return made(b.reshape(value, (*x.batch, *shape_of_parts(keys, parts))), x.batch)


def axis_parts(keys: Sequence[Any], extents: Shape) -> list[AxisPart]:
    """What positions and slices, one an axis, select.

    Raises:
        ShapeError: SR0380 for items of another sort.
        BoundsError: SR0665, where a position is out of range.
    """
    remaining = iter(extents)
    return [_part(item, next(remaining)) for item in keys if item is not None]


def shape_of_parts(keys: Sequence[Any], parts: Sequence[AxisPart]) -> Shape:
    """The shape of the selected elements; a `None` among `keys` is an axis of one."""
    remaining = iter(parts)
    found: list[Size] = []
    for item in keys:
        if item is None:
            found.append(1)
            continue
        part = next(remaining)
        if part.is_kept:
            found.append(part.count)
    return tuple(found)


def _part(item: Any, extent: Size) -> AxisPart:
    if isinstance(item, slice):
        return _slice(cast("slice[Any, Any, Any]", item), extent)
    position = size_or_none(item)
    if position is None:
        raise error("SR0380", user_span(), found=f"`{item!r}`")
    from_start = sizes.add(position, extent) if is_less(position, 0) else position
    if is_less(from_start, 0) or not is_less(from_start, extent):
        raise error("SR0665", user_span(), index=position, length=extent)
    return AxisPart(from_start, 1, 1, is_kept=False)


def _slice(item: slice[Any, Any, Any], extent: Size) -> AxisPart:
    """The positions of a slice, as Python defines them.

    Raises:
        ShapeError: SR0380 for bounds and steps that are no whole numbers, or a step of 0.
    """
    step = 1 if item.step is None else size_or_none(item.step)
    if not isinstance(step, int) or step == 0:
        raise error("SR0380", user_span(), found=f"a step of `{item.step!r}`")
    low, high = (0, extent) if step > 0 else (-1, sizes.subtract(extent, 1))
    start = _bound(item.start, extent, low, high, low if step > 0 else high)
    stop = _bound(item.stop, extent, low, high, high if step > 0 else low)
    length = sizes.subtract(stop, start) if step > 0 else sizes.subtract(start, stop)
    if not is_less(0, length):
        return AxisPart(0, 1, 0, is_kept=True)
    return AxisPart(start, step, sizes.divide_up(length, abs(step)), is_kept=True)


def _bound(given: Any, extent: Size, low: Size, high: Size, default: Size) -> Size:
    """One end of a slice, counted from the front and inside of the axis."""
    if given is None:
        return default
    found = size_or_none(given)
    if found is None:
        raise error("SR0380", user_span(), found=f"`{given!r}`")
    if is_less(found, 0):
        found = sizes.add(found, extent)
    if is_less(found, low):
        return low
    return high if is_less(high, found) else found
