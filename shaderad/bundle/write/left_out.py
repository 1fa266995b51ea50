"""Kernels and graphs -> the same without ``print``, with a warning for each removed line.

The hosts of a build have no way to show printed lines.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.arrays import Graph, KernelCall, graphs_in
from shaderad.ir.prints import without_prints

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel, Print
    from shaderad.trace.calls import TracedFunction


def silent_kernel(kernel: Kernel) -> Kernel:
    """The kernel without ``print``."""
    silent, left_out = without_prints(kernel)
    _warn(left_out)
    return silent


def silent_variant(variant: TracedFunction) -> TracedFunction:
    """The graph without ``print``."""
    # Imported here: a build of kernels alone starts without the graph compiler.
    from shaderad.arrays import trees
    from shaderad.ir.prints import graph_without_prints
    from shaderad.trace.calls import Placeholder

    graph, left_out = graph_without_prints(variant.graph)
    _warn(left_out)
    results = sum(isinstance(leaf, Placeholder) for leaf in trees.leaves(variant.out))
    effects = (v for v in graph.outputs[results:] if _checks(Graph((), (v,))))
    graph = Graph(graph.inputs, (*graph.outputs[:results], *effects))
    return replace(variant, graph=graph)


def _checks(graph: Graph) -> bool:
    """True if a kernel that writes no array still does something without its prints."""
    return any(
        (isinstance(node, KernelCall) and not node.written and bool(node.kernel.body))
        or any(map(_checks, graphs_in(node).values()))
        for node in graph.nodes
    )


def _warn(left_out: Iterable[Print]) -> None:
    """Warns once for each Python line, at that line."""
    for span in dict.fromkeys(s.span for s in left_out):
        warning = error("SR0754", span)
        text = f"{warning.message} ({warning.code})"
        warnings.warn_explicit(text, UserWarning, span.file, span.line)
