"""Functions on arrays that choose between elements and convert them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from shaderad.arrays.arrays import Array
from shaderad.arrays.dtypes import element_type
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import Span, error
from shaderad.frontend import conversions, operators
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr
from shaderad.ir.types import FLOAT, Vector, is_bool, scalar_of, with_scalar
from shaderad.language.values import PythonNumber
from shaderad.language.values import Value as Operand
from shaderad.trace.elements import by_element, cast_to, converted_to

__all__ = ["cast", "where"]

P = ParamSpec("P")
R = TypeVar("R")


def _takes_two_values(choose: Callable[P, R]) -> Callable[P, R]:
    """`choose`, which raises SR0388 if the two values are missing."""

    @functools.wraps(choose)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if len(args) + len(keywords) < 3:
            raise error("SR0388", user_span(), count=len(args) + len(keywords))
        return choose(*args, **keywords)

    return checked


@array_function
@_takes_two_values
def where(condition: Any, a: Any, b: Any) -> Array:
    """``a`` where the condition holds, else ``b``.

    Args:
        condition: Bools; or vectors of bools, by component.
        a: Elements of any type; all three broadcast, and numbers take the type of what they meet.
        b: Elements of that type; int becomes float.

    Raises:
        LanguageError: SR0303, where `a` and `b` have different types, SR0305 for another condition.
        ShapeError: SR0379, where the shapes do not broadcast, SR0388 without the two values.

    Differentiable in `a` and `b`: the cotangent goes to the one that is taken. The other one gets
    exactly 0, also where its own derivative is infinite or NaN (docs/conventions.md, "Zero wins").
    """

    def make(span: Span, of: Sequence[Operand]) -> Expr:
        holds, yes, no = of
        sides = conversions.unify((yes, no), span)
        first, second = sides or (conversions.expr(yes, span), conversions.expr(no, span))
        if first.type != second.type:
            raise conversions.mismatch(second, first.type, span)
        if isinstance(holds, Expr) and isinstance(holds.type, Vector) and is_bool(holds.type):
            return _by_component(holds, first, second, span)
        test = operators.condition(holds, span)
        if isinstance(test, PythonNumber):
            return first if test.value else second
        if scalar_of(first.type) is None:
            return nodes.Conditional(type=first.type, condition=test, if_true=first,
                                     if_false=second, span=span)  # fmt: skip
        return nodes.Apply(type=first.type, op=ops.SELECT, args=(test, first, second), span=span)

    return by_element(make, condition, a, b)


def _by_component(test: Expr, yes: Expr, no: Expr, span: Span) -> Expr:
    """Selects `yes` or `no` for each component of a vector of bools; scalars fill all of them."""
    wanted = with_scalar(test.type, scalar_of(yes.type) or FLOAT)
    args = (test, converted_to(yes, wanted, span), converted_to(no, wanted, span))
    return nodes.Apply(type=wanted, op=ops.SELECT, args=args, span=span)


@array_function
def cast(x: Any, dtype: Any) -> Array:
    """The elements converted as in kernels.

    Args:
        x: Elements; float to int rounds towards 0, and a scalar fills every component of a vector.
        dtype: ``float``, ``int``, ``bool``, a type of `sad`, or a NumPy dtype.

    Raises:
        LanguageError: SR0303, where elements do not convert.
        ShapeError: SR0358 for an invalid element type.

    The derivative is 1 between types of floats, and 0 through ints and bools.
    """
    return cast_to(x, element_type(dtype))
