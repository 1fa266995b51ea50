"""A function at its arguments -> the way in which it is differentiated.

A kernel or graph is differentiated by its graph, any other Python function by the tape of what it
does to arrays. Where another transform or a graph is around it, it is a graph, which has
derivatives of any order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When, is_taped
from shaderad.calls.bindable_graphs import BindableGraph
from shaderad.diagnostics import error, text_of
from shaderad.differentiate.forms import check_keywords, is_data
from shaderad.differentiate.leaves import Linearised
from shaderad.language.signatures import Launchable
from shaderad.trace.traced import current_trace


def linearised(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """Runs `function` and remembers what it did.

    Raises:
        DerivativeError: SR0453 for a differentiable argument given by keyword.
    """
    if not callable(function):
        raise error("SR0466", found=text_of(function))
    if current_trace() is not None:
        return linearised_as_graph(function, args, keywords, when=when)
    is_kernel = isinstance(function, Launchable)
    if not is_kernel and isinstance(function, BindableGraph) and not function.is_variadic:
        # Graphs are imported where one is met: that takes as long as opening a device.
        from shaderad.differentiate.linearised_graphs import graph_at

        check_keywords(keywords)
        at = graph_at(function.bound(args, keywords), args, when=when)
    elif is_taped():
        return linearised_as_graph(function, args, keywords, when=when)
    elif is_kernel:
        # Imported here: each of the two is needed by programs of its own.
        from shaderad.differentiate.kernel_at import kernel_at

        at = kernel_at(function, args, keywords, when=when)
    else:
        from shaderad.differentiate.function_at import function_at

        at = function_at(function, args, keywords, when=when)

    # The caller may change host data before a pullback, which belongs to their content now.
    is_on_device = when is not When.BEFORE_PULLBACK or all(type(x) is Array for x in args)
    kept = args if is_on_device else [trees.mapped(_kept, x) for x in args]

    def again() -> Linearised:
        return linearised_as_graph(function, kept, keywords, when=When.IF_NEEDED)

    at.again = again
    return at


def _kept(leaf: Any) -> Any:
    """A copy of a leaf that the caller can change."""
    return copy.deepcopy(leaf) if is_data(leaf) else leaf


def linearised_as_graph(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """Traces `function` as a whole: a part of the trace around it, if there is one."""
    if current_trace() is not None:
        from shaderad.differentiate.linearised_traces import traced_at

        return traced_at(function, args, keywords)
    from shaderad.differentiate.linearised_graphs import function_as_graph

    return function_as_graph(function, args, keywords, when=when)
