"""``x[a:b:c, k, None]`` on arrays: a view where the elements lie together, else a copy.

Both are steps of a trace. Positions and bounds count from the end where negative, as in NumPy.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from shaderad.diagnostics import error
from shaderad.ir import types
from shaderad.runtime import buffers
from shaderad.session import array_kernels
from shaderad.session.array_functions.subscripts import is_index_array, subscripted
from shaderad.session.array_kernels import RESULT
from shaderad.session.arrays import Array, Shape, zeros
from shaderad.session.launch import new_launch
from shaderad.session.run_operator import run_operator
from shaderad.session.tape import ViewStep, launched, trace_of
from shaderad.session.traced import is_traced
from shaderad.session.words import uniform_words


@dataclass(frozen=True, slots=True)
class AxisRange:
    """The positions of one axis that a key selects."""

    start: int
    step: int
    count: int
    is_kept: bool
    """False for a single position, whose axis goes away."""


def sliced(source: Array, key: Any) -> Array:
    """The part of `source` that `key` selects.

    Raises:
        ShapeError: SR0380 for keys that are no positions or slices, SR0381 for too many.
        BoundsError: SR0665, where a position is out of range.
    """
    keys = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    if is_traced([source]) or any(is_index_array(item) for item in keys):
        return run_operator(subscripted, source, key)
    items = _expanded(keys, source)
    axes = iter(source.shape)
    ranges = [_axis_range(item, next(axes)) for item in items if item is not None]
    kept = tuple(one.count for one in ranges if one.is_kept)
    if _lie_together(ranges, source.shape) and not _splits_word(ranges, source):
        found = _view(source, kept, _element_offset(ranges, source.shape))
    else:
        found = _copy(source, ranges, kept)
    if None not in items:
        return found
    remaining = iter(kept)
    shape = [
        1 if item is None else next(remaining)
        for item in items
        if item is None or isinstance(item, slice)
    ]
    return _view(found, tuple(shape), 0)


def _expanded(items: tuple[Any, ...], source: Array) -> list[Any]:
    """One item an axis of `source`, `None`s apart."""
    count = sum(item is not None and item is not Ellipsis for item in items)
    if count > source.ndim:
        raise error("SR0381", count=count, shape=source.shape)
    if sum(item is Ellipsis for item in items) > 1:
        raise error("SR0380", found="`...` twice")
    rest = [slice(None)] * (source.ndim - count)
    if not any(item is Ellipsis for item in items):
        return [*items, *rest]
    at = next(k for k, item in enumerate(items) if item is Ellipsis)
    return [*items[:at], *rest, *items[at + 1 :]]


def _axis_range(item: Any, extent: int) -> AxisRange:
    if isinstance(item, slice):
        whole = cast("slice[Any, Any, Any]", item)
        try:
            start, stop, step = whole.indices(extent)
        except (TypeError, ValueError):
            raise error("SR0380", found=str(whole)) from None
        return AxisRange(start, step, len(range(start, stop, step)), is_kept=True)
    if isinstance(item, Array) and item.shape:
        raise error("SR0380", found="Array")
    try:
        position = operator.index(item)
    except TypeError:
        raise error("SR0380", found=type(item).__name__) from None
    if isinstance(item, bool):
        raise error("SR0380", found=repr(item))
    if not -extent <= position < extent:
        raise error("SR0665", index=position, length=extent)
    return AxisRange(position % extent, 1, 1, is_kept=False)


def _lie_together(ranges: list[AxisRange], shape: Shape) -> bool:
    """Whether the selected elements follow each other: positions, one slice, whole axes."""
    if any(one.count == 0 for one in ranges):
        return True
    is_whole = [
        one.step == 1 and one.count == extent for one, extent in zip(ranges, shape, strict=True)
    ]
    first = next((k for k, one in enumerate(ranges) if one.count != 1), len(ranges))
    if first < len(ranges) and ranges[first].step != 1:
        return False
    return all(is_whole[first + 1 :])


def _element_offset(ranges: list[AxisRange], shape: Shape) -> int:
    if any(one.count == 0 for one in ranges):
        return 0
    return sum(one.start * prod(shape[k + 1 :]) for k, one in enumerate(ranges))


def _splits_word(ranges: list[AxisRange], source: Array) -> bool:
    """Whether a view of halves would begin or end inside a word: devices copy whole ones."""
    first = _element_offset(ranges, source.shape)
    end = first + prod(one.count for one in ranges)
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


def _copy(source: Array, ranges: list[AxisRange], shape: Shape) -> Array:
    is_kept = tuple(one.is_kept for one in ranges)
    if not any(is_kept):  # one element; kernels have results of one axis at least
        ranges = [*ranges[:-1], AxisRange(ranges[-1].start, 1, 1, is_kept=True)]
        is_kept = tuple(one.is_kept for one in ranges)
    dim = tuple(one.count for one in ranges if one.is_kept)
    uniforms: dict[str, bytes | Array] = {}
    for axis, one in enumerate(ranges):
        uniforms[f"start{axis}"] = uniform_words(one.start, types.INT, "start")
        if one.is_kept:
            uniforms[f"step{axis}"] = uniform_words(one.step, types.INT, "step")
    launch = new_launch(
        array_kernels.strided_copy(source.element, is_kept),
        source.device,
        dim,
        {"a": source},
        uniforms,
        {RESULT: dim},
        sources={"a": source},
        shown=shape,
    )
    launched(launch)
    return launch.outputs[RESULT]
