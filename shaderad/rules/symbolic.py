"""Symbolic evaluation of `PARTIALS`: turns the NumPy code of a row into kernel IR.

NumPy treats a `Symbolic` as an array, through the protocols ``__array_ufunc__`` and
``__array_function__``. It holds one scalar, vector or matrix; axes of extent 1 may be added.
Invariant: a NumPy operation without an entry in the tables below is an error, so no derivative is
lost silently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    Matrix,
    Scalar,
    Type,
    Vector,
    is_bool,
    scalar_of,
)

# If rows share a function, the first row counts; masks of NumPy are bools.
OP_BY_UFUNC: dict[Any, ops.Op] = {
    op.numpy: op for op in reversed(ops.TABLE.values()) if isinstance(op.numpy, np.ufunc)
} | {np.invert: ops.NOT}
"""The functions of NumPy by component, and `np.matmul`."""

_ON_BOOLS = frozenset({ops.BIT_AND, ops.BIT_OR, ops.NOT})

Shape = tuple[int, ...]


class Symbolic(NDArrayOperatorsMixin):
    """An expression that NumPy treats as an array."""

    __slots__ = ("expr", "shape")

    def __init__(self, expr: Expr, shape: Shape | None = None) -> None:
        self.expr = expr
        self.shape = _shape_of(expr.type) if shape is None else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def __getitem__(self, key: Any) -> Symbolic:
        """Supports ``[..., k]``, ``[..., r, c]`` and, for new axes, `None`."""
        _, *rest = key
        if None in rest:
            return Symbolic(self.expr, _with_axes(self.shape, rest))
        expr, shape = self.expr, self.shape[: self.ndim - len(rest)]
        axes = self.shape[self.ndim - len(rest) :]
        for k, extent in zip(rest, axes, strict=True):
            if isinstance(k, slice):
                shape = (*shape, extent)
            elif extent != 1:
                expr = c.row(expr, k) if isinstance(expr.type, Matrix) else c.component(expr, k)
        return Symbolic(expr, shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc is np.matmul:
            return _matmul(*inputs)
        op = OP_BY_UFUNC.get(ufunc)
        if op is None:
            return NotImplemented
        exponent = _whole(inputs[1]) if op == ops.POW else None
        if exponent is None:
            return _applied(op, *inputs)
        x, power = inputs[0], c.whole(exponent)
        return x if exponent == 1 else Symbolic(c.apply(ops.POWI, x.expr, power), x.shape)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        handler = _FUNCTIONS.get(function)
        return NotImplemented if handler is None else handler(*args, **kwargs)


def expression(value: Any, t: Type) -> Expr:
    """The result of a rule, as an expression of type `t`."""
    if isinstance(value, Symbolic):
        expr = c.convert(t, value.expr)
        assert expr.type == t, f"{expr.type}, wanted {t}"
        return expr
    return c.number(t, float(value))


def _shape_of(t: Type) -> Shape:
    if isinstance(t, Vector):
        return (t.count,)
    return (t.row_count, t.column_count) if isinstance(t, Matrix) else ()


def _with_axes(shape: Shape, key: Sequence[Any]) -> Shape:
    """`shape` with an axis of extent 1 for each `None` in the trailing `key`."""
    kept = [k for k in key if k is not None]
    left = list(shape[len(shape) - len(kept) :])
    return (
        *shape[: len(shape) - len(kept)],
        *(1 if k is None else left.pop(0) for k in key),
    )


def _core(shape: Shape) -> Shape:
    return tuple(extent for extent in shape if extent != 1)


def _type(scalar: Scalar, shape: Shape) -> Type:
    core = _core(shape)
    if len(core) == 2:
        return Matrix(scalar, *core)
    return Vector(scalar, *core) if core else scalar


# -- by component -----------------------------------------------------------------------------


def _applied(op: ops.Op, *inputs: Any) -> Symbolic:
    shape = _broadcast_shape(inputs)
    scalar = BOOL if op in _ON_BOOLS else _shared_scalar(inputs)
    return Symbolic(c.apply(op, *(_spread(x, scalar, shape) for x in inputs)), shape)


def _is_plain(x: Any) -> bool:
    return not isinstance(x, Symbolic)


def _broadcast_shape(inputs: Sequence[Any]) -> Shape:
    return np.broadcast_shapes(*(np.shape(x) if _is_plain(x) else x.shape for x in inputs))


def _shared_scalar(inputs: Sequence[Any]) -> Scalar:
    """The widest float type of the operands; `float` if there is none."""
    scalars = {scalar_of(x.expr.type) for x in inputs if isinstance(x, Symbolic)}
    return next((s for s in (DOUBLE, FLOAT, HALF) if s in scalars), FLOAT)


def _spread(x: Any, scalar: Scalar, shape: Shape) -> Expr:
    """An operand, broadcast to `shape` and converted to `scalar`."""
    t = _type(scalar, shape)
    if _is_plain(x):
        value = np.asarray(x).item()
        return c.splat(t, nodes.Const(type=BOOL, value=value)) if is_bool(t) else c.number(t, value)
    expr = c.convert(scalar, x.expr)
    if expr.type == t:
        return expr
    if not _core(x.shape):
        return c.splat(t, expr)
    assert isinstance(t, Matrix)
    if len(x.shape) > 1 and x.shape[-1] == 1:
        return c.construct(t, [c.splat(t.row, x) for x in c.components(expr)])
    return c.construct(t, [expr] * t.row_count)


def _whole(x: Any) -> int | None:
    """The value of a constant integer exponent, else `None`."""
    if not _is_plain(x) or np.ndim(x):
        return None
    value = float(x)
    return int(value) if value.is_integer() and abs(value) <= 64 else None


def _where(condition: Any, a: Any, b: Any) -> Any:
    if _is_plain(condition):
        return a if condition else b
    shape = _broadcast_shape((condition, a, b))
    scalar = _shared_scalar((a, b))
    mask = condition.expr if not _core(condition.shape) else _spread(condition, BOOL, shape)
    return Symbolic(c.select(mask, _spread(a, scalar, shape), _spread(b, scalar, shape)), shape)


def _clip(x: Any, low: Any, high: Any) -> Symbolic:
    return _applied(ops.CLAMP, x, low, high)


def _round(x: Any) -> Symbolic:
    return _applied(ops.ROUND, x)


# -- whole values -----------------------------------------------------------------------------


def _matmul(a: Symbolic, b: Symbolic) -> Symbolic:
    is_outer = a.shape[0] == 1 or b.shape[-1] == 1
    shape = (*a.shape[:-1], *b.shape[1:]) if is_outer else None
    return Symbolic(c.apply(ops.MATMUL, a.expr, b.expr), shape)


def _sum(x: Symbolic, axis: int | Shape) -> Symbolic:
    assert axis in (-1, (-2, -1))
    return Symbolic(c.summed(x.expr))


def _expand_dims(x: Symbolic, axis: int) -> Symbolic:
    assert axis == -1
    return Symbolic(x.expr, (*x.shape, 1))


def _swapaxes(x: Symbolic, *_: int) -> Symbolic:
    return Symbolic(c.apply(ops.TRANSPOSE, x.expr))


def _stack(arrays: Sequence[Any], axis: int) -> Symbolic:
    """Stacks scalars into a vector, or vectors into the rows of a matrix."""
    scalar = _shared_scalar(arrays)
    shape = next(x.shape for x in arrays if isinstance(x, Symbolic))
    assert axis == -1 - len(shape)
    parts = [_spread(x, scalar, shape) for x in arrays]
    return Symbolic(c.construct(_type(scalar, (len(parts), *shape)), parts))


def _cross(a: Symbolic, b: Symbolic) -> Symbolic:
    return Symbolic(c.apply(ops.CROSS, a.expr, b.expr))


_FUNCTIONS: dict[Any, Callable[..., Any]] = cast(
    "dict[Any, Callable[..., Any]]",
    {
        np.where: _where,
        np.sum: _sum,
        np.swapaxes: _swapaxes,
        np.expand_dims: _expand_dims,
        np.stack: _stack,
        np.clip: _clip,
        np.cross: _cross,
        np.round: _round,
    },
)
