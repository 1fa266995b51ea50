"""Elementwise work that follows reductions and scans -> their epilogues.

An elementwise node that is the only reader of a result, such as one that selects a field of pairs,
is stored in place of the result. A kernel that reads the results of a reduction one by one, such as
a division by the number of elements, is stored beside them, or in place of those that nothing else
reads. So is a kernel that is the only reader of a scan of one row, if it reads element ``i``, or
always ``i - 1``, and stores at ``i`` or at the mirror image of that. The kernel then needs no
dispatch, and what it replaces no memory.
Invariant: the same values are stored, and each of them after everything that it reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from shaderad.ir import arrays, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Node, Value
from shaderad.ir.dags import in_order
from shaderad.ir.nodes import Expr
from shaderad.ir.sizes import Shape
from shaderad.ir.types import WORD_BYTES, byte_count, word_bytes
from shaderad.plan.elements import View
from shaderad.plan.kernels import IsStored, number_writer
from shaderad.plan.positions import Indices, add, constant, number
from shaderad.plan.statements import may_report
from shaderad.plan.steps import Epilogue, RunKernel, RunPass, Step
from shaderad.plan.storage import is_fused_node


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


def followers(
    graph: Graph,
    sums: Iterable[Node],
    stored: Collection[Value],
    fits: Callable[[Node, arrays.Elementwise], bool],
) -> dict[Node, list[arrays.Elementwise]]:
    """The elementwise nodes after each of `sums` up to the last that can take its place: all that
    reads the sum leads to it.

    Args:
        graph: The computation.
        sums: Nodes with one result each.
        stored: Values that have memory: nothing takes their place but that of a sum.
        fits: True if an elementwise node can be stored in place of a sum.
    """
    readers: defaultdict[Value, set[Node]] = defaultdict(set)
    for node in graph.nodes:
        for v in node.operands:
            readers[v].add(node)
    place = {node: k for k, node in enumerate(graph.nodes)}
    ends = {*graph.outputs, *stored}
    by_sum: dict[Node, list[arrays.Elementwise]] = {}
    taken: set[Node] = set()
    for node in sums:
        nodes: list[arrays.Elementwise] = []
        count, value = 0, node.results[0]
        unread = {value: readers[value]}
        """Values, and their readers that are not among `nodes`."""
        while value not in (ends if nodes else graph.outputs):
            reader = min(set[Node]().union(*unread.values()), key=place.__getitem__)
            if not isinstance(reader, arrays.Elementwise) or reader in taken:
                break
            nodes.append(reader)
            value = reader.result
            unread = {v: left for v, every in unread.items() if (left := every - {reader})}
            if not unread:
                if not fits(node, reader):
                    break
                count = len(nodes)
            unread[value] = readers[value]
        if count:
            by_sum[node] = nodes[:count]
            taken.update(nodes[:count])
    return by_sum


def with_epilogues(
    steps: Sequence[Step], outputs: Iterable[Value], is_stored: IsStored, buffer_limit: int
) -> tuple[Step, ...]:
    """`steps` with kernels fused onto the reductions and scans that they follow.

    Args:
        steps: A whole plan, in order.
        outputs: The stored values that the graph returns.
        is_stored: True for values that have memory.
        buffer_limit: Values that a step may read and write.
    """
    counts = Counter(v for step in steps for v in set(step.reads))
    counts.update(outputs)
    fused: list[Step] = []
    replaced: set[Value] = set()

    def has_memory(v: Value) -> bool:
        return v not in replaced and is_stored(v)

    for step in steps:
        for place, producer in _passes_before(step, fused):
            assert isinstance(step, RunKernel)
            both = _fused(producer, step, counts, has_memory)
            later = fused[place + 1 :]
            if both is None or len(both.reads) + len(both.writes) > buffer_limit:
                continue
            if _needs(both, both):
                continue
            if not any(_needs(other, producer) for other in later):
                # The pass runs where the kernel did: by then what both read is written.
                fused[place:] = [*later, both]
            elif not any(_needs(both, other) for other in later):
                fused[place] = both
            else:
                continue
            for old in (producer, step):
                counts.subtract(set(old.reads))
            counts.update(set(both.reads))
            replaced.update(set(producer.results) - set(both.results))
            break
        else:
            fused.append(step)
    return tuple(fused)


def _needs(step: Step, other: Step) -> bool:
    """True if `step` reads what `other` writes."""
    return not set(step.reads).isdisjoint(other.writes)


def _passes_before(step: Step, steps: Sequence[Step]) -> list[tuple[int, RunPass]]:
    """The passes whose results `step`, an elementwise kernel, reads, and their places."""
    if not isinstance(step, RunKernel) or step.work.bounds != "unchecked":
        return []
    if any(v.producer is None or not is_fused_node(v.producer) for v in step.writes):
        return []
    return [
        (place, producer)
        for place, producer in enumerate(steps)
        if isinstance(producer, RunPass)
        and producer.producer.bounds == "unchecked"
        and not set(step.reads).isdisjoint(producer.results)
    ]


def _fused(
    producer: RunPass, step: RunKernel, counts: Mapping[Value, int], is_stored: IsStored
) -> RunPass | None:
    """The pass that also stores what `step` does; `None` where there is none."""
    kept = tuple(v for v in producer.results if counts[v] > (v in step.reads))
    values = (*kept, *step.writes)
    rows = producer.node.result.shape
    if not isinstance(producer.node, arrays.Scan):
        epilogue = _reduced(producer, values, is_stored)
    elif len(values) == 1 == len(rows) and values[0].shape == rows:
        epilogue = _scanned(producer, values[0], is_stored)
    else:
        return None
    if epilogue is None:
        return None
    return replace(producer, epilogue=replace(epilogue, name=step.work.kernel.name))


def _reduced(step: RunPass, values: Sequence[Value], is_stored: IsStored) -> Epilogue | None:
    """The epilogue of a reduction that stores `values`, if these read its result by number."""
    node = step.node
    count = sizes.product(node.result.shape)
    if any(sizes.product(v.shape) != count or word_bytes(v.element) != WORD_BYTES for v in values):
        return None
    own = _Own(step, (count,), (*step.results, *values), is_stored)
    for v in values:
        own.compute(b.reshape(v, (count,)))
    if any(number(at, node.result.shape) != own.writer.own[0] for at in own.places):
        return None
    return Epilogue(tuple(values), own.reads)


def _scanned(step: RunPass, value: Value, is_stored: IsStored) -> Epilogue | None:
    """The epilogue of a scan of one row that stores `value` at its index, or at the mirrored one,
    if it reads the scan at one place.
    """
    for is_mirrored in (False, True):
        own = _Own(step, value.shape, (*step.results, value), is_stored)
        own.compute(value, own.writer.mirrored if is_mirrored else own.writer.own)
        before = {(add(own.writer.own[0], constant(-1)),)}
        if own.places in (before, {own.writer.own}):
            return Epilogue((value,), own.reads, is_mirrored=is_mirrored)
    return None


class _Own:
    """Finds what one thread reads to compute values from its result of a pass.

    Args:
        step: The pass.
        shape: The one axis of its results.
        computed: The values that have no memory here.
        is_stored: True for values that have memory.
    """

    def __init__(
        self, step: RunPass, shape: Shape, computed: Iterable[Value], is_stored: IsStored
    ) -> None:
        result = step.node.result
        inside = frozenset((result, *computed))
        self.places: set[Indices] = set()
        """Where the result is read."""
        self.writer = number_writer(shape, lambda v: v not in inside and is_stored(v))
        self._total = c.variable("total", result.element)
        self.writer.bind(result, self._element)

    def _element(self, at: Indices, _: View | None) -> Expr:
        self.places.add(at)
        return self._total

    def compute(self, value: Value, at: Indices | None = None) -> None:
        """Reads what an element of `value` needs."""
        self.writer.values([value], at)

    @property
    def reads(self) -> tuple[Value, ...]:
        """The values in memory that are read."""
        return self.writer.values_read
