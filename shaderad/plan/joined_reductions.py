"""Graph -> the same with reductions joined that one pass can compute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from shaderad.ir import arrays, sizes
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.sizes import Shape
from shaderad.ir.types import BOOL, FLOAT, INT, UINT, leaves
from shaderad.plan.nest.sums.kernels import has_tiles
from shaderad.plan.reductions import joined
from shaderad.plan.storage import is_fused_node, stored_values

_MOST_SCALARS = 8
"""Scalars of the elements of joined reductions, which a thread holds in registers."""
_WIDEST = 4
"""Scalars of an element that is joined with others."""


def joined_reductions(graph: Graph, read_limit: int) -> Graph:
    """Joins reductions of arrays of one shape that read an array in common, one pass each.

    A loss and its gradients by numbers are such, and minima with their positions: joined, they
    read their inputs once, and store no intermediate array. Sums over tiles stay apart. Joined
    reductions do not depend on one another.

    Args:
        graph: The computation.
        read_limit: Values that a joined pass may read, unless one of its reductions reads more.
    """
    groups = list(_groups_of_reductions(graph, read_limit))
    if not groups:
        return graph
    group_of: dict[Node, list[arrays.Reduce]] = {node: g for g in groups for node in g}
    levels = _levels(graph.nodes)
    value_of: dict[Value, Value] = {v: v for v in graph.inputs}
    # Within a level reductions come first: nodes that read them may feed those of the next level.
    for node in sorted(graph.nodes, key=lambda n: (levels[n.results[0]], not _is_joinable(n))):
        if node.results[0] in value_of:
            continue
        if node in group_of:
            group = group_of[node]
            elements = tuple(value_of[one.operands[0]] for one in group)
            value_of.update(
                zip((one.result for one in group), joined(group, elements), strict=True)
            )
        else:
            rebuilt = arrays.with_operands(node, tuple(value_of[v] for v in node.operands))
            value_of.update(zip(node.results, rebuilt.results, strict=True))
    return Graph(graph.inputs, tuple(value_of[v] for v in graph.outputs))


def _groups_of_reductions(graph: Graph, read_limit: int) -> Iterator[list[arrays.Reduce]]:
    """Groups of two or more independent reductions, each for one pass."""
    levels = _levels(graph.nodes)
    alike: defaultdict[tuple[Shape, int], list[arrays.Reduce]] = defaultdict(list)
    for node in filter(_is_joinable, graph.nodes):
        alike[node.operands[0].shape, levels[node.result]].append(node)
    if all(len(candidates) < 2 for candidates in alike.values()):
        return
    stored = stored_values(graph, read_limit)
    reads = _reads(graph, stored)
    for candidates in alike.values():
        groups: list[_Joint] = []
        for node in candidates:
            if has_tiles(node, lambda v: v.producer is None or v in stored):
                continue
            one = _Joint([node], reads[node.operands[0]], len(leaves(node.result.element)))
            both = next((g for g in groups if g.takes(one, read_limit)), None)
            if both is None:
                groups.append(one)
            else:
                both.add(one)
        yield from (group.nodes for group in groups if len(group.nodes) > 1)


@dataclass
class _Joint:
    """Reductions that one pass can compute."""

    nodes: list[arrays.Reduce]
    reads: frozenset[Value]
    width: int
    """The scalars of an element."""

    def takes(self, other: _Joint, read_limit: int) -> bool:
        """True if reductions of `other` read some of the same arrays, and one pass binds all."""
        is_alike = any(sizes.product(v.shape) != 1 for v in self.reads & other.reads)
        are_few = self.width + other.width <= _MOST_SCALARS
        most = max(read_limit, _count(self.reads), _count(other.reads))
        return is_alike and are_few and _count(self.reads | other.reads) <= most

    def add(self, other: _Joint) -> None:
        self.nodes += other.nodes
        self.reads |= other.reads
        self.width += other.width


def _is_joinable(node: Node) -> TypeGuard[arrays.Reduce]:
    """True if `node` reduces rows of 32-bit scalars, or structs of few, from their first one."""
    if not isinstance(node, arrays.Reduce) or len(node.operands) > 1:
        return False
    parts = [leaf.scalar for leaf in leaves(node.result.element)]
    return len(parts) <= _WIDEST and all(s in (FLOAT, INT, UINT, BOOL) for s in parts)


def _levels(graph: Sequence[Node]) -> Mapping[Value, int]:
    """The number of such reductions in the longest chain that leads to each value."""
    levels: dict[Value, int] = {}
    for node in graph:
        level = max((levels.get(v, 0) for v in node.operands), default=0) + _is_joinable(node)
        levels.update(dict.fromkeys(node.results, level))
    return levels


def _reads(graph: Graph, stored: Collection[Value]) -> Mapping[Value, frozenset[Value]]:
    """The arrays that each value is computed from, if all nodes are fused that can be, and those of
    `stored` that are computed again on the way.
    """
    reads = {v: frozenset({v}) for v in graph.inputs}
    for node in graph.nodes:
        parts = frozenset[Value]().union(*(reads[v] for v in node.operands))
        for v in node.results:
            own = frozenset({v}) if v in stored else frozenset[Value]()
            reads[v] = parts | own if is_fused_node(node) else own
    return reads


def _count(values: frozenset[Value]) -> int:
    """The number of arrays that are read."""
    return sum(v.producer is None or not is_fused_node(v.producer) for v in values)
