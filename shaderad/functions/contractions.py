"""`einsum` and `tensordot`: sums of products over axes that arrays share.

Axes have labels. Two arrays are multiplied over all axes of both, and summed over the axes that no
other array or the result needs. The sum of products and its derivatives run over tiles
(`plan/nest/sums/kernels.py`). Several arrays are contracted from the left, two at a time.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from shaderad.arrays.arrays import Array
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error, text_of
from shaderad.functions.layout import transpose
from shaderad.functions.reductions import sum_of
from shaderad.ir import building as b
from shaderad.ir import ops
from shaderad.ir.sizes import Size
from shaderad.ir.types import FLOAT, HALF
from shaderad.trace.elements import as_element, binary, cast_to
from shaderad.trace.primitives import as_number, axis_of, known_shape, made
from shaderad.trace.traced import TracedArray, tracing

__all__ = ["einsum", "tensordot"]

Label = str | int
"""A letter, or minus the position of an axis of ``...``, counted from its end."""
_GROUP = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


@dataclass(frozen=True)
class Labelled:
    """An array and the label of each of its axes; no label comes twice."""

    array: TracedArray
    labels: tuple[Label, ...]


@partial(array_function, zero_wins=False)
def einsum(spec: str, *arrays: Any) -> Array:
    """A sum of products, by Einstein's convention.

    ``sad.einsum("ik,kj->ij", a, b)`` is ``a @ b``.

    Args:
        spec: As in NumPy: a letter for each axis of each array, then after ``->`` those of the
            result; every other letter is summed over. ``...`` stands for further axes, which are
            broadcast. Without ``->``, the result has the letters that come once, in order. A
            letter that comes twice in one array takes its diagonal.
        arrays: Numbers, or vectors and matrices by component.

    Returns:
        Elements of the type of the product. Products of halves are added in float, and rounded
        once.

    Raises:
        ShapeError: SR0386 for another `spec`, or one that does not fit the arrays; SR0387, where
            axes of one letter disagree.

    Differentiable: the cotangent of each array is a sum of products as well.

    Source: Einstein, *Die Grundlage der allgemeinen Relativitätstheorie*, Ann. Phys. 354 (1916).
    """
    operands = [as_element(x) for x in arrays]
    groups, result = _parsed(spec, operands)
    _check_extents(spec, operands, groups)
    labelled = [_diagonal(x, labels) for x, labels in zip(operands, groups, strict=True)]
    return contracted(labelled, result)


@partial(array_function, zero_wins=False)
def tensordot(x: Any, y: Any, axes: Any = 2) -> Array:
    """The sum of products over pairs of axes.

    ``out[i..., j...] = sum over k... of x[i..., k...] * y[k..., j...]``

    Args:
        x: Numbers, or vectors and matrices by component.
        y: Likewise.
        axes: How many last axes of `x` and first of `y` are summed over, or a pair of axes or of
            lists of axes: those of `x`, and those of `y`.

    Returns:
        The other axes of `x`, then those of `y`.

    Raises:
        ShapeError: SR0323 for an axis, SR0386 for other `axes`, SR0387, where extents disagree.

    Differentiable: the cotangent of each array is such a sum as well.
    """
    left, right = as_element(x), as_element(y)
    own, others = _pairs(axes, len(left.extents), len(right.extents))
    left_labels: list[Label] = [f"x{k}" for k in range(len(left.extents))]
    right_labels: list[Label] = [f"y{k}" for k in range(len(right.extents))]
    for p, q in zip(own, others, strict=True):
        right_labels[q] = left_labels[p]
    _check_extents(f"axes={text_of(axes)}", [left, right], [left_labels, right_labels])
    summed = {left_labels[p] for p in own}
    result = [label for label in (*left_labels, *right_labels) if label not in summed]
    both = [Labelled(left, tuple(left_labels)), Labelled(right, tuple(right_labels))]
    return contracted(both, result)


# -- specs --------------------------------------------------------------------------------------


def _parsed(spec: Any, arrays: Sequence[TracedArray]) -> tuple[list[list[Label]], list[Label]]:
    """The labels of each array, and those of the result.

    Raises:
        ShapeError: SR0386 if `spec` is invalid.
    """
    if not isinstance(spec, str):
        raise _misfit(spec, "it is no text")
    operand_labels, arrow, wanted = spec.replace(" ", "").partition("->")
    groups = operand_labels.split(",")
    if len(groups) != len(arrays):
        raise _misfit(spec, f"it has {len(groups)} groups for {len(arrays)} arrays")
    labels = [_labels(spec, g, len(x.extents)) for g, x in zip(groups, arrays, strict=True)]
    every = [label for group in labels for label in group]
    around = ellipsis(max((-label for label in every if isinstance(label, int)), default=0))
    if arrow:
        result = _labels(spec, wanted, len(around) + len(wanted.replace("...", "")))
    else:
        letters = sorted(label for label in every if isinstance(label, str))
        result = [*around, *(x for x in letters if letters.count(x) == 1)]
    if len(set(result)) < len(result):
        raise _misfit(spec, "a letter comes twice in the result")
    unknown = [label for label in result if label not in every]
    if unknown:
        raise _misfit(spec, f"`{unknown[0]}` is in no array")
    if not set(around) <= set(result):
        raise _misfit(spec, "the result lacks `...`")
    return labels, result


def _labels(spec: str, group: str, rank: int) -> list[Label]:
    """The labels of an array of `rank` axes."""
    match = _GROUP.fullmatch(group)
    if match is None:
        raise _misfit(spec, f"`{group}` is no group of letters")
    before, dots, after = match.groups()
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise _misfit(spec, f"`{group}` stands for an array of {rank} axes")
    return [*before, *ellipsis(count), *after]


def ellipsis(count: int) -> tuple[Label, ...]:
    """The labels of `count` axes in front, which are broadcast."""
    return tuple(range(-count, 0))


def _misfit(spec: Any, why: str) -> Exception:
    return error("SR0386", user_span(), spec=spec, why=why)


def _pairs(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    """The axes of both arrays that `tensordot` sums over."""
    count = as_number(axes)
    if type(count) is int:
        if not 0 <= count <= min(left, right):
            raise _misfit(axes, f"the arrays have {left} and {right} axes")
        return list(range(left - count, left)), list(range(count))
    if not isinstance(axes, tuple | list) or len(pair := cast("Sequence[Any]", axes)) != 2:
        raise _misfit(axes, "`axes` is no number and no pair")
    own, others = (
        [axis_of(axis, rank) for axis in _listed(side)]
        for side, rank in zip(pair, (left, right), strict=True)
    )
    if len(own) != len(others) or len({*own}) < len(own) or len({*others}) < len(others):
        raise _misfit(axes, "each axis of one array has one of the other")
    return own, others


def _listed(axes: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", axes) if isinstance(axes, tuple | list) else [axes]


def _check_extents(
    spec: Any, arrays: Sequence[TracedArray], groups: Sequence[Sequence[Label]]
) -> None:
    """Raises SR0387 where axes of one label differ and neither has an extent of 1."""
    extent_by_label: dict[Label, Size] = {}
    for x, labels in zip(arrays, groups, strict=True):
        for label, extent in zip(labels, x.extents, strict=True):
            before = extent_by_label.get(label, 1)
            is_diagonal = list(labels).count(label) > 1 and label in extent_by_label
            may_repeat = 1 in (before, extent) and not is_diagonal
            if not may_repeat and not tracing().are_equal(before, extent):
                name = label if isinstance(label, str) else "..."
                raise error("SR0387", user_span(), spec=spec, letter=name,
                            left=known_shape((before,)), right=known_shape((extent,)))  # fmt: skip
            if extent != 1 or label not in extent_by_label:
                extent_by_label[label] = extent


# -- sums of products ---------------------------------------------------------------------------


def contracted(operands: Sequence[Labelled], result: Sequence[Label]) -> TracedArray:
    """The product of all operands, summed over the labels that are not in `result`."""
    if all(x.array.element == HALF for x in operands):
        wide = [Labelled(cast_to(x.array, FLOAT), x.labels) for x in operands]
        return cast_to(contracted(wide, result), HALF)
    x, *rest = operands
    while rest:
        y, *rest = rest
        needed = {*result}.union(*(z.labels for z in rest))
        x = _summed(x, needed | {*y.labels})
        y = _summed(y, needed | {*x.labels})
        kept = [label for label in dict.fromkeys((*x.labels, *y.labels)) if label in needed]
        x = _product(x, y, kept if rest else [*result])
    x = _summed(x, {*result})
    return transpose(x.array, [x.labels.index(label) for label in result])


def _product(x: Labelled, y: Labelled, kept: Sequence[Label]) -> Labelled:
    """The product, summed over the labels that are not `kept`."""
    summed = [label for label in dict.fromkeys((*x.labels, *y.labels)) if label not in kept]
    order = [label for label in (*kept, *summed) if label in (*x.labels, *y.labels)]
    products = binary("mul", _aligned(x, order), _aligned(y, order))
    return _summed(Labelled(products, tuple(order)), {*kept})


def _aligned(x: Labelled, order: Sequence[Label]) -> TracedArray:
    """`x` with one axis for each label, of extent 1 where it has none."""
    present = [x.labels.index(label) for label in order if label in x.labels]
    array = transpose(x.array, present)
    extents = iter(array.extents)
    shape = tuple(next(extents) if label in x.labels else 1 for label in order)
    return made(b.reshape(array.value, shape))


def _summed(x: Labelled, needed: Container[Label]) -> Labelled:
    """`x`, summed over labels that are not `needed`."""
    axes = tuple(k for k, label in enumerate(x.labels) if label not in needed)
    if not axes:
        return x
    return Labelled(sum_of(x.array, axes), tuple(la for la in x.labels if la in needed))


def _diagonal(x: TracedArray, labels: Sequence[Label]) -> Labelled:
    """The elements with the same position along all axes of one label."""
    for second, label in enumerate(labels):
        first = labels.index(label)
        if first < second:
            value = x.value
            positions = (b.iota(value.shape, axis) for axis in (first, second))
            on_diagonal = b.applied(ops.EQ, *positions)
            value = b.where(on_diagonal, value, b.zeros(value.type))
            inner = made(b.sum_over(value, (second,)))
            return _diagonal(inner, [*labels[:second], *labels[second + 1 :]])
    return Labelled(x, tuple(labels))
