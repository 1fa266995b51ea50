"""Elementwise work that follows reductions and scans -> their epilogues.

An elementwise node that is the only reader of a result, such as one that selects a field of pairs,
is stored in place of the result. So is a kernel that is the only reader of a scan of one row, if it
reads element ``i``, or always ``i - 1``, and stores at ``i`` or at the mirror image of that: the
kernel then needs no dispatch, and the scan no memory.
Invariant: the same values are stored, and each of them after everything that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays, nodes, walk
from shaderad.ir.arrays import Graph, Value, operand_name
from shaderad.ir.nodes import Expr, Function, Parameter
from shaderad.ir.types import INT, Type, byte_count
from shaderad.plan.elements import View
from shaderad.plan.kernels import IsStored, row_writer
from shaderad.plan.positions import Indices, add, constant
from shaderad.plan.statements import Written, may_report, write
from shaderad.plan.steps import Epilogue, RunKernel, RunPass, Step
from shaderad.plan.storage import is_fused_node
from shaderad.rules import composing as c
from shaderad.rules.expressions import in_order, substitute

_TOTAL = "total"
"""The parameter of an epilogue that holds the result of the pass."""


def fused_onto_passes(graph: Graph) -> dict[Value, arrays.Elementwise]:
    """Elementwise nodes that are stored in place of the result of a pass, by that result."""
    outputs = set(graph.outputs)
    counts = Counter(v for node in graph.nodes for v in set(node.operands))
    return {
        node.operands[0]: node
        for node in graph.nodes
        if isinstance(node, arrays.Elementwise)
        and _reads_a_pass(node)
        and counts[node.operands[0]] == 1
        and node.operands[0] not in outputs
    }


def _reads_a_pass(node: arrays.Elementwise) -> bool:
    """True if the node reads nothing but the result of a pass, and stores no more than that."""
    if len(set(node.operands)) != 1:
        return False
    x = node.operands[0]
    is_smaller = byte_count(node.expr.type) <= byte_count(x.element)
    is_of_pass = isinstance(x.producer, arrays.Reduce | arrays.Scan)
    return is_of_pass and is_smaller and not any(map(may_report, in_order(node.expr)))


def epilogue_of(node: arrays.Elementwise) -> Epilogue:
    """The epilogue that computes `node`, which reads one result."""
    total = c.variable(_TOTAL, node.operands[0].element)
    names = map(operand_name, range(len(node.operands)))
    written = write([substitute(node.expr, dict.fromkeys(names, total))])
    return Epilogue(node.result, _function(written, total.type, {}))


def with_epilogues(
    steps: Sequence[Step], outputs: Sequence[Value], is_stored: IsStored, read_limit: int
) -> tuple[Step, ...]:
    """`steps` with kernels fused onto the scans that they follow.

    Args:
        steps: A whole plan, in order.
        outputs: The stored values that the graph returns.
        is_stored: True for values that have memory.
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
    joined: list[Step] = []
    for step in steps:
        scan, fused = next(_fused(step, scans, is_stored, read_limit), (None, step))
        if scan is not None:
            # The scan runs where the kernel did: by then the values that both read are written.
            joined.remove(scan)
        joined.append(fused)
    return tuple(joined)


def _fused(
    step: Step, scans: Mapping[Value, RunPass], is_stored: IsStored, read_limit: int
) -> Iterator[tuple[RunPass, RunPass]]:
    """Scans that `step` reads, each with the scan that has `step` as its epilogue."""
    if not isinstance(step, RunKernel) or len(step.writes) != 1:
        return
    (value,) = step.writes
    if value.producer is None or not is_fused_node(value.producer):
        return
    for scan in (scans[v] for v in step.reads if v in scans):
        shape = scan.result.shape
        is_quiet = step.work.bounds == scan.producer.bounds == "unchecked"
        if is_quiet and len(shape) == 1 and value.shape == shape == step.work.dim:
            for is_mirrored in (False, True):
                epilogue = _epilogue(value, scan, is_stored, is_mirrored=is_mirrored)
                fused = replace(scan, epilogue=epilogue)
                if epilogue is not None and len(fused.reads) <= read_limit:
                    yield scan, fused


def _epilogue(
    value: Value, scan: RunPass, is_stored: IsStored, *, is_mirrored: bool
) -> Epilogue | None:
    computed = (value, scan.result)
    writer = row_writer(value.shape, lambda v: v not in computed and is_stored(v), scan.producer)
    total = c.variable(_TOTAL, scan.node.result.element)
    places: set[Indices] = set()

    def element(at: Indices, _: View | None) -> Expr:
        places.add(at)
        return total

    writer.bind(scan.node.result, element)
    results = writer.values([value], writer.mirrored if is_mirrored else writer.own)
    is_exclusive = places == {(add(writer.own[0], constant(-1)),)}
    if not is_exclusive and places != {writer.own}:
        return None
    written = writer.written(results)
    reader = writer.finish("epilogue", written.body, ())
    uniforms = (*scan.producer.kernel.uniforms, *reader.kernel.uniforms)
    types = {writer.index_names[0]: INT, **{u.name: u.type for u in uniforms}}
    return Epilogue(value, _function(written, total.type, types), reader, is_mirrored, is_exclusive)


def _function(written: Written, total: Type, type_by_name: Mapping[str, Type]) -> Function:
    """The function of a total and of those names in `type_by_name` that its statements read."""
    (value,) = written.values
    body = (*written.body, nodes.Return(value=value))
    parts = list(walk.all_expressions(body))
    read = {e.name for e in parts if isinstance(e, nodes.Var)}
    types = {_TOTAL: total, **{name: t for name, t in type_by_name.items() if name in read}}
    return Function(
        name="epilogue",
        parameters=tuple(Parameter(name=name, type=t) for name, t in types.items()),
        result=value.type,
        body=body,
        local_types=dict(written.local_types),
        buffers=tuple(dict.fromkeys(e.buffer for e in parts if isinstance(e, nodes.Load))),
    )
