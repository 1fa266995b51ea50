"""Graphs as text."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad.ir.printer import graph_text
from tests.tracing import trace

SCAN_PRODUCT = """\
in  %0: float[n0]
%1 = scan mul (%0): float[n0]
%2 = elementwise (a0 * a1) (%1, %0): float[n0]
%3 = reduce add (%2): float[]
out %3
"""


def test_a_graph_is_shown_a_line_a_node() -> None:
    variant, _ = trace(lambda x: sad.sum(sad.scan(sad.mul, x) * x), np.ones(3))
    assert graph_text(variant.graph) == SCAN_PRODUCT
