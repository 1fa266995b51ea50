"""Finds the arrays that have the extents of a launch: those accessed at a bare Index.

``y[i] = x[i] * w[j[i]]`` has as many threads as `x`, `j` and `y` have elements; `w` may have any
number.
"""

from __future__ import annotations

from collections.abc import Iterator

from shaderad.ir.nodes import Accumulate, Expr, Kernel, Load, Store, Var
from shaderad.ir.pointers import is_pooled
from shaderad.ir.walk import all_expressions, statements

Axis = tuple[str, int]
"""The name of an array, and one of its axes."""


def axes_of_launch(kernel: Kernel) -> tuple[tuple[Axis, ...], ...]:
    """For each Index the axes that it indexes by itself, by array in the order of parameters."""
    names = [b.name for b in kernel.buffers if not (b.is_pointed or is_pooled(b.type))]
    axes_by_index: list[set[Axis]] = [set() for _ in kernel.index_names]
    for buffer, indices in _accesses(kernel):
        for axis, index in enumerate(indices if buffer in names else ()):
            if isinstance(index, Var) and index.name in kernel.index_names:
                axes_by_index[kernel.index_names.index(index.name)].add((buffer, axis))
    return tuple(
        tuple(sorted(axes, key=lambda axis: (names.index(axis[0]), axis[1])))
        for axes in axes_by_index
    )


def _accesses(kernel: Kernel) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for e in all_expressions(kernel.body):
        if isinstance(e, Load):
            yield e.buffer, e.indices
    for s in statements(kernel.body):
        if isinstance(s, Store | Accumulate):
            yield s.buffer, s.indices
