"""Python functions on arrays traced, and their graphs run by the NumPy evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.dtypes import element_type
from shaderad.interpret.arrays import evaluate
from shaderad.ir.types import Type
from shaderad.runtime.buffers import element_axes, inferred_type
from shaderad.trace.calls import Placeholder, TracedFunction, form_of, traced_variant
from tests.array_check import check


def trace(
    function: Callable[..., Any], *args: Any, dtype: Any = None
) -> tuple[TracedFunction, Any]:
    """The graph of `function` for arguments like these, and their form; `dtype` is of all."""
    given = [np.asarray(x) for x in args]
    form = form_of([_described(x, dtype) for x in given])
    return traced_variant(function, form), form


def _described(x: Any, dtype: Any) -> tuple[Type, tuple[int, ...]]:
    t = inferred_type(x) if dtype is None else element_type(dtype)
    return t, x.shape[: x.ndim - len(element_axes(t))]


def run(function: Callable[..., Any], *args: Any, dtype: Any = None) -> Any:
    """The result of `function`, in float64."""
    variant, form = trace(function, *args, dtype=dtype)
    found, _ = evaluate(variant.graph, [*args, *map(_data, variant.captured)], form.size_by_name)
    return trees.mapped(
        lambda leaf: found[leaf.position] if isinstance(leaf, Placeholder) else leaf, variant.out
    )


def check_derivatives(function: Callable[..., Any], *args: Any, order: int = 1) -> None:
    """Holds the derivatives of `function` against central differences."""
    variant, form = trace(function, *args)
    check(variant.graph, [*args, *map(_data, variant.captured)], form.size_by_name, order=order)


def _data(x: Any) -> Any:
    return np.asarray(x)
