"""A graph of the file that is built, before and after.

Nothing here imports what graphs are made of: a build of kernels alone starts without that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shaderad.diagnostics import Span

if TYPE_CHECKING:
    from shaderad.bundle.graph_programs import GraphPrograms
    from shaderad.session.graph_signatures import GraphSignature
    from shaderad.session.traced_calls import Variant


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """A graph of the file that is built."""

    signature: GraphSignature
    variant: Variant
    span: Span
    inputs: frozenset[str]
    """By which it is differentiated, as Python reaches them."""

    @property
    def wanted(self) -> tuple[bool, ...]:
        """Whether it is differentiated by each input."""
        return tuple(name in self.inputs for name in self.signature.names)

    @property
    def name(self) -> str:
        return self.signature.name


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """One graph for every target."""

    graph: TracedGraph
    bounds: str
    by_target: Mapping[str, GraphPrograms]

    @property
    def span(self) -> Span:
        return self.graph.span

    @property
    def name(self) -> str:
        return self.graph.name
