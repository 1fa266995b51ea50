"""What a row of the derivative tables is: from it follow both the jvp and the vjp of an op.

Rows work on NumPy arrays of any float type; leading axes are batches. A row never looks at which
operands somebody wants differentiated: it gives all, and `ZERO` where that is zero on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Zero:
    """A partial derivative that is zero on purpose, as that of `floor`."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()
Partial = Array | float | Zero


class Row(Protocol):
    """Both directions of one op's derivative."""

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        """The tangent of ``y = op(*args)``."""
        ...

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        """The cotangents of `args`, each in its operand's shape."""
        ...


@dataclass(frozen=True, slots=True)
class ByComponent:
    """``partials(y, *args)`` gives dy/da for each operand, component by component.

    jvp: ``sum(partial * tangent)``; vjp: ``partial * cotangent``. Operands have one shape.
    """

    partials: Callable[..., tuple[Partial, ...]]
    zero_wins: bool = True
    """Whether zero times infinity is 0; NaN, as IEEE has it, in what is the target's own."""

    def jvp(self, y: Array, args: Sequence[Array], args_dot: Sequence[Array]) -> Array:
        y_dot = np.zeros_like(y)
        for partial, x_dot in zip(self._partials(y, args), args_dot, strict=True):
            if not isinstance(partial, Zero):
                with np.errstate(invalid="ignore"):  # infinities of two operands
                    y_dot = y_dot + self._times(partial, x_dot)
        return y_dot

    def vjp(self, y: Array, args: Sequence[Array], y_bar: Array) -> tuple[Array, ...]:
        return tuple(
            np.zeros_like(y_bar) if isinstance(partial, Zero) else self._times(partial, y_bar)
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
    """An op that mixes components; the two formulas are written side by side.

    ``push(y, args, args_dot)`` and ``pull(y, args, y_bar)``; the tests hold them against each
    other and against central differences.
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
    """``partial * d``, but zero times infinity is zero (docs/conventions.md, "zero wins")."""
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
    """The row of an op that is the target's own: zero times infinity is NaN."""
    return replace(row, zero_wins=False)
