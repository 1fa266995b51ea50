"""Sums whose elements share what they read, as data: their axes, and how reads depend on them.

In ``sum_k x[m, k] * y[k, n]`` each element of `x` serves every n, and each of `y` every m; in a
convolution ``sum_k x[p + k] * w[k]`` adjacent windows share elements of `x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import composing as c
from shaderad.ir.arrays import Value
from shaderad.ir.costs import RECOMPUTED_COST, cost_of
from shaderad.ir.dags import in_order, variables
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Scalar, is_bool
from shaderad.ir.walk import children
from shaderad.plan.elements import Elements, View
from shaderad.plan.kernels import IsStored
from shaderad.plan.nest.guards import Guard, GuardedElements
from shaderad.plan.positions import Indices, Position, Positions, number


class NoSharingError(Exception):
    """A sum whose elements share nothing that a kernel of this kind could keep."""


@dataclass(frozen=True)
class SumRead:
    """A read of the elements of a sum.

    Attributes:
        value: What is read.
        axes: The axes on which its position depends.
        strides: The distance of the elements that adjacent places of each axis read; `None` where
            that is not the same for all places.
    """

    value: Value
    axes: frozenset[int]
    strides: tuple[Size | None, ...]


@dataclass(frozen=True, eq=False)
class SumWork:
    """A sum, and what is stored of it.

    Attributes:
        node: The sum.
        result: The sum, or an elementwise function of it.
        is_stored: True for values that have memory.
        column_sum: A sum along the columns of what elements of `node` read, if there is one.
    """

    node: arrays.Reduce
    result: Value
    is_stored: IsStored
    column_sum: arrays.Reduce | None = None

    @cached_property
    def addends(self) -> Value:
        """The elements to add; the axes of results come first, those that are summed last."""
        (x,) = self.node.operands
        rows = x.shape[:-1]
        inner = x
        while isinstance(inner.producer, arrays.Reshape) and not self.is_stored(inner):
            inner = inner.producer.operands[0]
            if inner.shape[: len(rows)] == rows:
                x = inner
        return x

    @property
    def rank(self) -> int:
        """The number of axes of results."""
        return len(self.node.result.shape)

    @property
    def rows(self) -> Shape:
        """The extents of the axes of results."""
        return self.addends.shape[: self.rank]

    @property
    def summed(self) -> Shape:
        """The extents of the axes that are summed."""
        return self.addends.shape[self.rank :]

    def has_memory(self, value: Value) -> bool:
        """True if kernels read `value`."""
        return value not in (self.node.result, self.result) and self.is_stored(value)

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The values that kernels read."""
        seen: dict[Value, None] = {}
        positions = Positions()

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            del view
            if value is not self.node.result:
                seen[value] = None
            return nodes.Load(type=value.element, buffer="", indices=(*map(positions.expr, at),))

        def is_there(value: Value) -> bool:
            return value is self.node.result or self.has_memory(value)

        for value in (self.addends, self.result):
            names = (c.variable(f"axis{axis}", INT) for axis in range(len(value.shape)))
            Elements(positions, is_there, read).at(value, tuple(map(positions.of, names)))
        return (*seen,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that kernels store."""
        other = self.column_sum
        return (self.result,) if other is None else (self.result, other.result)

    @property
    def reads(self) -> Sequence[SumRead]:
        """The reads of the addends.

        Raises:
            NoSharingError: An addend that is checked, chosen or expensive.
        """
        return self._seen[0]

    @property
    def has_choice(self) -> bool:
        """True if threads compute a part of an addend only where it is used."""
        return self._seen[1]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of a tile where sizes are open: rows and columns, or columns; else none.

        Raises:
            NoSharingError: As for `reads`.
        """
        axes = self.rows_and_columns or self._windows
        return axes or ((self.rank - 1,) if self._lies_in_columns else ())

    @property
    def is_shared(self) -> bool:
        """True if results share what they read; else a sum of columns waits for memory."""
        return bool(self.rows_and_columns or self._windows)

    @property
    def _axes(self) -> list[int]:
        return [axis for axis, extent in enumerate(self.rows) if extent != 1]

    @property
    def rows_and_columns(self) -> tuple[int, ...]:
        """Two axes that each read lacks one of."""
        used = [read.axes for read in self.reads if any(axis >= self.rank for axis in read.axes)]
        for pair in reversed([*combinations(self._axes, 2)]):
            # A read of all three would be made once for each result, whatever the tile.
            is_apart = not any({*pair} <= axes for axes in used)
            if is_apart and all(any(axis not in axes for axes in used) for axis in pair):
                return pair
        return ()

    @property
    def _windows(self) -> tuple[int, ...]:
        """The last axis along which results add overlapping elements."""
        return tuple(axis for axis in self._axes if self.overlaps(axis))[-1:]

    def overlaps(self, axis: int) -> bool:
        """True if results beside each other along an axis read what others read as well.

        Where the extent of a summed axis is open, it may be a window.
        """
        return any(self._is_window(read, axis) for read in self.reads)

    def _is_window(self, read: SumRead, axis: int) -> bool:
        stride = read.strides[axis]
        if not isinstance(stride, int) or not stride:
            return False
        return any(
            isinstance(step, int)
            and step != 0
            and stride % step == 0
            and not (isinstance(extent, int) and abs(stride) >= abs(step) * extent)
            for step, extent in zip(read.strides[self.rank :], self.summed, strict=True)
        )

    @property
    def _lies_in_columns(self) -> bool:
        """True if adjacent results read adjacent elements."""
        column, last = self.rank - 1, len(self.addends.shape) - 1
        own = [read.strides[column] for read in self.reads if {column, last} <= read.axes]
        return column in self._axes and bool(own) and all(stride == 1 for stride in own)

    @cached_property
    def _seen(self) -> tuple[Sequence[SumRead], bool]:
        positions = Positions()
        shape = self.addends.shape
        names = [f"axis{axis}" for axis in range(len(shape))]
        own = tuple(positions.of(c.variable(name, INT)) for name in names)
        base_of_axis = [at.terms[0][0] for at in own]
        found: list[SumRead] = []

        def read(value: Value, at: Indices, view: View | None) -> Expr:
            if view is not None:
                raise NoSharingError
            load = nodes.Load(type=value.element, buffer="", indices=(*map(positions.expr, at),))
            if sizes.product(value.shape) != 1:
                used = variables(load).union(
                    *(variables(positions.expr(at)) for _, *both in elements.guard for at in both)
                )
                axes = frozenset(axis for axis, name in enumerate(names) if name in used)
                factor_by_base = dict(number(at, value.shape).terms)
                strides = [factor_by_base.pop(base, 0) for base in base_of_axis]
                rest = positions.expr(Position(0, tuple(factor_by_base.items())))
                open_axes = {axis for axis, name in enumerate(names) if name in variables(rest)}
                known = (
                    None if axis in open_axes else stride for axis, stride in enumerate(strides)
                )
                found.append(SumRead(value, axes, tuple(known)))
            return load

        def is_zero(e: Expr, guard: Guard) -> bool:
            del guard
            return isinstance(e, nodes.Load)

        elements = GuardedElements(positions, self.has_memory, read, is_zero)
        element = elements.at(self.addends, own)
        if _cost(element) > RECOMPUTED_COST:
            raise NoSharingError
        return found, any(isinstance(part, nodes.Conditional) for part in in_order(element))


def is_sum_of_numbers(node: arrays.Reduce) -> bool:
    """True for sums of numbers over several rows, without a value to start from."""
    x, *init = node.operands
    is_number = isinstance(x.element, Scalar) and not is_bool(x.element)
    return not init and node.op == ops.ADD and is_number and len(x.shape) > 1


def _cost(element: Expr) -> int:
    """The cost of an element, apart from finding what it reads, and where it is 0 instead.

    Raises:
        NoSharingError: For a choice between two values.
    """
    cost, pending, seen = 0, [element], set[int]()
    while pending:
        part = pending.pop()
        if id(part) in seen or isinstance(part, nodes.Load):
            continue
        seen.add(id(part))
        if not isinstance(part, nodes.Conditional):
            cost += cost_of(part)
            pending += children(part)
        elif c.is_zero(part.if_false):
            pending.append(part.if_true)
        else:
            raise NoSharingError
    return cost
