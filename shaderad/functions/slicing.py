"""``x[a:b:c, k, None]`` outside a trace: a view where the elements lie together, else a copy.

Both are steps of a tape.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, cast

from shaderad.arrays.arrays import Array, Shape, zeros
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.execute.run_graph import run_graph
from shaderad.functions.run_operator import run_operator
from shaderad.functions.subscripts import (
    AxisPart,
    axis_parts,
    expanded,
    is_index_array,
    shape_of_parts,
    subscripted,
)
from shaderad.ir import arrays, sizes, types
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.runtime import buffers
from shaderad.trace.tape import ViewStep, trace_of
from shaderad.trace.traced import is_traced


def sliced(source: Array, key: Any) -> Array:
    """The part of `source` that `key` selects.

    Raises:
        ShapeError: SR0380 for keys that are no positions or slices, SR0381 for too many.
        BoundsError: SR0665, where a position is out of range.
    """
    keys = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    if is_traced([source]) or any(is_index_array(item) for item in keys):
        return run_operator(subscripted, source, key)
    items = expanded(tuple(map(_read, keys)), source.shape)
    parts = axis_parts(items, source.shape)
    shape = cast("Shape", shape_of_parts(items, parts))
    if _lie_together(parts, source.shape) and not _splits_word(parts, source):
        return _view(source, shape, _element_offset(parts, source.shape))
    return _copy(source, parts, shape)


def _read(item: Any) -> Any:
    """`item` with numbers for arrays of one whole number."""
    if isinstance(item, slice):
        bounds = cast("slice[Any, Any, Any]", item)
        return slice(_read(bounds.start), _read(bounds.stop), _read(bounds.step))
    if not isinstance(item, Array):
        return item
    if item.shape or not types.is_integer(item.element):
        raise error("SR0380", user_span(), found=f"`{item!r}`")
    return operator.index(item)


def _lie_together(parts: Sequence[AxisPart], shape: Shape) -> bool:
    """True if the selected elements follow each other: positions, one slice, whole axes."""
    if any(one.count == 0 for one in parts):
        return True
    first = next((k for k, one in enumerate(parts) if one.count != 1), len(parts))
    if first < len(parts) and parts[first].step != 1:
        return False
    rest = zip(parts[first + 1 :], shape[first + 1 :], strict=True)
    return all(one.step == 1 and one.count == extent for one, extent in rest)


def _element_offset(parts: Sequence[AxisPart], shape: Shape) -> int:
    if any(one.count == 0 for one in parts):
        return 0
    starts = cast("list[int]", [one.start for one in parts])
    return sum(start * prod(shape[k + 1 :]) for k, start in enumerate(starts))


def _splits_word(parts: Sequence[AxisPart], source: Array) -> bool:
    """True if a view of halves would begin or end inside a word: devices copy whole ones."""
    first = _element_offset(parts, source.shape)
    end = first + prod(cast("list[int]", [one.count for one in parts]))
    bounds = (first, end) if end < source.size else (first,)
    return any(k * types.byte_count(source.element) % buffers.WORD_BYTES for k in bounds)


def _view(source: Array, shape: Shape, first: int) -> Array:
    """The elements from position `first` on, in memory order, as `shape`."""
    skipped = first * types.byte_count(source.element)
    found = source.viewed(source.element, shape, skipped)
    trace = trace_of([source])
    if trace is not None and types.is_differentiable(source.element):

        def pull_back(cotangent: Array) -> Array:
            if cotangent.size == source.size:
                return cotangent.viewed(source.element, source.shape)
            padded = zeros(source.device, source.element, source.shape)
            if cotangent.size:
                source.device.runtime.copy(
                    cotangent.buffer, cotangent.offset, padded.buffer, skipped, found.byte_count
                )
            return padded

        def push_forward(tangent: Array) -> Array:
            return tangent.viewed(source.element, shape, skipped)

        trace.record(ViewStep(source, found, pull_back, push_forward))
    return found


def _copy(source: Array, parts: Sequence[AxisPart], shape: Shape) -> Array:
    graph = _slice_graph(source.element, tuple(one.step for one in parts), len(shape))
    known = [*source.shape, *(one.start for one in parts), *(one.count for one in parts), *shape]
    size_by_name = dict(zip(_names(len(known)), cast("list[int]", known), strict=True))
    return run_graph(graph, [source], size_by_name, source.device)[0]


def _names(count: int) -> list[str]:
    return [f"n{k}" for k in range(count)]


@lru_cache(maxsize=128)
def _slice_graph(element: types.Type, steps: tuple[int, ...], rank: int) -> Graph:
    """A slice whose sizes are open: extents, starts and counts by axis, and the result's shape."""
    symbols = iter(sizes.symbol(name) for name in _names(3 * len(steps) + rank))
    extents, starts, counts = (tuple(next(symbols) for _ in steps) for _ in range(3))
    source = Value(ArrayType(element, extents))
    node = arrays.Slice(operands=(source,), starts=starts, steps=steps, shape=counts)
    reshaped = arrays.Reshape(operands=(node.result,), shape=tuple(symbols))
    return Graph((source,), (reshaped.result,))
