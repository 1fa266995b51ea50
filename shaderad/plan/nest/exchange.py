"""Values that threads of a wave or of a workgroup give to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Expr, If, Stmt, Store
from shaderad.ir.types import FLOAT, INT, UINT, Access, BufferType, Struct, Type, Vector
from shaderad.plan.kernels import Writer
from shaderad.plan.positions import Position

STATE_LIMIT = 64
"""The most bytes of a total: group memory holds one for each team of a workgroup."""
AT_ONCE = 8
"""Totals that one thread combines between two barriers."""
_SLOTS = "parts"


def crosses_waves(t: Type) -> bool:
    """True if lanes of a wave can exchange values of type `t`."""
    if isinstance(t, Struct):
        return all(crosses_waves(field) for _, field in t.fields)
    return (t.element if isinstance(t, Vector) else t) in (FLOAT, INT, UINT)


def of_lane(value: Expr, mask: int) -> Expr:
    """`value` in the lane whose number differs in the bits of `mask`."""
    return _by_scalar(value, lambda e: nodes.OfLane(type=e.type, value=e, mask=mask))


def of_lane_below(value: Expr, distance: int) -> Expr:
    """`value` in the lane whose number is less by `distance`, in lane 0 where there is none."""
    return _by_scalar(value, lambda e: nodes.OfLaneBelow(type=e.type, value=e, distance=distance))


def of_last_lane(value: Expr, size: int) -> Expr:
    """`value` in the last of `size` lanes."""
    last = size - 1
    return _by_scalar(value, lambda e: nodes.OfTeam(type=e.type, value=e, lane=last, size=size))


def _by_scalar(value: Expr, exchanged: Callable[[Expr], Expr]) -> Expr:
    t = value.type
    if isinstance(t, Struct):
        fields = [_by_scalar(c.field(value, name), exchanged) for name, _ in t.fields]
        return c.construct(t, fields)
    if isinstance(t, Vector):
        return c.construct(t, [exchanged(c.component(value, k)) for k in range(t.count)])
    return exchanged(value)


def thread_of(size: int) -> Expr:
    """The number of the thread among each `size` adjacent threads of a workgroup."""
    return nodes.TeamLane(type=INT, size=size, is_of_group=True)


def each(distance: int, body: Sequence[Stmt]) -> Stmt:
    """Does `body` in the first of each so many threads of a workgroup."""
    is_first = c.apply(ops.EQ, thread_of(distance), c.whole(0))
    return If(condition=is_first, then=tuple(body), otherwise=())


class GroupSlots:
    """Totals of type `t` in group memory, for the kernel of `writer`."""

    def __init__(self, writer: Writer, t: Type, count: int) -> None:
        self._writer, self._type = writer, t
        of_group = BufferType(Access.GROUP, t, 1)
        buffer = nodes.Buffer(name=_SLOTS, path=(_SLOTS,), type=of_group, count=count)
        writer.add_scratch(buffer, (count,))

    def put(self, at: Position, value: Expr) -> Stmt:
        """Stores a total, which no other thread does between two barriers."""
        return Store(buffer=_SLOTS, indices=self._index(at), value=value, is_unique=True)

    def get(self, at: Position) -> Expr:
        """The total that a thread stored before the latest barrier."""
        return nodes.Load(type=self._type, buffer=_SLOTS, indices=self._index(at))

    def _index(self, at: Position) -> tuple[Expr, ...]:
        place = self._writer.positions.expr(at)
        return (nodes.KnownNumber(type=INT, number=place, is_inside=True),)
