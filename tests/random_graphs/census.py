"""A random graph -> the kinds of work in its plan: which nests random graphs reach.

Needs no device, because a plan depends on sizes and on a launch shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shaderad.compiler.launch_shapes import LaunchShape
from shaderad.ir import arrays
from shaderad.ir.arrays import Graph
from shaderad.ir.nodes import For
from shaderad.ir.types import Access
from shaderad.plan.choices import PlanChoices
from shaderad.plan.nest.loops.in_thread import COUNTER
from shaderad.plan.nest.scan_sharing import ScanSharing
from shaderad.plan.planning import PORTABLE_BUFFER_LIMIT, plan
from shaderad.plan.steps import (
    CallKernel,
    Repeat,
    RepeatWhile,
    RunChain,
    RunKernel,
    RunPass,
    RunRows,
    RunSort,
    RunTiles,
    Step,
)

GROUP_BYTES = 32768


def work_kinds(graph: Graph, sizes: Mapping[str, int], shape: LaunchShape) -> set[str]:
    """The kinds of work in the plan of `graph` at `sizes`, on devices of a launch shape."""
    chosen = PlanChoices(sizes, GROUP_BYTES, shape).chosen(
        plan(graph, PORTABLE_BUFFER_LIMIT, shape)
    )
    return set(_of_steps(chosen.steps))


def _of_steps(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        match step:
            case RunKernel():
                yield from _of_elements(step)
            case RunRows():
                yield from (f"{_rows_of(step)}, {kind}" for kind in _of_rows(step))
            case RunTiles():
                yield from _of_tiles(step)
            case RunSort():
                yield "sort by merges" if step.sharing is None else "sort by digits"
                yield from _of_steps(step.chosen.steps)
            case Repeat() | RepeatWhile():
                yield type(step).__name__
                yield from _of_steps(step.body.steps)
            case CallKernel():
                yield f"call of {type(step.node).__name__}"
            case _:
                yield type(step).__name__


def _of_elements(step: RunKernel) -> Iterator[str]:
    work = step.work
    accesses = [buffer.access for buffer in work.kernel.buffers]
    additions = accesses.count(Access.ADD)
    if additions:
        yield "scatter" if additions == 1 else "scatters together"
    elif len(step.tile) > 1:
        yield "elements by transposed tiles"
    elif work.stores_by_four:
        yield "elements by four"
    else:
        yield "elements"
    if any(isinstance(s, For) and s.variable == COUNTER for s in work.kernel.body):
        yield "loop in a thread"


def _rows_of(step: RunRows) -> str:
    """The kind of rows."""
    match step.instead:
        case RunChain():
            return "chain"
        case RunTiles():
            return "columns of a sum"
        case RunPass(node=arrays.Scan(), epilogue=epilogue):
            is_mirrored = epilogue is not None and epilogue.is_mirrored
            return "mirrored scan" if is_mirrored else "scan"
        case RunPass():
            return "reduction"


def _of_rows(step: RunRows) -> Iterator[str]:
    """The ways in which threads share rows."""
    sharing = step.sharing
    yield "in parts" if step.between else "whole"
    if isinstance(sharing, ScanSharing):
        yield "threads share rows" if sharing.team.lanes > 1 else "a thread per row"
        yield "by four" if sharing.width > 1 else "one by one"
    elif sharing is not None:
        if sharing.is_across:
            yield "adjacent rows by four" if sharing.rows > 1 else "adjacent rows"
        shares = sharing.team.lanes > 1 and not sharing.are_apart
        yield "threads share rows" if shares else "a thread per row"
        yield "by four" if sharing.width > 1 else "one by one"


def _of_tiles(step: RunTiles) -> Iterator[str]:
    tile = step.kernels.tile
    yield "sum over tiles"
    if len(step.sums.work.rows) > 2:
        yield "sum over tiles of several axes"
    if tile.is_grouped:
        yield "sum over tiles, loads shared in groups"
    if tile.team > 1:
        yield "sum over tiles, loads shared by waves"
    if tile.part_count != 1:
        yield "sum over tiles, in parts"
    if any(tile.windows):
        yield "sum over tiles, windows"
    if any(tile.by_four):
        yield "sum over tiles, by four"
    if step.sums.work.column_sum is not None:
        yield "sum over tiles, with sums of columns"
    if not all(tile.are_even):
        yield "sum over tiles, a rest"
