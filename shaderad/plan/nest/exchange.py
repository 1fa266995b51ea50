"""Values that threads of a wave or of a workgroup give to each other, in the order of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, If, Stmt
from shaderad.ir.types import INT, Struct, Vector
from shaderad.plan.kernels import Writer


def of_lane_below(value: Expr, distance: int) -> Expr:
    """`value` in the lane whose number is less by `distance`, in lane 0 where there is none."""
    return by_scalar(value, lambda e: nodes.OfLaneBelow(type=e.type, value=e, distance=distance))


def of_last_lane(value: Expr, size: int) -> Expr:
    """`value` in the last of `size` lanes."""
    last = size - 1
    return by_scalar(value, lambda e: nodes.OfTeam(type=e.type, value=e, lane=last, size=size))


def by_scalar(value: Expr, exchanged: Callable[[Expr], Expr]) -> Expr:
    """`value` with each of its scalars exchanged: see `crosses_waves`."""
    t = value.type
    if isinstance(t, Struct):
        fields = [by_scalar(c.field(value, name), exchanged) for name, _ in t.fields]
        return c.construct(t, fields)
    if isinstance(t, Vector):
        return c.construct(t, [exchanged(c.component(value, k)) for k in range(t.count)])
    return exchanged(value)


def scan_of_wave(
    writer: Writer, combined: Callable[[Expr, Expr], Expr], own: nodes.Var, lane: Expr, wave: int
) -> Iterator[Stmt]:
    """Scans `own` of so many lanes: it becomes what they have up to `lane`."""
    distance = 1
    while distance < wave:
        other = writer.local(f"{own.name}_{distance}", own.type)
        yield Assign(name=other.name, value=of_lane_below(own, distance))
        joined = Assign(name=own.name, value=combined(other, own))
        has_other = c.apply(ops.GE, lane, c.whole(distance))
        yield If(condition=has_other, then=(joined,), otherwise=())
        distance *= 2


def thread_of(size: int) -> Expr:
    """The number of the thread among each `size` adjacent threads of a workgroup."""
    return nodes.TeamLane(type=INT, size=size, is_of_group=True)


def each(distance: int, body: Sequence[Stmt]) -> Stmt:
    """Does `body` in the first of each so many threads of a workgroup."""
    is_first = c.apply(ops.EQ, thread_of(distance), c.whole(0))
    return If(condition=is_first, then=tuple(body), otherwise=())
