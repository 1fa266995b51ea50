"""Sums over one axis of the same length -> sums of vectors, found in one pass.

A loss and its gradients by numbers are such sums: together they read what they are made of once,
and nothing of it is stored. Invariant: sums that are joined do not depend on one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from shaderad.ir import arrays, ops
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.sizes import Shape
from shaderad.ir.types import FLOAT, Scalar, Type, Vector
from shaderad.plan.storage import is_fused_node
from shaderad.rules import composing as c
from shaderad.rules.arrays import building as b

_WIDEST = 4
"""Scalars of a vector."""


def joined_sums(graph: Graph, read_limit: int) -> Graph:
    """`graph` with fewer passes.

    Args:
        graph: What is computed.
        read_limit: Values that a pass may read, but for those that a single sum reads.
    """
    groups = list(_groups(graph.nodes, read_limit))
    if not groups:
        return graph
    group_of = {node: group for group in groups for node in group}
    levels = _levels(graph.nodes)
    made: dict[Value, Value] = {v: v for v in graph.inputs}
    # Of one level, sums come first: what reads them may be needed by the sums of the next.
    for node in sorted(graph.nodes, key=lambda n: (levels[n.results[0]], not _is_sum(n))):
        if node.results[0] in made:
            continue
        if node in group_of:
            group = group_of[node]
            found = _joined([made[one.operands[0]] for one in group])
            made.update(zip((one.result for one in group), found, strict=True))
        else:
            moved = arrays.with_operands(node, tuple(made[v] for v in node.operands))
            made.update(zip(node.results, moved.results, strict=True))
    return Graph(graph.inputs, tuple(made[v] for v in graph.outputs))


def _groups(graph: Sequence[Node], read_limit: int) -> Iterator[list[Node]]:
    """The sums that become one, two at least."""
    levels, reads = _levels(graph), _reads(graph)
    alike: defaultdict[tuple[Shape, int], list[Node]] = defaultdict(list)
    for node in graph:
        if _is_sum(node):
            alike[node.operands[0].shape, levels[node.results[0]]].append(node)
    for candidates in alike.values():
        group: list[Node] = []
        for node in candidates:
            operands = [one.operands[0] for one in (*group, node)]
            width = sum(_width(x.element) for x in operands)
            read = frozenset[Value]().union(*(reads[x] for x in operands))
            most = max(read_limit, *(len(reads[x]) for x in operands))
            if width > _WIDEST or len(read) > most:
                if len(group) > 1:
                    yield group
                group = []
            group.append(node)
        if len(group) > 1:
            yield group


def _is_sum(node: Node) -> bool:
    """Whether it adds up all elements of an array, which are 32-bit floats or vectors of them."""
    if not isinstance(node, arrays.Reduce) or node.op != ops.ADD:
        return False
    x, *init = node.operands
    return not init and len(x.shape) == 1 and _width(x.element) > 0


def _width(t: Type) -> int:
    if isinstance(t, Vector):
        return t.count if t.element == FLOAT else 0
    return int(t == FLOAT)


def _levels(graph: Sequence[Node]) -> Mapping[Value, int]:
    """The sums that each value depends on, one after the other."""
    found: dict[Value, int] = {}
    for node in graph:
        level = max((found.get(v, 0) for v in node.operands), default=0) + _is_sum(node)
        found.update(dict.fromkeys(node.results, level))
    return found


def _reads(graph: Sequence[Node]) -> Mapping[Value, frozenset[Value]]:
    """What the elements of each value are computed from, if all is fused that can be."""
    found: dict[Value, frozenset[Value]] = {}
    for node in graph:
        for v in node.operands:
            found.setdefault(v, frozenset({v}))
        for v in node.results:
            parts = (found[one] for one in node.operands)
            found[v] = frozenset[Value]().union(*parts) if is_fused_node(node) else frozenset({v})
    return found


def _joined(values: Sequence[Value]) -> list[Value]:
    """The sum of each of `values`."""
    packed = Vector(FLOAT, sum(_width(v.element) for v in values))
    scalars = b.composed(lambda x: c.construct(packed, [*chain(*map(c.components, x))]), values)
    total = b.reduce(ops.ADD, scalars)
    parts = c.components(c.variable("total", packed))
    found: list[Value] = []
    for v in values:
        own, parts = parts[: _width(v.element)], parts[_width(v.element) :]
        sum_of_v = own[0] if isinstance(v.element, Scalar) else c.construct(v.element, own)
        found.append(b.elementwise(sum_of_v, {"total": total}, total.shape))
    return found
