"""The rules that the description of a graph keeps beyond the types of its fields.

Checked where a folder is loaded, before its plans are read; see kernel_rules.py.
"""

from __future__ import annotations

from shaderad.bundle.graph_description import GraphEntry
from shaderad.bundle.kernel_rules import check_unique
from shaderad.lower.bindings import BOUNDS


def check_graph(entry: GraphEntry) -> None:
    """Names are names, and a call knows every size by the shapes that it is given.

    Raises:
        ValueError: Where that is not so.
    """
    if entry.bounds not in BOUNDS:
        raise ValueError(f"bounds `{entry.bounds}`")
    check_unique((one.name for one in entry.parameters), "parameters")
    check_unique((one.name for one in entry.inputs), "inputs")
    for name in entry.sizes:
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"a size `{name}`")
    extents = [extent for one in entry.inputs for extent in one.shape]
    named = {extent for extent in extents if isinstance(extent, str)}
    if named != set(entry.sizes):
        raise ValueError(f"sizes {sorted(named ^ set(entry.sizes))} of no input, or of none alone")
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ValueError("an input of a negative size")
    for plans in entry.targets.values():
        check_unique((one.name for one in plans.programs), "programs")
