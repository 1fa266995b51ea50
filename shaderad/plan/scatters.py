"""Nodes that write by index array -> kernels with atomic arrays, one thread a value."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

from shaderad.ir import arrays, nodes, ops, sizes
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    INTEGER_KINDS,
    Access,
    Kind,
    LocalArray,
    Struct,
    Type,
    is_differentiable,
    scalars,
    with_scalar,
)
from shaderad.plan.elements import base_of
from shaderad.plan.kernels import IsStored, Writer, write_kernel
from shaderad.plan.steps import RunKernel
from shaderad.plan.storage import is_fused_node
from shaderad.rules.arrays.scan_operators import fold_by_bin

_Additions = tuple[Sequence[Expr], list[Stmt]]
"""Positions along indexed axes, and what is added there."""


def is_sum(v: Value) -> bool:
    """True if a scatter adds to `v`."""
    return isinstance(v.producer, arrays.ScatterAdd)


def threads_for(v: Value) -> Shape:
    """The shape of the threads that compute `v`, an element each or the summands of a scatter."""
    node = v.producer
    return node.operands[1].shape if isinstance(node, arrays.ScatterAdd) else v.shape


def by_index(sums: Iterable[Value]) -> list[Value]:
    """`sums` of scatters, so that those by the same index arrays are neighbours."""
    alike: defaultdict[tuple[tuple[Value, ...], ...], list[Value]] = defaultdict(list)
    for v in sums:
        alike[tuple(tuple(index) for _, *index in _parts_of(v))].append(v)
    return [v for neighbours in alike.values() for v in neighbours]


def sums_and_elements(values: Sequence[Value], is_stored: IsStored) -> RunKernel:
    """One kernel that computes `values`, of which some are sums of scatters.

    The thread of ``j..., r...`` stores its elements, and for each scatter does
    ``total[index0[j...], ..., r...] += summands[j..., r...]``.
    """
    named = {f"y{k}": v for k, v in enumerate(values)}
    parts = [
        _Part(name, v, summand, (*index,))
        for name, v in named.items()
        for summand, *index in _parts_of(v)
    ]

    def body(writer: Writer) -> list[Stmt]:
        elements: list[Expr] = []
        for part in parts:
            at = writer.own[: part.index_rank]
            elements += writer.values([part.value]) + writer.values(part.index, at)
        written = writer.written(elements)
        return [*written.body, *_writes(writer, parts, written.values)]

    outputs = [(name, v, Access.ADD if is_sum(v) else Access.OUT) for name, v in named.items()]
    work = write_kernel("scatter_add", threads_for(values[0]), is_stored, body, outputs)
    bases = {
        name: v.producer.operands[0]
        for name, v in named.items()
        if isinstance(v.producer, arrays.ScatterAdd)
    }
    return RunKernel(work, {name: base_of(v) for name, v in bases.items() if not b.is_zero(v)})


@dataclass(frozen=True)
class _Part:
    """An element that a thread stores, or a summand that it adds at the positions of `index`."""

    array: str
    result: Value
    value: Value
    index: tuple[Value, ...]

    @property
    def index_rank(self) -> int:
        return len(self.index[0].shape) if self.index else 0


def _writes(writer: Writer, parts: Sequence[_Part], elements: Iterable[Expr]) -> list[Stmt]:
    """Stores and additions; those at the same positions of an extent share a test."""
    stores: list[Stmt] = []
    additions: dict[tuple[tuple[Value, ...], Shape], _Additions] = {}
    rest = iter(elements)
    for part in parts:
        element, *positions = islice(rest, 1 + len(part.index))
        if not part.index:
            stores.append(nodes.Store(buffer=part.array, indices=writer.index(), value=element))
            continue
        at = (*map(writer.positions.of, positions), *writer.own[part.index_rank :])
        indices = writer.indices_in(part.result, at)
        extents = part.result.shape[: len(part.index)]
        _, same = additions.setdefault((part.index, extents), (positions, []))
        same.append(nodes.Accumulate(buffer=part.array, indices=indices, value=element))
    size_of = writer.positions.size
    tests = [guarded(size_of, at, extents, same) for (_, extents), (at, same) in additions.items()]
    return [*stores, *tests]


def _parts_of(v: Value) -> tuple[tuple[Value, ...], ...]:
    """Each summand of `v` with its index arrays, or `v` itself, whose element a thread stores."""
    node = v.producer
    return node.parts if isinstance(node, arrays.ScatterAdd) else ((v,),)


def joined_scatters(graph: Graph, read_limit: int) -> Graph:
    """Joins sums by index array, each the only reader of the one before, into one kernel.

    So the gradient of an array that is read at several indices is one dispatch; what is read at the
    thread's own index is added like the others.

    Args:
        graph: The computation.
        read_limit: Values that a kernel may read.
    """
    counts = Counter(v for node in graph.nodes for v in node.operands)
    counts.update(graph.outputs)
    value_of: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        new = arrays.with_operands(node, tuple(value_of[v] for v in node.operands))
        if isinstance(new, arrays.ScatterAdd) and counts[node.operands[0]] == 1:
            new = _joined(new, read_limit)
        value_of.update(zip(node.results, new.results, strict=True))
    return Graph(graph.inputs, tuple(value_of[v] for v in graph.outputs))


def _joined(node: arrays.ScatterAdd, read_limit: int) -> arrays.ScatterAdd:
    """`node` together with what makes its base."""
    base, values = node.operands[:2]
    before = base.producer
    if isinstance(before, arrays.ScatterAdd):
        added = (*before.operands, *node.operands[1:])
        is_alike = before.operands[1].shape == values.shape
        count = before.part_count + 1
    else:
        # The base is a part whose thread adds at its own index.
        rank = len(node.operands) - 2
        own = [b.iota(base.shape, axis) for axis in range(rank)]
        added = (b.zeros(base.type), base, *own, *node.operands[1:])
        is_fused = before is not None and is_fused_node(before) and not b.is_zero(base)
        is_alike = is_fused and base.shape == values.shape == node.operands[2].shape
        count = 2
    if not is_alike or len(set(added)) > read_limit:
        return node
    return replace(node, operands=added, part_count=count)


def last_writer(node: arrays.LastWriter, is_stored: IsStored) -> RunKernel:
    """``largest[index[j]] = max(largest[index[j]], j)``, where j is the thread."""
    (index,) = node.operands

    def body(writer: Writer) -> list[Stmt]:
        written = writer.written(writer.values([index]))
        (position,) = written.values
        number = writer.positions.expr(writer.own[0])
        write_number = nodes.Accumulate(buffer="y0", indices=(position,), value=number)
        return [
            *written.body,
            guarded(writer.positions.size, [position], (node.count,), [write_number]),
        ]

    work = write_kernel("last_writer", index.shape, is_stored, body,
                        [("y0", node.result, Access.MAX)])  # fmt: skip
    return RunKernel(work)


def guarded(
    size_of: Callable[[Size], Expr],
    at: Sequence[Expr],
    shape: Sequence[Size],
    writes: Sequence[Stmt],
) -> Stmt:
    """`writes` if all positions, at least one, are in range; other writes are ignored."""
    tests: list[Expr] = []
    for position, extent in zip(at, shape, strict=False):
        tests.append(c.apply(ops.GE, position, c.whole(0)))
        tests.append(c.apply(ops.LT, position, size_of(extent)))
    return nodes.If(condition=reduce(_and, tests), then=(*writes,))


def _and(left: Expr, right: Expr) -> Expr:
    return nodes.Logical(type=BOOL, is_and=True, left=left, right=right)


def is_atomic(t: Type) -> bool:
    """True if devices add to elements of this type atomically."""
    kinds = {s.kind for s in scalars(t)}
    return kinds <= {Kind.FLOAT} or kinds <= INTEGER_KINDS


def summed(node: arrays.ScatterAdd) -> Value:
    """The result of `node` without atomics: doubles in order, other types as floats."""
    t = node.result.element
    if any(s.kind is Kind.DOUBLE for s in scalars(t)):
        return _in_order(node)
    base, values, *index = node.operands
    wide = _floats_of(t)
    start = b.zeros(arrays.ArrayType(wide, base.shape)) if b.is_zero(base) else _as(wide, base)
    total = arrays.ScatterAdd(operands=(start, _as(wide, values), *index), span=node.span)
    return _as(t, total.result)


def _floats_of(t: Type) -> Type:
    """The floats of `t` in its form, with float in place of half."""
    if isinstance(t, Struct):
        kept = tuple((name, _floats_of(part)) for name, part in t.fields if is_differentiable(part))
        return Struct(f"{b.type_name(t)}_floats", kept)
    if isinstance(t, LocalArray):
        return LocalArray(_floats_of(t.element), t.count)
    return with_scalar(t, FLOAT)


def _as(t: Type, x: Value) -> Value:
    """`x` with its floats converted to those of `t`."""
    floats = c.float_scalars(c.variable("x", x.element))
    return b.elementwise(c.from_float_scalars(t, floats), {"x": x}, x.shape)


def _in_order(node: arrays.ScatterAdd) -> Value:
    base, values, *index = node.operands
    count, rest = len(index), base.shape[len(index) :]
    extents = base.shape[:count]
    rows = b.reshape(values, (sizes.product(index[0].shape), *rest))
    init = b.reshape(base, (sizes.product(extents), *rest))
    at = b.reshape(_places(index, extents), rows.shape[:1])
    return b.reshape(fold_by_bin(ops.ADD, init, rows, at, node.span), base.shape)


def _places(index: list[Value], extents: Shape) -> Value:
    """The row-major number of each element that `index` names, -1 for those out of range."""
    place, is_inside = c.whole(0), nodes.Const(type=BOOL, value=True)
    operands: dict[str, Value] = {}
    for k, (positions, extent) in enumerate(zip(index, extents, strict=True)):
        i, n = c.variable(f"i{k}", INT), c.variable(f"n{k}", INT)
        size = arrays.SizeOf(operands=(), size=extent).result
        operands |= {f"i{k}": positions, f"n{k}": b.broadcast(size, positions.shape, [])}
        place = c.apply(ops.ADD, c.apply(ops.MUL, place, n), i)
        for test in (c.apply(ops.GE, i, c.whole(0)), c.apply(ops.LT, i, n)):
            is_inside = c.apply(ops.BIT_AND, is_inside, test)
    return b.elementwise(c.select(is_inside, place, c.whole(-1)), operands, index[0].shape)
