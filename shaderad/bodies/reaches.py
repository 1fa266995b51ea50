"""The elements of arrays that neighbouring threads access, which a window of a launch binds.

A window consists of the threads with the row-major numbers `FIRST` to `LAST`. Along each axis of
the launch their indices lie between two symbols, from which `ranges.py` derives the indices of
every access. Invariant: an element in range that a thread of the window accesses lies in the
`Reach` of its array, if the premises hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from shaderad.bodies import intervals
from shaderad.bodies.intervals import Interval
from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.ranges import IndexRanges, Names, Node, known_names
from shaderad.ir import nodes, sizes
from shaderad.ir.nodes import Expr, Kernel, Stmt
from shaderad.ir.sizes import Size
from shaderad.ir.types import Type
from shaderad.ir.walk import Block

FIRST, LAST = "$first", "$last"
"""The numbers of the first and the last thread of a window."""
FIRST_ITEM, END_ITEM = "$first_item", "$end_item"
"""The items of a window: its threads, or the teams whose elements those are."""

INT_RANGE = Interval(-(1 << 31), (1 << 31) - 1)

Axes = tuple[Interval, ...]
"""The intervals of the indices of one access, one per axis."""


def first_along(axis: int) -> str:
    """The symbol of the lowest index of a window along an axis of the launch."""
    return f"{FIRST}.{axis}"


def last_along(axis: int) -> str:
    """The symbol of the highest index of a window along an axis of the launch."""
    return f"{LAST}.{axis}"


def window_symbols(rank: int) -> list[str]:
    """The symbols of a window of a launch with `rank` axes."""
    along = (symbol(axis) for axis in range(rank) for symbol in (first_along, last_along))
    return [FIRST, LAST, FIRST_ITEM, END_ITEM, *along]


@dataclass(frozen=True, slots=True)
class Reach:
    """The numbers `low` to `high` of elements; symbols as in ranges.py, and those of a window."""

    low: Size
    high: Size
    premises: frozenset[Size] = frozenset()
    """Sizes that must be 0 or more for the numbers to hold."""

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of all its sizes."""
        return frozenset[str]().union(*map(sizes.symbols, (self.low, self.high, *self.premises)))

    def substituted(self, size_by_name: Mapping[str, Size]) -> Reach:
        """The reach with sizes in place of symbols."""
        low, high, *premises = (
            sizes.substituted(size, size_by_name) for size in (self.low, self.high, *self.premises)
        )
        return Reach(low, high, frozenset(premises))


OWN = Reach(sizes.symbol(FIRST), sizes.symbol(LAST))
"""The elements of the window's own threads."""


def reaches(
    kernel: Kernel,
    body: Block,
    types: Mapping[str, Type],
    shaped_as: Mapping[str, str],
) -> dict[str, Reach | None]:
    """For each array, the elements that a window's threads access in `body`; `None` for any.

    Args:
        kernel: The kernel whose arrays, Index names and uniforms `body` uses.
        body: Statements of any stage before the adjoint is made, which accesses the same elements.
        types: Types of the names that `body` assigns.
        shaped_as: For a tangent array the array whose shape it has.
    """
    names = known_names(kernel)
    for axis, name in enumerate(kernel.index_names):
        names[name] = Interval(sizes.symbol(first_along(axis)), sizes.symbol(last_along(axis)))
    accesses = _Accesses(frozenset(), shaped_as)
    accesses.kernel_body(body, names, types)
    return {name: accesses.reach(name) for name in accesses.by_array}


class _Accesses(IndexRanges):
    """Collects the accesses of one body; marks nothing."""

    def __init__(self, natural: frozenset[Size], shaped_as: Mapping[str, str]) -> None:
        super().__init__(natural, shaped_as)
        self.by_array: dict[str, set[Axes | None]] = {}
        """Indices of each access; `None` for any."""
        self._axes_by_number: dict[str, Axes | None] = {}
        """The indices behind locals that hold the number of an element."""

    def reach(self, name: str) -> Reach | None:
        """The hull of the accesses to an array."""
        accesses = [axes for axes in self.by_array[name] if axes is not None]
        if len(accesses) < len(self.by_array[name]):
            return None
        # Sets have no order, and equal kernels give equal reaches.
        numbers = sorted((self._numbers_of(name, axes) for axes in accesses), key=str)
        return Reach(
            reduce(sizes.minimum, (low for low, _ in numbers)),
            reduce(sizes.maximum, (high for _, high in numbers)),
            frozenset(p for axes in accesses for i in axes for p in i.premises),
        )

    def _numbers_of(self, name: str, axes: Axes) -> tuple[Size, Size]:
        """The lowest and highest number of elements in range."""
        low: Size = 0
        high: Size = 0
        for axis, interval in enumerate(axes):
            extent = self.extent(name, axis)
            low, high = (
                sizes.add(sizes.multiply(number, extent), _clamped(end, extent))
                for number, end in ((low, interval.low), (high, interval.high))
            )
        return low, high

    def are_in_range(self, buffer: str, indices: tuple[Expr, ...], names: Names) -> bool:
        if not self._is_collecting_calls:
            self.by_array.setdefault(buffer, set()).add(self._axes(indices, names))
        return False

    def _axes(self, indices: tuple[Expr, ...], names: Names) -> Axes | None:
        if isinstance(indices[0], nodes.KnownNumber):
            number = indices[0].number
            return self._axes_by_number.get(number.name) if isinstance(number, nodes.Var) else None
        ranges = [self.interval(e, names) for e in indices]
        axes = tuple(intervals.within(i, INT_RANGE) for i in ranges if i is not None)
        return axes if len(axes) == len(ranges) else None

    def _marked(self, node: Node, names: Names) -> Node:
        if isinstance(node, nodes.Accumulate) and node.tangent_buffer:
            self.by_array.setdefault(node.tangent_buffer, set()).add(None)
        return super()._marked(node, names)

    def _assigned(self, s: nodes.Assign, names: Names) -> Stmt:
        if isinstance(s.value, CheckIndex):
            axes = self._axes(s.value.indices, names)
            is_new = self._axes_by_number.setdefault(s.name, axes) == axes
            self._axes_by_number[s.name] = axes if is_new else None
        return super()._assigned(s, names)

    def _body(self, body: Block, names: Names, types: Mapping[str, Type]) -> Block:
        outer, self._axes_by_number = self._axes_by_number, {}
        result = super()._body(body, names, types)
        self._axes_by_number = outer
        return result


def _clamped(index: Size, extent: Size) -> Size:
    """The nearest index in range."""
    return sizes.minimum(sizes.maximum(index, 0), sizes.subtract(extent, 1))
