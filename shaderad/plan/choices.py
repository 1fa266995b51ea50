"""A plan for all sizes -> the plan at some sizes, on devices with subgroups or without.

Sizes decide whether one workgroup runs a loop (`groups.py`), and whether threads load four elements
at once (`wide_tiles.py`). Where sizes are open, what is right for all of them runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shaderad.ir import sizes
from shaderad.ir.sizes import Size
from shaderad.plan.groups import threads_of, with_threads
from shaderad.plan.steps import Plan, Repeat, RepeatWhile, RunTiles, Step, WideTiles

AS_IT_IS, WIDE, SHARED = range(3)
"""Kernels of sums over tiles: for all sizes; with wide loads; with these shared in quads."""
_QUADS = 16
"""Columns of a quad of threads."""


def chosen(plan: Plan, known: Mapping[str, int], *, has_quads: bool = False) -> Plan:
    """`plan` with the kernels that are the best ones at these sizes."""

    def at_sizes(step: Step) -> Step:
        if isinstance(step, RunTiles) and step.wide is not None:
            kind = tiles_at(step.wide, known, has_quads)
            tiles = step.tiles if kind == AS_IT_IS else step.wide.work(kind == SHARED)
            return replace(step, tiles=tiles, wide=None)
        if isinstance(step, Repeat):
            threads = threads_of(step, known)
            if step.group is not None and threads:
                return with_threads(step.group, threads)
            step = replace(step, group=None)
        if isinstance(step, Repeat | RepeatWhile):
            body = chosen(step.body, known, has_quads=has_quads)
            return replace(step, body=body)
        return step

    return replace(plan, steps=tuple(map(at_sizes, plan.steps)))


def choices_at(plan: Plan, known: Mapping[str, int], *, has_quads: bool) -> tuple[int, ...]:
    """All that these sizes decide, in the order of steps, an outer loop before those inside.

    For each loop the threads of its kernel, 0 if a dispatch a step runs; for each sum over tiles
    the kind of its kernel.
    """
    choices: list[int] = []
    for step in plan.steps:
        if isinstance(step, RunTiles) and step.wide is not None:
            choices.append(tiles_at(step.wide, known, has_quads))
        threads = threads_of(step, known) if isinstance(step, Repeat) else 0
        if isinstance(step, Repeat):
            choices.append(threads)
        if isinstance(step, Repeat | RepeatWhile) and not threads:
            choices += choices_at(step.body, known, has_quads=has_quads)
    return tuple(choices)


def tiles_at(wide: WideTiles, known: Mapping[str, int], has_quads: bool) -> int:
    if not all(_is_known(size, known) for size in (*wide.multiples, wide.columns)):
        return AS_IT_IS
    if any(sizes.evaluate(size, known) % 4 for size in wide.multiples):
        return AS_IT_IS
    columns = sizes.evaluate(wide.columns, known)
    # Of the last quad, at most a fifth of all threads may be idle.
    is_full = 4 * _QUADS * -(-columns // _QUADS) <= 5 * columns
    return SHARED if has_quads and wide.may_share and is_full else WIDE


def _is_known(size: Size, known: Mapping[str, int]) -> bool:
    return sizes.symbols(size) <= known.keys()
