"""Scans of which elements and those before them are wanted -> the latter alone are read.

What a scan holds at an index is what it holds before it, combined with the element there: one
operation instead of a read, where the element is read as well. The gradient of a scan asks for
all three.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from shaderad.ir import arrays, ops
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.types import Scalar, Vector
from shaderad.plan.storage import is_zero
from shaderad.rules import composing as c
from shaderad.rules.arrays.building import elementwise

Uses = Mapping[Value, Sequence[Node]]


def recomputed(graph: Graph) -> Graph:
    """`graph` with fewer reads of scans along one axis."""
    uses: defaultdict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for v in node.operands:
            uses[v].append(node)
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    again: dict[Value, Value] = {}
    for node in graph.nodes:
        if node.results[0] in made:
            continue
        known = again if isinstance(node, arrays.Elementwise) else {}
        given = tuple(known.get(v, made[v]) for v in node.operands)
        moved = arrays.with_operands(node, given)
        made.update(zip(node.results, moved.results, strict=True))
        if isinstance(node, arrays.Scan) and node.result not in graph.outputs:
            shift = _shift(node, uses)
            for one in shift:  # made at once, so that all that follows can read it
                moved = arrays.with_operands(one, tuple(made[v] for v in one.operands))
                made[one.result] = moved.result
            if shift:
                again[node.result] = _combined(node, made[shift[-1].result], given[0])
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _combined(node: arrays.Scan, before: Value, x: Value) -> Value:
    """What the scan holds, from what it holds before and the element."""
    assert isinstance(node.op, ops.Op)
    a, b = c.variable("a", x.element), c.variable("b", x.element)
    return elementwise(c.apply(node.op, a, b), {"a": before, "b": x}, x.shape)


def _shift(node: arrays.Scan, uses: Uses) -> Sequence[Node]:
    """What puts the neutral element before what the scan holds: the constant, the two joined, and
    what is cut from them. Empty unless all others that read the scan do so at their own index.
    """
    x = node.operands[0]
    is_plain = isinstance(node.op, ops.Op) and isinstance(x.element, Scalar | Vector)
    if not is_plain or len(x.shape) != 1 or x.producer is not None:
        return ()
    shifts = [n for n in uses[node.result] if _is_shift(n, node, uses)]
    others = [n for n in uses[node.result] if n not in shifts]
    are_own = all(isinstance(n, arrays.Elementwise) for n in others)
    if len(shifts) != 1 or not others or not are_own:
        return ()
    (joined,) = shifts
    constant, (cut,) = joined.operands[0].producer, uses[joined.result]
    assert constant is not None, "it is neutral by construction"
    return (constant, joined, cut)


def _is_shift(node: Node, scan: arrays.Scan, uses: Uses) -> bool:
    assert isinstance(scan.op, ops.Op)
    if not isinstance(node, arrays.Concatenate) or len(node.operands) != 2:
        return False
    first, second = node.operands
    is_before = second is scan.result and first.shape == (1,)
    return is_before and _is_neutral(first, scan.op) and _is_cut(uses[node.result], scan.result)


def _is_neutral(value: Value, op: ops.Op) -> bool:
    node = value.producer
    if not isinstance(node, arrays.Elementwise) or node.operands:
        return False
    neutral = c.neutral(op, value.element)
    if c.is_zero(neutral):
        return is_zero(value)
    found = c.number_of(node.expr)
    return found is not None and found == c.number_of(neutral)


def _is_cut(uses: Sequence[Node], whole: Value) -> bool:
    """Whether all that is used are as many elements as the scan has, from the first on."""
    cut = uses[0] if len(uses) == 1 else None
    if not isinstance(cut, arrays.Slice):
        return False
    return (cut.starts, cut.steps, cut.shape) == ((0,), (1,), whole.shape)
