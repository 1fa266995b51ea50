"""Values of a batched graph: mapped ones have the axis of the batch in front, others have none.

    y = f(x, w)      ys[k] = f(xs[k], w) for k in range(extent)

Invariant: a value that is not mapped stays without the axis; it is repeated only where a node wants
operands of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shaderad.ir import building as b
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.sizes import Size


@dataclass(frozen=True, slots=True)
class Operand:
    """A value in place of one of the original graph."""

    value: Value
    is_mapped: bool
    """True if it has the axis of the batch."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The axis that mapped values have in front."""

    extent: Size
    active: Value | None = None
    """Inside a loop that some elements of the batch have left: bools that are false for these.
    Their results are discarded, so they must not report anything."""

    @property
    def passed(self) -> tuple[Value, ...]:
        """Values that the rules of nodes read: further operands of a node with a body."""
        return () if self.active is None else (self.active,)

    def inside(self) -> Batch:
        """The batch of a body, whose further inputs stand for those operands."""
        return self if self.active is None else replace(self, active=Value(self.active.type))

    def type_of(self, t: ArrayType) -> ArrayType:
        """The type of a mapped value in place of one of type `t`."""
        return ArrayType(t.element, (self.extent, *t.shape))

    def spread(self, x: Operand) -> Value:
        """`x` with the axis of the batch, repeated if it is not mapped."""
        if x.is_mapped:
            return x.value
        shape = x.value.shape
        return b.broadcast(x.value, (self.extent, *shape), range(1, len(shape) + 1))

    def selected(self, operands: Iterable[Operand]) -> list[Operand]:
        """`operands`, 0 where the batch is not active.

        The choice tells the derivatives of a body that discarded values may be NaN.
        """
        return [
            Operand(self.where(x.value, b.zeros(x.value.type)), True) if x.is_mapped else x
            for x in operands
        ]

    def where(self, value: Value, otherwise: Value) -> Value:
        """`value` where the batch is active."""
        if self.active is None:
            return value
        return b.where(b.broadcast(self.active, value.shape, [0]), value, otherwise)

    def flagged(self, operands: Iterable[Operand], is_mapped: Iterable[bool]) -> tuple[Value, ...]:
        """The values, with the axis of the batch where the flag is set."""
        pairs = zip(operands, is_mapped, strict=True)
        return tuple(self.spread(x) if flag else x.value for x, flag in pairs)

    def inputs(self, values: Iterable[Value], is_mapped: Iterable[bool]) -> list[Operand]:
        """Inputs of a batched graph in place of those of the original one."""
        pairs = zip(values, is_mapped, strict=True)
        return [Operand(Value(self.type_of(v.type)) if flag else v, flag) for v, flag in pairs]


NodeRule = Callable[[Any, Sequence[Operand], Batch], Sequence[Operand]]
"""(node, operands of which one is mapped, batch) -> results."""

GraphRule = Callable[[Graph, Sequence[Operand], Batch], Sequence[Operand]]
"""(graph, its inputs, batch) -> outputs: the walk, passed to the rules of nodes with bodies."""


def mapped(values: Iterable[Value]) -> list[Operand]:
    return [Operand(v, True) for v in values]


def shared(values: Iterable[Value]) -> list[Operand]:
    """Values without the axis of the batch."""
    return [Operand(v, False) for v in values]


def values_of(operands: Iterable[Operand]) -> tuple[Value, ...]:
    return tuple(x.value for x in operands)


def flags_of(operands: Iterable[Operand]) -> tuple[bool, ...]:
    return tuple(x.is_mapped for x in operands)
