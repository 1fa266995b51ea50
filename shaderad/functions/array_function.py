"""`@array_function`: a function of traced arrays -> the function that users call.

Whatever a file of this folder lists in `__all__` is a name of `sad`, and `public.py` gathers them.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.functions.run_operator import run_operator

P = ParamSpec("P")
R = TypeVar("R")

_SIZES = frozenset(("n", "shape", "axis", "axes"))
"""Parameters of these names take sizes or axes: a list of numbers there is no array."""


def array_function(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function that computes with traced arrays take arrays, data and numbers.

    Inside of a trace a call adds nodes to the graph; outside, a graph of them runs at once.
    """
    names = inspect.signature(function).parameters
    takes_sizes = {key for pair in enumerate(names) for key in pair if pair[1] in _SIZES}

    def argument(key: int | str, given: Any) -> Any:
        if key in takes_sizes and isinstance(given, list):
            return tuple(cast("list[Any]", given))
        return given

    def trace(args: Any, keywords: Any) -> Any:
        return cast("Callable[..., Any]", function)(*args, **keywords)

    @api_boundary
    @functools.wraps(function)
    def called(*args: P.args, **keywords: P.kwargs) -> R:
        positional = tuple(argument(k, x) for k, x in enumerate(args))
        if not keywords:
            return run_operator(function, *positional)
        return run_operator(trace, positional, {k: argument(k, x) for k, x in keywords.items()})

    return called


def warn_deprecated(call: str, instead: str) -> None:
    """Warns at the line of the user who called a deprecated function."""
    # This function, the one that calls it, and its `api_boundary` lie in between.
    text = f"`sad.{call}` is deprecated: write `sad.{instead}`"
    warnings.warn(text, DeprecationWarning, stacklevel=4)
