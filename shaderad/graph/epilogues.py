"""Kernels behind scans -> the end of those scans: they compute from a result as it is found.

A kernel that is all that reads a scan, each element where the kernel stores its own or at the
mirror image of that, or always the element before, needs no dispatch and the scan no memory.
Invariant: what such a kernel stores is the same, and nothing that it reads is written later than
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from shaderad.graph.kernels import row_writer
from shaderad.graph.plan import Epilogue, RunKernel, RunPass, Step
from shaderad.graph.positions import Indices, add, constant, times
from shaderad.graph.storage import is_fused_node
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import INT, Type
from shaderad.rules import composing as c

IsStored = Callable[[Value], bool]


def with_epilogues(
    steps: Sequence[Step], outputs: Sequence[Value], is_stored: IsStored, read_limit: int
) -> tuple[Step, ...]:
    """`steps` with kernels made part of the scans that they follow.

    Args:
        steps: A whole plan, in order.
        outputs: What is stored for others.
        is_stored: Which values have memory.
        read_limit: Values that a step may read.
    """
    counts = Counter(v for step in steps for v in step.reads)
    scans = {
        step.result: step
        for step in steps
        if isinstance(step, RunPass)
        and isinstance(step.node, arrays.Scan)
        and counts[step.result] == 1
        and step.result not in outputs
    }
    found: list[Step] = []
    for step in steps:
        joined = _joined(step, scans, is_stored, read_limit) if scans else None
        if joined is None:
            found.append(step)
        else:
            # It runs where the kernel did: all that either reads is there by then.
            found.remove(scans[joined.scanned])
            found.append(joined)
    return tuple(found)


def _joined(
    step: Step, scans: dict[Value, RunPass], is_stored: IsStored, read_limit: int
) -> RunPass | None:
    if not isinstance(step, RunKernel) or len(step.writes) != 1:
        return None
    node = step.writes[0].producer
    if node is None or not is_fused_node(node):
        return None
    for value in step.reads:
        scan = scans.get(value)
        if scan is None or scan.epilogue is not None or not _are_alike(step, scan):
            continue
        epilogue = _epilogue(step, scan, is_stored)
        if epilogue is not None and len(scan.reads) + len(epilogue.reads) <= read_limit:
            return replace(scan, epilogue=epilogue)
    return None


def _are_alike(step: RunKernel, scan: RunPass) -> bool:
    """Whether each thread of the kernel could be where the scan finds an element."""
    shape = scan.result.shape
    is_quiet = step.work.bounds == scan.producer.bounds == "unchecked"
    return is_quiet and len(shape) == 1 and step.writes[0].shape == shape == step.work.dim


class _Elsewhere(Exception):
    """A scanned element is read that is neither the thread's own nor always the one before."""


def _epilogue(step: RunKernel, scan: RunPass, is_stored: IsStored) -> Epilogue | None:
    for is_mirrored in (False, True):
        try:
            return _written(step.writes[0], scan, is_stored, is_mirrored=is_mirrored)
        except _Elsewhere:
            continue
    return None


def _written(value: Value, scan: RunPass, is_stored: IsStored, *, is_mirrored: bool) -> Epilogue:
    producer, scanned = scan.producer.kernel, scan.scanned
    # One kernel gets the names of both: arrays and single elements are counted together.
    first = len(producer.buffers) + len(producer.uniforms)
    writer = row_writer(value.shape, lambda v: v is not value and is_stored(v), first)
    total = c.variable("total", scanned.element)

    before = (add(writer.own[0], constant(-1)),)
    places: set[Indices] = set()

    def element(at: Indices) -> Expr:
        places.add(at)
        if places not in ({writer.own}, {before}):
            raise _Elsewhere
        return total

    writer.bind(scanned, element)
    last = constant(sizes.subtract(value.shape[0], 1))
    here = (add(last, times(writer.own[0], -1)),) if is_mirrored else writer.own
    (found,) = writer.values([value], here)
    written = writer.written([found])
    work = writer.finish("finished", (*written.body, nodes.Return(value=written.values[0])), ())
    types: dict[str, Type] = {"total": scanned.element, writer.index_names[0]: INT}
    types |= {u.name: u.type for u in work.kernel.uniforms}
    function = Function(
        name="finished",
        parameters=tuple(Parameter(name=n, type=t) for n, t in types.items()),
        result=value.element,
        body=work.kernel.body,
        local_types=dict(work.kernel.local_types),
        buffers=tuple(b.name for b in work.kernel.buffers),
    )
    return Epilogue(work, function, value, is_mirrored, is_exclusive=places == {before})
