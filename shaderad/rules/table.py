"""Rows of the derivative tables. Both the jvp and the vjp of an op follow from its row.

Rows work on NumPy arrays of any float type; leading axes are batches. A row gives the partials by
all operands, and `ZERO` for one that is zero by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class ZeroPartial:
    """The type of `ZERO`: a partial that is zero by definition, as that of `floor`."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = ZeroPartial()
Partial = Array | float | ZeroPartial


class Row(Protocol):
    """The derivative of an op, in both modes."""

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        """The tangent of ``y = op(*args)``."""
        ...

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        """The cotangents of `args`, each in the shape of its operand."""
        ...


@dataclass(frozen=True, slots=True)
class ByComponent:
    """``partials(y, *args)`` gives dy/da for each operand, by component.

    jvp: ``sum(partial * tangent)``; vjp: ``partial * cotangent``. Operands have one shape.
    """

    partials: Callable[..., tuple[Partial, ...]]
    zero_wins: bool = True
    """True if 0 times infinity is 0; False for the IEEE product, where it is NaN."""

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        y_dot = np.zeros_like(y)
        for partial, x_dot in zip(self._partials(y, args), args_dot, strict=True):
            if not isinstance(partial, ZeroPartial):
                with np.errstate(invalid="ignore"):  # infinities of two operands
                    y_dot = y_dot + self._times(partial, x_dot)
        return y_dot

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        return tuple(
            np.zeros_like(y_bar)
            if isinstance(partial, ZeroPartial)
            else self._times(partial, y_bar)
            for partial in self._partials(y, args)
        )

    def _times(self, partial: Array | float, d: Array) -> Array:
        if self.zero_wins:
            return times(partial, d)
        with np.errstate(all="ignore"):
            return partial * d

    def _partials(self, y: Array, args: Sequence[Array]) -> tuple[Partial, ...]:
        with np.errstate(all="ignore"):
            return self.partials(y, *args)


@dataclass(frozen=True, slots=True)
class WholeValue:
    """An op that mixes components, with both formulas written out.

    ``push(y, args, args_dot)`` and ``pull(y, args, y_bar)``; tests compare them with each other and
    with central differences.
    """

    push: Callable[[Array, Sequence[Array], Sequence[Array]], Array]
    pull: Callable[[Array, Sequence[Array], Array], tuple[Array, ...]]

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        with np.errstate(all="ignore"):
            return self.push(y, args, args_dot)

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return self.pull(y, args, y_bar)


def times(partial: Array | float, d: Array) -> Array:
    """``partial * d`` with 0 times infinity = 0 (docs/conventions.md, "zero wins")."""
    with np.errstate(all="ignore"):
        product = partial * d
        is_void = np.isnan(product) & ((partial == 0) | (d == 0))
    return np.where(is_void, product.dtype.type(0), product)


def unary(partial: Callable[[Array, Array], Partial]) -> ByComponent:
    """A row of one operand: ``partial(y, x)`` is dy/dx."""

    def partials(y: Array, x: Array) -> tuple[Partial]:
        return (partial(y, x),)

    return ByComponent(partials)


def binary(partials: Callable[[Array, Array, Array], tuple[Partial, Partial]]) -> ByComponent:
    """A row of two operands: ``partials(y, a, b)`` is ``(dy/da, dy/db)``."""
    return ByComponent(partials)


def ternary(
    partials: Callable[[Array, Array, Array, Array], tuple[Partial, Partial, Partial]],
) -> ByComponent:
    """A row of three operands: ``partials(y, a, b, c)`` is ``(dy/da, dy/db, dy/dc)``."""
    return ByComponent(partials)


def ieee(row: ByComponent) -> ByComponent:
    """The row of an op that targets differentiate natively: 0 times infinity is NaN."""
    return replace(row, zero_wins=False)
