"""A graph to build, traced from its annotations.

This imports nothing of the graph compiler at run time, so a build of kernels starts without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import Span

if TYPE_CHECKING:
    from shaderad.calls.signatures import GraphSignature
    from shaderad.trace.calls import TracedFunction


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """A graph to build."""

    signature: GraphSignature
    variant: TracedFunction
    span: Span
    inputs: frozenset[str]
    """The Python paths of the inputs that it is differentiated by."""

    @property
    def wanted(self) -> tuple[bool, ...]:
        """For each input, true if the graph is differentiated by it."""
        return tuple(name in self.inputs for name in self.signature.names)

    @property
    def name(self) -> str:
        return self.signature.name
