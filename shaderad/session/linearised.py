"""A function at its arguments, ready to pull cotangents back and to push tangents forward.

Kernels are differentiated by their own launch; any other Python function by the trace of what it
does to arrays. Both look the same from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from shaderad.diagnostics import error
from shaderad.frontend.launchable import Launchable
from shaderad.session.bindable_graphs import BindableGraph
from shaderad.session.function_at import function_at
from shaderad.session.kernel_at import kernel_at
from shaderad.session.results import check_keywords
from shaderad.session.tape import When
from shaderad.session.traced import current_trace

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel


class Linearised(Protocol):
    """What the transforms need of a function at its arguments."""

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

    def pull_moved(
        self, out_bar: Any, out_bar_dot: Any, tangents: Sequence[Any], positions: Sequence[int]
    ) -> list[Any]:
        """How what `pull` gives moves where the arguments and `out_bar` do."""
        ...


def linearised(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> Linearised:
    """Runs `function` and remembers what it did.

    Raises:
        DerivativeError: SR0451 inside another transform, SR0453 for a differentiable argument
            given by keyword.
    """
    if not callable(function):
        raise error("SR0466", found=repr(function))
    # Graphs are imported where one is met: that takes as long as opening a device.
    if current_trace() is not None:
        from shaderad.session.linearised_traces import traced_at

        return traced_at(function, args, keywords)
    if isinstance(function, BindableGraph) and not function.is_variadic:
        from shaderad.session.linearised_graphs import graph_at

        check_keywords(keywords)
        return graph_at(function.bound(args, keywords), args, when=when)
    if isinstance(function, Launchable):
        return kernel_at(function, args, keywords, when=when)
    return function_at(function, args, keywords, when=when)
