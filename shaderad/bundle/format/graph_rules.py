"""The rules for the description of a graph beyond the types of its fields.

They are checked when a folder is loaded, before its plans are read; see kernel_rules.py.
"""

from __future__ import annotations

from shaderad.bundle.format.graph_description import GraphEntry
from shaderad.bundle.format.kernel_rules import check_entry, check_unique


def check_graph(entry: GraphEntry) -> None:
    """Checks names, and that the shapes of the inputs determine every size.

    Raises:
        ValueError: A rule is violated.
    """
    check_entry(entry)
    check_unique((each.name for each in entry.inputs), "inputs")
    for name in entry.sizes:
        if not (name.isidentifier() and name.isascii()):
            raise ValueError(f"a size `{name}`")
    extents = [extent for each in entry.inputs for extent in each.shape]
    named = {extent for extent in extents if isinstance(extent, str)}
    if named != set(entry.sizes):
        raise ValueError(f"sizes {sorted(named ^ set(entry.sizes))} of no input, or of none alone")
    if any(isinstance(extent, int) and extent < 0 for extent in extents):
        raise ValueError("an input of a negative size")
    for plans in entry.targets.values():
        check_unique((program.name for program in plans.programs), "programs")
