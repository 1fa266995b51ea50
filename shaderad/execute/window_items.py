"""The items of a dispatch that runs by windows, and which parts of its arrays they access."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shaderad.bodies.reaches import END_ITEM, FIRST_ITEM, window_symbols
from shaderad.execute.schedule import Windows
from shaderad.ir import sizes
from shaderad.lower.bindings import thread_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shaderad.bodies.reaches import Reach
    from shaderad.execute.schedule import BoundPart
    from shaderad.execute.sized_words import SizedFacts
    from shaderad.ir.sizes import Shape, Size
    from shaderad.lower.bindings import Lowered


@dataclass(frozen=True, slots=True)
class WindowItems:
    """The items of a dispatch that runs by windows; fields as in `Windows`."""

    count: Size
    step: Size
    dim: Shape
    first_number: Size
    group_count: Size
    """The groups of a window."""

    def facts(self, whole: SizedFacts) -> SizedFacts:
        """The sources of the words of a window."""
        return replace(
            whole,
            thread_count=_WINDOW,
            group_count=self.group_count,
            first_item=sizes.symbol(FIRST_ITEM),
        )

    def windows(
        self,
        reaches: Mapping[int, Reach],
        parts: Sequence[BoundPart],
        shapes: Mapping[str, Shape],
        numbers: Mapping[str, Size],
    ) -> Windows:
        """The items of a dispatch, and the parts of its arrays that they access.

        Args:
            reaches: By slot; a reach that depends on what is known at a run only is left out.
            parts: Where its arrays lie.
            shapes: Of arrays, by name.
            numbers: Other sizes, by name.
        """
        known = {
            **{str(axis): extent for axis, extent in enumerate(self.dim)},
            **{f"{name}.{axis}": extent
               for name, shape in shapes.items() for axis, extent in enumerate(shape)},
            **numbers,
            **{name: sizes.symbol(name) for name in window_symbols(len(self.dim))},
        }  # fmt: skip
        found = {slot: reach.substituted(known)
                 for slot, reach in reaches.items() if reach.symbols <= known.keys()}  # fmt: skip
        reached = tuple([replace(part, reach=found.get(part.slot)) for part in parts])
        return Windows(self.count, self.step, self.dim, self.first_number, reached)


_WINDOW = sizes.subtract(sizes.symbol(END_ITEM), sizes.symbol(FIRST_ITEM))
"""The items of a window."""


def items_of_threads(lowered: Lowered, dim: Shape, threads: Size) -> WindowItems:
    dim = (threads,) if lowered.threads_of else dim
    groups = thread_groups(lowered, _WINDOW)
    return WindowItems(threads, lowered.program.workgroup[0], dim, sizes.symbol(FIRST_ITEM), groups)
