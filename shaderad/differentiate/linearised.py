"""A function at its arguments, ready to pull cotangents back and to push tangents forward.

A kernel is differentiated by the graph of its call, any other Python function by the tape of what
it does to arrays. Where another transform or a graph is around it, it is a graph, which has
derivatives of any order. All look the same from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When, is_taped, trace_of
from shaderad.diagnostics import error, text_of
from shaderad.differentiate.forms import check_keywords
from shaderad.differentiate.function_at import function_at
from shaderad.differentiate.kernel_at import kernel_at
from shaderad.execute.bindable_graphs import BindableGraph
from shaderad.language.signatures import Launchable
from shaderad.trace.traced import current_trace

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel


class Linearised(Protocol):
    """A function at its arguments, as the transforms see it."""

    @property
    def out(self) -> Any:
        """The result, with pending arrays where the linearisation is lazy."""
        ...

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that ran."""
        ...

    def is_differentiable(self, position: int) -> bool: ...
    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        """The gradients of the arguments at `positions`, in their form."""
        ...

    def push(self, tangents: Sequence[Any]) -> Any:
        """The tangent of the result, in its structure."""
        ...


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
        return graph_at(function.bound(args, keywords), args, when=when)
    if is_taped():
        return linearised_as_graph(function, args, keywords, when=when)
    if is_kernel:
        at: Linearised = kernel_at(function, args, keywords, when=when)
    else:
        at = function_at(function, args, keywords, when=when)
    return _Outermost(at, function, args, keywords)


def linearised_as_graph(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """Traces `function` as a whole: a part of the trace around it, if there is one."""
    if current_trace() is not None:
        from shaderad.differentiate.linearised_traces import traced_at

        return traced_at(function, args, keywords)
    from shaderad.differentiate.linearised_graphs import function_as_graph

    return function_as_graph(function, args, keywords, when=when)


@dataclass(eq=False, slots=True)
class _Outermost:
    """A function linearised outside of all transforms.

    Where one is around a pullback of it, or a graph, the function becomes a part of that.
    """

    at: Linearised
    function: Callable[..., Any]
    args: Sequence[Any]
    keywords: Mapping[str, Any]

    @property
    def out(self) -> Any:
        return self.at.out

    @property
    def kernels(self) -> Sequence[Kernel]:
        return self.at.kernels

    def is_differentiable(self, position: int) -> bool:
        return self.at.is_differentiable(position)

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        return self._seen_by(out_bar).pull(out_bar, positions, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        return self._seen_by(tangents).push(tangents)

    def _seen_by(self, given: Any) -> Linearised:
        if isinstance(given, Array):
            arrays = [given]
        else:
            arrays = [leaf for leaf in trees.leaves(given) if isinstance(leaf, Array)]
        if current_trace() is None and trace_of(arrays) is None:
            return self.at
        return linearised_as_graph(self.function, self.args, self.keywords, when=When.IF_NEEDED)
