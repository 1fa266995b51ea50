"""Kernels and graphs of a file -> the same without ``print``, with a warning for each of them.

What is built runs in hosts that have nobody to read lines to.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.prints import without_prints

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel, Print
    from shaderad.session.traced_calls import Variant


def silent_kernel(kernel: Kernel) -> Kernel:
    """A kernel as it is built."""
    made, left_out = without_prints(kernel)
    _warn(left_out)
    return made


def silent_variant(variant: Variant) -> Variant:
    """A graph as it is built."""
    # A build of kernels alone starts without what graphs are made of.
    from shaderad.ir.graph_prints import graph_without_prints

    graph, left_out = graph_without_prints(variant.graph)
    _warn(left_out)
    return replace(variant, graph=graph)


def _warn(left_out: Iterable[Print]) -> None:
    """One warning a line, at that line of the Python file."""
    for span in dict.fromkeys(s.span for s in left_out):
        found = error("SR0754", span)
        text = f"{found.message} ({found.code})"
        warnings.warn_explicit(text, UserWarning, span.file, span.line)
