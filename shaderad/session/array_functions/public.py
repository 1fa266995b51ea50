"""The operators as users call them: documented, and run at once where nothing is traced."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.annotations import TypeObject
from shaderad.frontend.host import UserFunction
from shaderad.frontend.intrinsics import Intrinsic
from shaderad.frontend.structs import StructInfo
from shaderad.ir import ops, types
from shaderad.ir.pointers import comes_apart
from shaderad.runtime.buffers import element_axes
from shaderad.session.array_functions import (
    creation,
    custom,
    elements,
    indexing,
    layout,
    linalg,
    loops,
    mapping,
    reductions,
    scans,
    sorting,
)
from shaderad.session.arrays import Array
from shaderad.session.dtypes import element_type
from shaderad.session.run_operator import run_elementwise, run_operator
from shaderad.session.traced_sizes import shape_of

Axes = int | Sequence[int] | None
Operator = Intrinsic | UserFunction
"""`sad.add`, `mul`, `min`, `max`, `any`, `all`, `matmul`, or an associative ``@sad.function``."""

# -- by element -------------------------------------------------------------------------------


@api_boundary
def where(condition: Any, a: Any, b: Any) -> Array:
    """``a`` where the condition holds, else ``b``; all three broadcast."""
    return run_elementwise(elements.where, condition, a, b)


@api_boundary
def map(function: Callable[..., Any], *arrays: Any) -> Any:  # noqa: A001 - the public name
    """``function`` of the elements of arrays that broadcast to one shape.

    Args:
        function: A ``@sad.function``, or any Python function: it is called once, on arrays that
            show one element, and may use all of what it captures.
        arrays: One for each parameter.
    """
    return run_operator(mapping.map_over, function, *arrays)


@api_boundary
def cast(x: Any, dtype: Any) -> Array:
    """Every element converted as in kernels: float to int truncates."""
    return run_operator(elements.cast, x, element_type(dtype))


# -- over axes --------------------------------------------------------------------------------


@api_boundary
def reduce(op: Operator, x: Any, init: Any = None, *, axis: Axes = None) -> Array:
    """``init op x[0] op x[1] op ..`` over one axis, several, or all in row-major order.

    Raises:
        ShapeError: SR0327 of nothing by a function, without `init`.
    """
    return run_operator(reductions.reduce, op, x, init, axis)


@api_boundary
def sum(x: Any, *, axis: Axes = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The sum, in trees; 0 of nothing. Of bools, how many are true."""
    return run_operator(reductions.sum_of, x, axis, keepdims)


