"""Functions that are called and differentiated as one graph, traced or built before.

Apart from graphs.py, so that whoever calls kernels alone need not wait for what traces graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shaderad.differentiate.linearised_graphs import Bound
    from shaderad.execute.graphs import BoundGraph


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
    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundGraph | Bound:
        """The graph at these arguments."""
