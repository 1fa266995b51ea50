"""``x[...]``, as NumPy's: positions, slices, `None`, `...`, index arrays.

In a trace, these become nodes. Outside of one, a slice shares the bytes of its array if they are
contiguous, and is a copy otherwise; index arrays run at once as a cached graph.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, cast

from shaderad.arrays.arrays import Array, is_host_array, zeros
from shaderad.arrays.arrays import Shape as KnownShape
from shaderad.arrays.tape import recorded_view
from shaderad.arrays.traced_sizes import size_or_none
from shaderad.calls.run_graph import run_graph
from shaderad.calls.run_operator import run_operator
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.functions.indexing import gathered
from shaderad.functions.layout import transpose
from shaderad.ir import arrays, sizes, types
from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.sizes import Shape, Size
from shaderad.runtime import buffers
from shaderad.trace.primitives import known_shape, made, traced
from shaderad.trace.traced import TracedArray, is_less, is_traced


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
    selected = _basic(x, plain)
    axes: list[int] = []
    axis = 0
    for item in keys:
        if is_index_array(item):
            axes.append(axis)
        if item is None or isinstance(item, slice) or is_index_array(item):
            axis += 1
    return _by_arrays(selected, axes, [item for item in keys if is_index_array(item)],
                      _are_adjacent(keys))  # fmt: skip


def is_index_array(item: Any) -> bool:
    """True if a key is an array of positions; an `Array` without axes only if it is traced."""
    if isinstance(item, Array):
        return bool(item.shape) or isinstance(item, TracedArray)
    return is_host_array(item) or isinstance(item, list)


def _are_adjacent(keys: Sequence[Any]) -> bool:
    """True if index arrays and positions are adjacent, by the rule of NumPy."""
    indices = [k for k, item in enumerate(keys) if item is not None and not isinstance(item, slice)]
    return indices[-1] - indices[0] == len(indices) - 1


def _by_arrays(
    x: TracedArray, axes: Sequence[int], index: Sequence[Any], are_adjacent: bool
) -> TracedArray:
    """`x` indexed by one array for each of `axes`."""
    rest = [k for k in range(len(x.extents)) if k not in axes]
    elements = gathered(transpose(x, [*axes, *rest]), index, is_reported=True)
    rank = len(elements.extents) - len(rest)
    before = sum(k < axes[0] for k in rest) if are_adjacent else 0
    # The axes of the index come first; NumPy puts them where the index arrays were.
    order = [*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(rest))]
    return transpose(elements, order)


def expanded(key: Any, extents: Shape) -> list[Any]:
    """One item per axis, and the `None`s between them.

    Raises:
        ShapeError: SR0380 for a second ``...``, SR0381 for too many items.
    """
    items = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    count = sum(item is not None and item is not Ellipsis for item in items)
    rank = len(extents)
    if count > rank:
        raise error("SR0381", user_span(), count=count, shape=known_shape(extents))
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise error("SR0380", user_span(), found="`...` twice")
    rest = [slice(None)] * (rank - count)
    if not ellipses:
        return [*items, *rest]
    return [*items[: ellipses[0]], *rest, *items[ellipses[0] + 1 :]]


def _basic(x: TracedArray, keys: Sequence[Any]) -> TracedArray:
    """`x` indexed by positions, slices and new axes."""
    parts = axis_parts(keys, x.extents)
    value = x.value
    if any((part.start, part.step, part.count) != (0, 1, e)
           for part, e in zip(parts, x.extents, strict=True)):  # fmt: skip
        value = arrays.Slice(
            operands=(value,),
            starts=tuple(part.start for part in parts),
            steps=tuple(part.step for part in parts),
            shape=tuple(part.count for part in parts),
        ).result
    return made(b.reshape(value, shape_of_parts(keys, parts)))


def axis_parts(keys: Sequence[Any], extents: Shape) -> list[AxisPart]:
    """The part of each axis that a position or slice selects.

    Raises:
        ShapeError: SR0380 for items of another sort.
        BoundsError: SR0665, where a position is out of range.
    """
    remaining = iter(extents)
    return [_part(item, next(remaining)) for item in keys if item is not None]


def shape_of_parts(keys: Sequence[Any], parts: Sequence[AxisPart]) -> Shape:
    """The shape of the selected elements; a `None` among `keys` is an axis of one."""
    remaining = iter(parts)
    extents: list[Size] = []
    for item in keys:
        if item is None:
            extents.append(1)
            continue
        part = next(remaining)
        if part.is_kept:
            extents.append(part.count)
    return tuple(extents)


def _part(item: Any, extent: Size) -> AxisPart:
    if isinstance(item, slice):
        return _slice(cast("slice[Any, Any, Any]", item), extent)
    position = size_or_none(item)
    if position is None:
        raise error("SR0380", user_span(), found=f"`{text_of(item)}`")
    from_start = sizes.add(position, extent) if is_less(position, 0) else position
    if is_less(from_start, 0) or not is_less(from_start, extent):
        raise error("SR0665", user_span(), index=position, length=extent)
    return AxisPart(from_start, 1, 1, is_kept=False)


def _slice(item: slice[Any, Any, Any], extent: Size) -> AxisPart:
    """The positions of a slice, as Python defines them.

    Raises:
        ShapeError: SR0380 for bounds and steps that are not whole numbers, or a step of 0.
    """
    step = 1 if item.step is None else size_or_none(item.step)
    if not isinstance(step, int) or step == 0:
        raise error("SR0380", user_span(), found=f"a step of `{text_of(item.step)}`")
    low, high = (0, extent) if step > 0 else (-1, sizes.subtract(extent, 1))
    start = _bound(item.start, extent, low, high, low if step > 0 else high)
    stop = _bound(item.stop, extent, low, high, high if step > 0 else low)
    length = sizes.subtract(stop, start) if step > 0 else sizes.subtract(start, stop)
    if not is_less(0, length):
        return AxisPart(0, 1, 0, is_kept=True)
    return AxisPart(start, step, sizes.divide_up(length, abs(step)), is_kept=True)


def _bound(bound: Any, extent: Size, low: Size, high: Size, default: Size) -> Size:
    """One end of a slice, counted from the front and clamped to the axis."""
    if bound is None:
        return default
    position = size_or_none(bound)
    if position is None:
        raise error("SR0380", user_span(), found=f"`{text_of(bound)}`")
    if is_less(position, 0):
        position = sizes.add(position, extent)
    if is_less(position, low):
        return low
    return high if is_less(high, position) else position


def sliced(source: Array, key: Any) -> Array:
    """The part of `source` that `key` selects.

    Raises:
        ShapeError: SR0380 for keys that are neither positions nor slices, SR0381 for too many.
        BoundsError: SR0665, where a position is out of range.
    """
    keys = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    if is_traced([source]) or any(is_index_array(item) for item in keys):
        return run_operator(subscripted, source, key)
    items = expanded(tuple(map(_read, keys)), source.shape)
    parts = axis_parts(items, source.shape)
    shape = cast("KnownShape", shape_of_parts(items, parts))
    if _lie_together(parts, source.shape) and not _splits_word(parts, source):
        return _view(source, shape, _element_offset(parts, source.shape))
    return _copy(source, parts, shape)


def _read(item: Any) -> Any:
    """`item` with each array that holds one whole number replaced by that number."""
    if isinstance(item, slice):
        bounds = cast("slice[Any, Any, Any]", item)
        return slice(_read(bounds.start), _read(bounds.stop), _read(bounds.step))
    if not isinstance(item, Array):
        return item
    if item.shape or not types.is_integer(item.element):
        raise error("SR0380", user_span(), found=f"`{text_of(item)}`")
    return operator.index(item)


def _lie_together(parts: Sequence[AxisPart], shape: KnownShape) -> bool:
    """True if the selected elements are contiguous: positions, one slice, then whole axes."""
    if any(part.count == 0 for part in parts):
        return True
    first = next((k for k, part in enumerate(parts) if part.count != 1), len(parts))
    if first < len(parts) and parts[first].step != 1:
        return False
    rest = zip(parts[first + 1 :], shape[first + 1 :], strict=True)
    return all(part.step == 1 and part.count == extent for part, extent in rest)


def _element_offset(parts: Sequence[AxisPart], shape: KnownShape) -> int:
    if any(part.count == 0 for part in parts):
        return 0
    starts = cast("list[int]", [part.start for part in parts])
    return sum(start * prod(shape[k + 1 :]) for k, start in enumerate(starts))


def _splits_word(parts: Sequence[AxisPart], source: Array) -> bool:
    """True if a view of halves would begin or end inside a word, because devices copy words."""
    first = _element_offset(parts, source.shape)
    end = first + prod(cast("list[int]", [part.count for part in parts]))
    bounds = (first, end) if end < source.size else (first,)
    return any(k * types.byte_count(source.element) % buffers.WORD_BYTES for k in bounds)


def _view(source: Array, shape: KnownShape, first: int) -> Array:
    """The elements from position `first` on, in memory order, with shape `shape`."""
    skipped = first * types.byte_count(source.element)
    view = source.viewed(source.element, shape, skipped)

    def pull_back(cotangent: Array) -> Array:
        if cotangent.size == source.size:
            return cotangent.viewed(source.element, source.shape)
        padded = zeros(source.device, source.element, source.shape)
        if cotangent.size:
            source.device.runtime.copy(
                cotangent.buffer, cotangent.offset, padded.buffer, skipped, view.byte_count
            )
        return padded

    def push_forward(tangent: Array) -> Array:
        return tangent.viewed(source.element, shape, skipped)

    return recorded_view(source, view, pull_back, push_forward)


def _copy(source: Array, parts: Sequence[AxisPart], shape: KnownShape) -> Array:
    graph = _slice_graph(source.element, tuple(part.step for part in parts), len(shape))
    starts, counts = [part.start for part in parts], [part.count for part in parts]
    numbers = [*source.shape, *starts, *counts, *shape]
    size_by_name = dict(zip(_names(len(numbers)), cast("list[int]", numbers), strict=True))
    return run_graph(graph, [source], size_by_name, source.device)[0]


def _names(count: int) -> list[str]:
    return [f"n{k}" for k in range(count)]


@lru_cache(maxsize=128)
def _slice_graph(element: types.Type, steps: tuple[int, ...], rank: int) -> Graph:
    """The graph of a slice with symbolic extents, starts and counts per axis, and result shape."""
    symbols = iter(sizes.symbol(name) for name in _names(3 * len(steps) + rank))
    extents, starts, counts = (tuple(next(symbols) for _ in steps) for _ in range(3))
    source = Value(ArrayType(element, extents))
    node = arrays.Slice(operands=(source,), starts=starts, steps=steps, shape=counts)
    reshaped = arrays.Reshape(operands=(node.result,), shape=tuple(symbols))
    return Graph((source,), (reshaped.result,))
