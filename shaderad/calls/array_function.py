"""`@array_function`: a function of traced arrays -> the function that users call.

The files of `shaderad/functions/` list their public functions in `__all__`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from shaderad.arrays.arrays import Array
from shaderad.calls.run_operator import run_operator
from shaderad.diagnostics import Error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.runtime import buffers
from shaderad.trace.traced import OPERAND

P = ParamSpec("P")
R = TypeVar("R")

_SETTINGS = frozenset(
    ("n", "m", "shape", "size", "axis", "axes", "stride", "padding", "dilation", "groups")
)
"""Names of parameters for sizes, axes or steps, where a list of numbers is not an array."""


def array_function(function: Callable[P, R], *, zero_wins: bool = True) -> Callable[P, R]:
    """Makes a function that computes with traced arrays take arrays, data and numbers.

    A call in a trace adds nodes to its graph. Any other call runs a graph of its own at once.

    Args:
        function: The function.
        zero_wins: True if a zero cotangent of the result suppresses NaN in its pullback. It is
            false for sums of products, where testing each product would take longer than the sum.
    """
    signature = inspect.signature(function)
    names = enumerate(signature.parameters)
    settings = {key for pair in names for key in pair if pair[1] in _SETTINGS}

    def argument(key: int | str, value: Any) -> Any:
        return _in_tuples(value) if key in settings else value

    def trace(args: Any, keywords: Any) -> Any:
        return cast("Callable[..., Any]", function)(*args, **keywords)

    @api_boundary
    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        positional = tuple(argument(k, x) for k, x in enumerate(args))
        named = {k: argument(k, x) for k, x in keywords.items()}
        try:
            if not named:
                return run_operator(function, *positional, zero_wins=zero_wins)
            return run_operator(trace, positional, named, zero_wins=zero_wins)
        except Error as failure:
            by_parameter = _by_parameter(failure, signature, args, keywords)
            if by_parameter is None:
                raise
            raise by_parameter from by_parameter.__cause__

    return called


def _by_parameter(
    failure: Error, signature: inspect.Signature, args: Any, keywords: Any
) -> Error | None:
    """The error with the name of the parameter that cannot be read; `None` if it is unknown."""
    if f"`{OPERAND}`" not in failure.message:
        return None
    for name, value in signature.bind(*args, **keywords).arguments.items():
        if isinstance(value, Array):
            continue
        try:
            buffers.as_numpy(value, name)
        except Error as refused:
            if (refused.code, refused.label) == (failure.code, failure.label):
                return refused
    return None


def _in_tuples(setting: Any) -> Any:
    """A setting with tuples in place of lists, at any depth."""
    if not isinstance(setting, list | tuple):
        return setting
    return tuple(map(_in_tuples, cast("Sequence[Any]", setting)))


def warn_deprecated(call: str, instead: str) -> None:
    """Warns at the line of the user who called a deprecated function."""
    # This function, the one that calls it, and its `api_boundary` lie in between.
    text = f"`sad.{call}` is deprecated: write `sad.{instead}`"
    warnings.warn(text, DeprecationWarning, stacklevel=4)