@api_boundary
def prod(x: Any, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The product; 1 of nothing. Its derivative is right at zeros."""
    return run_operator(reductions.prod_of, x, axis, keepdims)


@api_boundary
def mean(x: Any, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean; ints give floats.

    Raises:
        ShapeError: SR0327 of nothing.
    """
    return run_operator(reductions.mean_of, x, axis, keepdims)


@api_boundary
def argmin(x: Any, *, axis: int | None = None) -> Array:
    """The position of the first smallest; row-major without an axis.

    Raises:
        ShapeError: SR0327 of nothing.
    """
    return run_operator(reductions.arg_extreme, "min", x, axis)


@api_boundary
def argmax(x: Any, *, axis: int | None = None) -> Array:
    """The position of the first largest; row-major without an axis.

    Raises:
        ShapeError: SR0327 of nothing.
    """
    return run_operator(reductions.arg_extreme, "max", x, axis)


@api_boundary
def scan(
    op: Operator,
    x: Any,
    init: Any = None,
    *,
    axis: int = -1,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    """Running totals: ``init op x[0] op .. op x[i]`` at i, without ``x[i]`` where exclusive.

    In reverse they run from the end: ``init op x[n - 1] op .. op x[i]``.

    Raises:
        ShapeError: SR0327 for an exclusive scan by a function without `init`.
    """
    return run_operator(scans.scan, op, x, init, axis, exclusive, reverse)


associative_scan = scan
"""The name that JAX and PyTorch have for `scan`."""


# -- by index array ---------------------------------------------------------------------------


@api_boundary
def gather(x: Any, index: Any, bounds: str = "raise") -> Array:
    """``result[j..] = x[index[j..]]``; out of range reads 0.

    Args:
        x: Elements, or rows.
        index: An int array of any shape.
        bounds: ``"raise"`` reports what is out of range, ``"ignore"`` does not.
    """
    return run_operator(indexing.gather, x, index, bounds)


@api_boundary
def scatter(base: Any, index: Any, values: Any) -> Array:
    """``result = base; result[index[j..]] = values[j..]``; out of range is ignored.

    Of several that write one element, the last one lasts. The gradient follows what was written.
    """
    return run_operator(indexing.scatter, base, index, values)


@api_boundary
def scatter_add(base: Any, index: Any, values: Any) -> Array:
    """``result = base; result[index[j..]] += values[j..]``; out of range is ignored."""
    return run_operator(indexing.scatter_add, base, index, values)


@api_boundary
def segment_reduce(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """``result[s] = init op values[j] op ..`` over all j with ``index[j] == s``, in their order.

    Args:
        op: Associative.
        init: Comes before the first value of each segment; one element, or one a segment.
        size: How many segments; an index out of their range is ignored.
        index: The segment of each value, in any order.
        values: Elements, or rows.
    """
    return run_operator(sorting.segment_reduce, op, init, size, index, values)


@api_boundary
def histogram(op: Operator, init: Any, size: Any, index: Any, values: Any) -> Array:
    """Deprecated: write ``sad.segment_reduce(op, init, size, index, values)``."""
    _deprecated("histogram(..)", "segment_reduce(..)")
    return run_operator(sorting.segment_reduce, op, init, size, index, values)


@api_boundary
def sort(keys: Any, *, axis: int = -1) -> Array:
    """The keys in ascending order, NaN last."""
    return run_operator(sorting.sort, keys, axis)


@api_boundary
def argsort(keys: Any, *, axis: int = -1) -> Array:
    """The stable order of ascending keys, NaN last: ``x[argsort(x)]`` is sorted."""
    return run_operator(sorting.argsort, keys, axis)


@api_boundary
def compact(x: Any, mask: Any) -> tuple[Array, Array]:
    """The elements, or rows, where the mask holds, in order and padded with 0; and how many."""
    return run_operator(indexing.compact, x, mask)


# -- layout -----------------------------------------------------------------------------------


@api_boundary
def iota(n: Any) -> Array:
    """0, 1, .., n - 1."""
    return run_operator(creation.iota, shape_of(n, "n"))


@api_boundary
def full(shape: Any, value: Any) -> Array:
    """`value` everywhere: a number, a vector like ``float3(0, 0, 1)``, an array of one element."""
    return run_operator(creation.full, shape_of(shape), value)


@api_boundary
def zeros(shape: Any, dtype: Any = float) -> Array:
    """Zeros of an element type."""
    return run_operator(creation.zeros, shape_of(shape), element_type(dtype))


@api_boundary
def reshape(x: Any, shape: Any) -> Array:
    """The same elements in row-major order; one extent may be -1."""
    return run_operator(layout.reshape, x, shape)


@api_boundary
def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
    """The arrays one after the other along an axis."""
    return run_operator(layout.concatenate, arrays, axis)


@api_boundary
def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape side by side along a new axis."""
    return run_operator(layout.stack, arrays, axis)


@api_boundary
def broadcast_to(x: Any, shape: Any) -> Array:
    """`x` repeated to a shape, as NumPy does; ``float3(0, 0, 1)`` is one element."""
    return run_operator(layout.broadcast_to, x, shape)


@api_boundary
def reverse(x: Any, axis: int = -1) -> Array:
    """The elements of an axis in the other order."""
    return run_operator(layout.reverse, x, axis)


@api_boundary
def roll(x: Any, shift: Any, axis: int = -1) -> Array:
    """``result[(i + shift) mod n] = x[i]``, as in NumPy: the last elements come first."""
    return run_operator(layout.roll, x, shift, axis)


@api_boundary
def rotate(x: Any, by: Any, axis: int = -1) -> Array:
    """Deprecated: write ``sad.roll(x, -by, axis)``."""
    _deprecated("rotate(x, by, axis)", "roll(x, -by, axis)")
    return run_operator(layout.roll, x, -by, axis)


# -- control flow -----------------------------------------------------------------------------


@api_boundary
def fori_loop(
    count: Any,
    body: Callable[[Array, Any], Any],
    init: Any,
    checkpoint: Literal["sqrt", "all", "none"] = "sqrt",
) -> Any:
    """``carry = body(k, carry)`` for k in ``range(count)``; returns the last carry.

    Args:
        count: A number, or a size such as ``x.shape[0]``.
        body: Called once, on traced arrays.
        init: A number, array, struct, or tuple, list or dict of them.
        checkpoint: What reverse mode keeps: every carry (``"all"``), about sqrt(count) of them,
            from which it computes the others again, or none, and then there is none.
    """
    return run_operator(loops.fori_loop, count, body, init, checkpoint)


@api_boundary
def loop(body: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any) -> tuple[Any, Any]:
    """``carry, ys[k] = body(carry, xs[k])``; returns the last carry and the ys."""
    return run_operator(loops.loop, body, init, xs)


@api_boundary
def while_loop(
    cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, limit: int
) -> Any:
    """``carry = body(carry)`` while ``cond(carry)``; stopping at `limit` is reported."""
    return run_operator(loops.while_loop, cond, body, init, limit)


@api_boundary
def custom_vjp(function: Callable[..., Any]) -> custom.CustomVjp:
    """Gives a function a reverse mode of its own: ``f.defvjp(forward, backward)``.

    ``forward(*args)`` gives the result and residuals, ``backward(residuals, result_bar)`` a tuple
    of one cotangent an argument.
    """
    return custom.CustomVjp(function)


@api_boundary
def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose inside reverse mode computes again instead of keeping it."""

    def checkpointed(*args: Any) -> Any:
        return run_operator(custom.checkpointed, function, *args)

    return checkpointed


# -- names that kernels have, too -------------------------------------------------------------

_REDUCTIONS: dict[ops.Op, Callable[..., Any]] = {
    ops.MIN: reductions.min_of,
    ops.MAX: reductions.max_of,
    ops.ANY_OF: reductions.any_of,
    ops.ALL_OF: reductions.all_of,
}


def intrinsic(op: ops.Op, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``sad.<op>(..)`` of arrays: reductions for one argument of `min`, `max`, `any`, `all`."""
    if op in _REDUCTIONS and len(args) == 1:
        return _reduction(_REDUCTIONS[op], *args, **keywords)
    if op == ops.MATMUL:
        return run_operator(linalg.matmul, *args, **keywords)
    if op == ops.TRANSPOSE and not _holds_matrices(args[0]):
        return _transpose(*args, **keywords)
    return run_operator(elements.primitive, op, *args, **keywords)


def _deprecated(call: str, instead: str) -> None:
    """Warns at the line of the user."""
    # This function, the one that calls it, and its `api_boundary` lie in between.
    text = f"`sad.{call}` is deprecated: write `sad.{instead}`"
    warnings.warn(text, DeprecationWarning, stacklevel=4)


def _reduction(
    function: Callable[..., Any], x: Any, *, axis: Axes = None, keepdims: bool = False
) -> Array:
    return run_operator(function, x, axis, keepdims)


def _transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    return run_operator(layout.transpose, x, axes)


def _holds_matrices(x: Any) -> bool:
    return isinstance(x, Array) and isinstance(x.element, types.Matrix)


def constructed(t: TypeObject, parts: tuple[Any, ...]) -> Array:
    """``float3(x, y, z)`` of arrays."""
    return run_operator(elements.constructed, t, parts)


def struct_array(info: StructInfo, fields: dict[str, Any]) -> Array | None:
    """``Struct(a, b)`` of arrays with an element each; `None` where every field is one value."""
    t = info.ir_type
    is_plain = set(fields) == set(t.type_by_field) and not comes_apart(t)
    if not is_plain or not any(_has_rows(fields[name], field) for name, field in t.fields):
        return None
    return run_operator(elements.struct_of, info, fields)


def _has_rows(x: Any, field: types.Type) -> bool:
    """Whether an array holds more than one value of a field, which may lie along its last axes."""
    if not isinstance(x, Array):
        return False
    own = 0 if x.element == field else len(element_axes(field))
    return len(x.shape) > own


def detached(x: Any) -> Array:
    """``sad.detach(x)`` of an array."""
    return run_operator(elements.detach, x)
