"""Graph -> the values that get memory; all others are computed where they are used.

Stored are inputs, outputs, results of passes and kernels, operands that these need in memory, and
values, other than mere moves, that would be computed more than once at a cost above
`RECOMPUTED_COST`. Invariant: a value
that is not stored is the result of a node in `elements.FUSED`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from shaderad.ir import arrays, nodes, ops
from shaderad.ir import building as b
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.costs import RECOMPUTED_COST, cost_of
from shaderad.ir.dags import in_order
from shaderad.ir.types import INT
from shaderad.plan.elements import FUSED, base_of
from shaderad.plan.literals import literal_operands
from shaderad.plan.reductions import ReduceFields
from shaderad.plan.sorts.merges import MergedRuns

MOVES = (arrays.Broadcast, arrays.Reshape, arrays.Transpose, arrays.Slice, arrays.Roll)
"""Nodes that only repeat or move elements: their operand is stored in their place."""
_RECOMPUTING_KERNELS = 2
"""Kernels with scatters that each compute what they share, which takes less time than memory."""
_LINEAR = frozenset({ops.ADD, ops.SUB, ops.MUL})
_CONTEXT_LIMIT = 4
"""Contexts recorded for a value: it matters whether there are several, not how many."""

Context = tuple[Hashable, int]
"""A kernel, and a hash of the layout nodes through which it reads a value."""


def is_fused_node(node: Node) -> bool:
    """True if the elements of `node` can be computed where they are used."""
    return type(node) in FUSED


def is_reported_gather(node: Node) -> bool:
    """True if `node` is a gather whose kernel reports positions out of range."""
    return isinstance(node, arrays.Gather) and node.is_reported


def in_memory(node: Node) -> tuple[Value, ...]:
    """Operands that a node which is not fused reads from memory."""
    match node:
        case arrays.Reduce() | MergedRuns():
            return node.operands[1:]
        case arrays.ScatterAdd():
            return () if b.is_zero(node.operands[0]) else node.operands[:1]
        case arrays.Scan() | arrays.LastWriter() | ReduceFields():
            return ()
        case _:
            literals = literal_operands(node)
            return tuple(v for v in node.operands if v not in literals)


def computed_inside(node: Node) -> tuple[Value, ...]:
    """Operands that the threads of a node which is not fused compute, element by element."""
    if isinstance(node, arrays.ScatterAdd):
        return node.operands[1:]
    stored = in_memory(node)
    return tuple(v for v in node.operands if v not in stored)


def stored_values(graph: Graph, read_limit: int) -> frozenset[Value]:
    """The values of `graph` that get memory, inputs left out.

    No value is computed from more than `read_limit` stored ones, unless one node has more operands.
    """
    return _narrowed(graph, _Choice(graph, read_limit).run(), read_limit)


def _narrowed(graph: Graph, stored: set[Value], read_limit: int) -> frozenset[Value]:
    """Stores operands of values that would read more than `read_limit` others, widest first."""
    count = -1
    # What is stored later is one more array for values that also read the arrays behind it.
    while count != len(stored):
        count = len(stored)
        _narrow_once(graph, stored, read_limit)
    return frozenset(stored)


def _narrow_once(graph: Graph, stored: set[Value], read_limit: int) -> None:
    reads: dict[Value, frozenset[Value]] = {}
    # A reported gather binds its operand, if that is a reshape, besides the base of that.
    bound = {node.operands[0] for node in graph.nodes if is_reported_gather(node)}

    def read_by(*values: Value) -> frozenset[Value]:
        return frozenset[Value]().union(*(
            {v} if v.producer is None or v in stored or v in bound else reads[v] for v in values
        ))  # fmt: skip

    for node in graph.nodes:
        operands = node.operands if is_fused_node(node) else computed_inside(node)
        while len(read_by(*operands)) > read_limit:
            widest = max(operands, key=lambda v: len(read_by(v)))
            if len(read_by(widest)) < 2:
                break
            stored.add(widest)
        if is_fused_node(node):
            reads[node.result] = read_by(*operands)


class _Choice:
    """Chooses what is stored; users come before operands, so that all contexts are known."""

    def __init__(self, graph: Graph, read_limit: int) -> None:
        self._graph = graph
        self._read_limit = read_limit
        self._stored: set[Value] = set()
        self._forced: set[Value] = {base_of(v) for v in graph.outputs}
        self._contexts: dict[Value, set[Context]] = {}
        self._cost: dict[Value, int] = {}
        self._indices: set[Value] = set()
        """Sums and multiples of indices: kernels find positions by them at no cost."""
        self._level: dict[Value, int] = {}
        self._kernels: dict[Node, Hashable] = {}
        """An identity of the kernel of each scatter that shares one."""

    def run(self) -> set[Value]:
        for node in self._graph.nodes:
            self._note_costs(node)
            if not is_fused_node(node):
                self._forced.update(base_of(v) for v in in_memory(node))
            elif is_reported_gather(node):
                self._forced.add(base_of(node.operands[0]))
        self._note_kernels()
        for node in reversed(self._graph.nodes):
            if not is_fused_node(node):
                self._stored.update(node.results)
                for v in computed_inside(node):
                    self._use(v, {(self._kernels.get(node, id(node)), 0)})
                continue
            value = node.result
            contexts: set[Context] = self._contexts.get(value, set())
            is_costly = self._cost[value] > RECOMPUTED_COST and not isinstance(node, MOVES)
            if value in self._forced or (len(contexts) > 1 and is_costly):
                self._stored.add(value)
                contexts = {((value.shape, self._level[value]), 0)}
            self._propagate(node, contexts)
        return self._stored

    def _note_kernels(self) -> None:
        """Lets scatters join the kernel of stored values of the shape of their summands.

        If buffers are too few for that, each counts as a kernel of its own, which shares what is
        costly with the others by memory.
        """
        alike: defaultdict[Hashable, list[Node]] = defaultdict(list)
        for node in self._graph.nodes:
            if isinstance(node, arrays.ScatterAdd):
                level = max(self._level.get(v, 0) for v in node.operands)
                alike[node.operands[1].shape, level].append(node)
        for kernel, sums in alike.items():
            unread = self._read_limit - _read_count([v for n in sums for v in computed_inside(n)])
            if len(sums) <= unread * _RECOMPUTING_KERNELS:
                self._kernels |= dict.fromkeys(sums, kernel)

    def _note_costs(self, node: Node) -> None:
        levels = [self._level.get(v, 0) for v in node.operands]
        level = max(levels, default=0) + (0 if is_fused_node(node) else 1)
        if _is_linear(node) and self._indices.issuperset(node.operands):
            self._indices.update(node.results)
        for v in node.results:
            self._level[v] = level
            self._cost[v] = (
                _own_cost(node) + sum(self._cost.get(x, 1) for x in node.operands)
                if is_fused_node(node)
                else 1
            )
            if v in self._indices:
                self._cost[v] = 0

    def _propagate(self, node: Node, contexts: set[Context]) -> None:
        if isinstance(node, arrays.Elementwise):
            for v in node.operands:
                self._use(v, contexts)
            return
        moved = {(kernel, hash((way, id(node)))) for kernel, way in contexts}
        for position, v in enumerate(node.operands):
            self._use(v, moved)
            if _repeats(node, position):
                self._use(v, {(kernel, hash((way, "again"))) for kernel, way in moved})

    def _use(self, value: Value, contexts: Iterable[Context]) -> None:
        own = self._contexts.setdefault(value, set())
        if len(own) < _CONTEXT_LIMIT:
            own.update(contexts)


def _read_count(values: Sequence[Value]) -> int:
    """The number of arrays from which one kernel computes `values`."""
    read: set[Value] = set()
    seen, waiting = set(values), list(values)
    while waiting:
        v = waiting.pop()
        if v.producer is None or not is_fused_node(v.producer):
            read.add(v)
            continue
        new = set(v.producer.operands) - seen
        seen |= new
        waiting += new
    return len(read)


def _repeats(node: Node, position: int) -> bool:
    """True if several elements of the result need one element of the operand."""
    if isinstance(node, arrays.Gather):
        return True
    if not isinstance(node, arrays.Broadcast):
        return False
    (x,) = node.operands
    extents = dict(zip(node.axes, x.shape, strict=True))
    return any(extent != 1 and extents.get(k) != extent for k, extent in enumerate(node.shape))


def _is_linear(node: Node) -> bool:
    """True for nodes that make sums and multiples of indices, of those of their operands."""
    if not isinstance(node, arrays.Elementwise):
        return isinstance(node, (*MOVES, arrays.Iota, arrays.SizeOf))
    return all(
        isinstance(part, nodes.Var | nodes.Const)
        or (isinstance(part, nodes.Apply) and part.type == INT and part.op in _LINEAR)
        for part in in_order(node.expr)
    )


def _own_cost(node: Node) -> int:
    if not isinstance(node, arrays.Elementwise):
        return 0 if isinstance(node, arrays.Iota | arrays.SizeOf) else 1
    return sum(cost_of(part) for part in in_order(node.expr))
