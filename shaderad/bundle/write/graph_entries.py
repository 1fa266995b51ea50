"""A graph to build, traced from its annotations.

Imports nothing of the graph compiler at run time: a build of kernels alone starts without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import Span

if TYPE_CHECKING:
    from shaderad.trace.calls import TracedFunction
    from shaderad.trace.signatures import GraphSignature


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """A graph to build."""

    signature: GraphSignature
    variant: TracedFunction
    span: Span
    inputs: frozenset[str]
    """The inputs that it is differentiated by, as Python reaches them."""

    @property
    def wanted(self) -> tuple[bool, ...]:
        """For each input, true if the graph is differentiated by it."""
        return tuple(name in self.inputs for name in self.signature.names)

    @property
    def name(self) -> str:
        return self.signature.name
