"""Parts of a row that are scanned in one pass: see shaders/look_back.slang."""

from __future__ import annotations

from collections.abc import Iterable

from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Assign, Expr, Stmt
from shaderad.ir.types import BOOL, INT, Vector
from shaderad.plan.kernels import Writer

STATES = "states"
"""The array with the states of parts."""
GOAL = "goal"
"""The local with the part that the group scans: its own, or one whose total is missing."""


def scans_until_known(
    writer: Writer, first: Expr, part: Expr, total: Expr, scan: Iterable[Stmt], *, is_by_wave: bool
) -> tuple[list[Stmt], Expr]:
    """A loop over `scan` until what comes before the part is known, and that number.

    Args:
        writer: Writes the kernel.
        first: The number of the state of the first part of the row.
        part: The part of the group.
        total: The total of the part `GOAL` after `scan`, an int or uint.
        scan: Scans the part `GOAL`.
        is_by_wave: True if a wave looks at many parts at once.
    """
    goal, looked = writer.local(GOAL, INT), writer.local("looked", Vector(INT, 2))
    is_waiting = writer.local("is_waiting", BOOL)
    look = nodes.LookBack(
        type=looked.type, buffer=STATES, first=first, part=part, goal=goal, total=total,
        is_by_wave=is_by_wave,
    )  # fmt: skip
    next_goal = c.component(looked, 0)
    are_own = [c.apply(ops.EQ, number, part) for number in (goal, next_goal)]
    body = (
        *scan,
        Assign(name=looked.name, value=look),
        Assign(name=is_waiting.name, value=c.apply(ops.NOT, c.apply(ops.BIT_AND, *are_own))),
        Assign(name=goal.name, value=next_goal),
    )
    loop: list[Stmt] = [
        Assign(name=goal.name, value=part),
        Assign(name=is_waiting.name, value=c.truth(BOOL, True)),
        nodes.While(condition=is_waiting, body=body),
    ]
    return loop, c.convert(total.type, c.component(looked, 1))
