"""Functions that are called and differentiated as one graph, traced or built before.

Apart from graphs.py, so that whoever calls kernels alone need not wait for what traces graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from shaderad.arrays.arrays import Array
    from shaderad.calls.arguments import Arguments
    from shaderad.device.devices import Device
    from shaderad.trace.calls import Form, TracedFunction


class BoundGraph(Protocol):
    """A function at its arguments, traced."""

    @property
    def variant(self) -> TracedFunction: ...
    @property
    def arguments(self) -> Arguments: ...
    @property
    def form(self) -> Form: ...
    @property
    def device(self) -> Device: ...
    @property
    def operands(self) -> list[Array]:
        """The arguments, then what the function captured."""
        ...


class BindableGraph(ABC):
    """A graph function."""

    @property
    def is_variadic(self) -> bool:
        """True if a parameter stands for any number of arguments."""
        return False

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results."""

    @abstractmethod
    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundGraph:
        """The graph at these arguments."""
