"""Kernels behind scans -> the end of those scans: they compute from a result as it is found.

A kernel that is all that reads a scan, each element where the kernel stores its own or at the
mirror image of that, or always the element before, needs no dispatch and the scan no memory.
Invariant: what such a kernel stores is the same, and nothing that it reads is written later than
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays, nodes, walk
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import INT, Tuple, Type
from shaderad.plan.elements import View
from shaderad.plan.kernels import IsStored, row_writer
from shaderad.plan.positions import Indices, add, constant
from shaderad.plan.statements import Written
from shaderad.plan.steps import Epilogue, RunKernel, RunPass, Step
from shaderad.plan.storage import is_fused_node
from shaderad.rules import composing as c


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


def _epilogue(step: RunKernel, scan: RunPass, is_stored: IsStored) -> Epilogue | None:
    ways = (_written(step.writes[0], scan, is_stored, is_mirrored=m) for m in (False, True))
    return next((way for way in ways if way is not None), None)


def _written(
    value: Value, scan: RunPass, is_stored: IsStored, *, is_mirrored: bool
) -> Epilogue | None:
    """`value` as the end of the scan; `None` where it takes more than is at hand there."""
    writer = row_writer(value.shape, lambda v: v is not value and is_stored(v), scan.producer)
    total = c.variable("total", scan.scanned.element)
    places: set[Indices] = set()

    def element(at: Indices, _: View | None) -> Expr:
        places.add(at)
        return total

    writer.bind(scan.scanned, element)
    results = writer.values([value], writer.mirrored if is_mirrored else writer.own)
    is_exclusive = places == {(add(writer.own[0], constant(-1)),)}
    if not is_exclusive and places != {writer.own}:
        return None
    if is_exclusive:
        results += writer.values(scan.node.operands[:1])
    written = writer.written(results)
    work = writer.finish("finished", written.body, ())
    known = {u.name: u for u in (*scan.producer.kernel.uniforms, *work.kernel.uniforms)}
    function = as_function(written, {"total": total.type, writer.index_names[0]: INT}, known)
    return Epilogue(arrays.RowEpilogue(function, is_mirrored, is_exclusive), work, value)


def as_function(
    written: Written, given: Mapping[str, Type], uniforms: Mapping[str, nodes.Uniform]
) -> Function:
    """What is written, as a function of `given` and of the uniforms that it needs."""
    result = written.values[0]
    if len(written.values) > 1:
        t = Tuple(tuple(e.type for e in written.values))
        result = nodes.Construct(type=t, parts=written.values)
    body = (*written.body, nodes.Return(value=result))
    parts = list(walk.all_expressions(body))
    read = {e.name for e in parts if isinstance(e, nodes.Var)}
    types = {**given, **{name: u.type for name, u in uniforms.items() if name in read}}
    return Function(
        name="finished",
        parameters=tuple(Parameter(name=name, type=t) for name, t in types.items()),
        result=result.type,
        body=body,
        local_types=dict(written.local_types),
        buffers=tuple(dict.fromkeys(e.buffer for e in parts if isinstance(e, nodes.Load))),
    )
