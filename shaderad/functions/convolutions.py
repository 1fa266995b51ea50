"""`conv`: sums of products of windows and a kernel that moves over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from shaderad.arrays.arrays import Array
from shaderad.arrays.traced_sizes import size_or_none
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.ir import arrays, sizes
from shaderad.ir import building as b
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import FLOAT, HALF, INT, Scalar, is_bool
from shaderad.trace.elements import as_array, cast_to, conform
from shaderad.trace.primitives import known_shape, made
from shaderad.trace.traced import TracedArray, is_less, tracing

__all__ = ["conv"]

Pair = tuple[Size, Size]
"""The padding in front of an axis and behind it."""


@partial(array_function, zero_wins=False)
def conv(
    x: Any, w: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Array:
    """A convolution over the last axes, as in PyTorch and JAX: the kernel is not reversed.

    ``out[..., o, p...] = sum over c, k... of x[..., c, p * stride + k * dilation - padding...] *
    w[o, c, k...]``, where `x` is 0 outside of its extents.

    Args:
        x: Numbers of shape (..., channels, spatial axes...), in front any batch axes or none.
        w: Numbers of shape (output channels, channels / groups, kernel axes...). The number of
            kernel axes is that of the spatial axes, one or more.
        stride: The distance of windows: a whole number, or one for each spatial axis.
        padding: The number of zeros before and after each spatial axis: a whole number, or one or a
            pair for each axis. ``"valid"`` is none, and ``"same"`` as many as give
            ``ceil(extent / stride)`` windows, with the odd one after.
        dilation: The distance of elements in a window, like `stride`.
        groups: Parts of the channels, each with its own part of the output channels.

    Returns:
        Numbers of shape (..., output channels, windows...). Products of halves are added in float,
        and rounded once.

    Raises:
        ShapeError: SR0326 for vectors, bools and structs, SR0330, where the types differ, SR0803
            for shapes that do not fit, SR0804 for another `stride`, `padding`, `dilation` or
            `groups`.

    Differentiable: the cotangents of `x` and `w` are convolutions as well.
    """
    left, right = _numbers(x, w)
    if left.element == HALF:
        wide, kernel = (cast_to(operand, FLOAT) for operand in (left, right))
        return cast_to(conv(wide, kernel, stride, padding, dilation, groups), HALF)
    rank = len(right.extents) - 2
    if rank < 1 or len(left.extents) < rank + 1:
        raise _misfit(left, right, "it needs an axis of channels, and `w` one more")
    strides, dilations = _distances("stride", stride, rank), _distances("dilation", dilation, rank)
    count = _group_count(groups, left, right, rank)
    extents, kernel = left.extents[-rank:], right.extents[2:]
    spans = [
        sizes.add(sizes.multiply(d, sizes.subtract(k, 1)), 1)
        for d, k in zip(dilations, kernel, strict=True)
    ]
    pads = _padding(padding, extents, spans, strides)
    windows = [
        _windows(left, right, n, sizes.add(n, sizes.add(*pad)), span, step)
        for n, pad, span, step in zip(extents, pads, spans, strides, strict=True)
    ]
    return _convolved(left, right, count, arrays.Convolution(
        operands=(left.value, right.value), extents=tuple(windows), strides=strides,
        dilations=dilations, spacings=(1,) * rank, padding=tuple(low for low, _ in pads),
        span=user_span(),
    ))  # fmt: skip


def _convolved(
    x: TracedArray, w: TracedArray, groups: int, node: arrays.Convolution
) -> TracedArray:
    """The convolution; the first axis of `node` stands for the groups."""
    lead, extents = x.extents[: -len(node.extents) - 1], x.extents[-len(node.extents) :]
    rows, (outputs, channels, *kernel) = sizes.product(lead), w.extents
    own = sizes.floor_divide(outputs, groups)
    exchanged = [1, 0, *range(2, 3 + len(extents))]
    source = b.transpose(b.reshape(x.value, (rows, groups, channels, *extents)), exchanged)
    weights = b.reshape(w.value, (groups, own, channels, *kernel))
    products = replace(node, operands=(source, weights)).result
    return made(b.reshape(b.transpose(products, exchanged), (*lead, outputs, *node.extents)))


def _numbers(x: Any, w: Any) -> tuple[TracedArray, TracedArray]:
    """The operands with elements of one type."""
    left, right = as_array(x), as_array(w)
    for operand in (left, right):
        if not isinstance(operand.element, Scalar) or is_bool(operand.element):
            raise error(
                "SR0326", user_span(), name="conv", takes="numbers", element=operand.element
            )
    if left.element == INT:
        left = conform(left, right.element, "x")
    return left, conform(right, left.element, "w")


def _group_count(groups: Any, x: TracedArray, w: TracedArray, rank: int) -> int:
    """The number of groups, which divide the channels and the output channels."""
    if type(groups) is not int or groups < 1:
        raise error("SR0804", user_span(), name="groups", found=text_of(groups),
                    wanted="a whole number from 1 on")  # fmt: skip
    outputs, channels = w.extents[:2]
    whole = sizes.multiply(sizes.floor_divide(outputs, groups), groups)
    if not tracing().are_equal(x.extents[-rank - 1], sizes.multiply(channels, groups)):
        raise _misfit(x, w, f"the channels of `x` are {groups} times those of `w`")
    if not tracing().are_equal(outputs, whole):
        raise _misfit(x, w, f"{groups} groups do not divide the output channels")
    return groups


def _windows(
    x: TracedArray, w: TracedArray, extent: Size, padded: Size, span: Size, step: int
) -> Size:
    """The number of windows of `span` positions, `step` apart, along an axis."""
    if is_less(padded, span) and is_less(0, extent):
        raise _misfit(x, w, "a window is longer than an axis with its padding")
    beyond = sizes.add(sizes.subtract(padded, span), step)
    return sizes.floor_divide(sizes.maximum(beyond, 0), step)


def _misfit(x: TracedArray, w: TracedArray, why: str) -> Exception:
    return error("SR0803", user_span(), left=known_shape(x.extents),
                 right=known_shape(w.extents), why=why)  # fmt: skip


def _distances(name: str, setting: Any, rank: int) -> tuple[int, ...]:
    """One positive number for each spatial axis."""
    items = _by_axis(setting, rank)
    if len(items) != rank or any(type(distance) is not int or distance < 1 for distance in items):
        raise error("SR0804", user_span(), name=name, found=text_of(setting),
                    wanted=f"a whole number from 1 on, or {rank} of them")  # fmt: skip
    return tuple(items)


def _by_axis(value: Any, rank: int) -> list[Any]:
    """The items of a tuple or list; anything else is repeated for each axis."""
    return [*cast("Sequence[Any]", value)] if isinstance(value, tuple | list) else [value] * rank


def _padding(
    padding: Any, extents: Shape, spans: Sequence[Size], strides: Sequence[int]
) -> list[Pair]:
    """The padding of each spatial axis."""
    mode = padding if isinstance(padding, str) else ""
    if mode == "same":
        return [_same(*axis) for axis in zip(extents, spans, strides, strict=True)]
    items = _by_axis(0 if mode == "valid" else padding, len(extents))
    pairs = [pair for pair in map(_pair, items) if pair is not None]
    if len(pairs) != len(extents) or len(pairs) != len(items):
        wanted = f'a whole number, {len(extents)} of them or of pairs, `"same"` or `"valid"`'
        raise error("SR0804", user_span(), name="padding", found=text_of(padding), wanted=wanted)
    return pairs


def _pair(setting: Any) -> Pair | None:
    """The padding of one axis; `None` if it is invalid."""
    sides = [size_or_none(side) for side in _by_axis(setting, 2)]
    amounts = [n for n in sides if n is not None and (not isinstance(n, int) or n >= 0)]
    return (amounts[0], amounts[1]) if len(amounts) == len(sides) == 2 else None


def _same(extent: Size, span: Size, stride: int) -> Pair:
    """The padding that gives ``ceil(extent / stride)`` windows."""
    last = sizes.multiply(sizes.subtract(sizes.divide_up(extent, stride), 1), stride)
    total = sizes.maximum(sizes.subtract(sizes.add(last, span), extent), 0)
    low = sizes.floor_divide(total, 2)
    return low, sizes.subtract(total, low)
