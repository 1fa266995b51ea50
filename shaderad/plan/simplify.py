"""Graph -> an equivalent graph of nodes that plans have steps for, each value once.

Planning calls these passes in this order: `narrowed` packs operands beyond the binding limit into
structs; `simplified` merges equal nodes, inlines subgraphs, and expands searches and convolutions;
`without_unread_results` leaves out what kernels of the user write and nothing reads;
`exact_products` compensates the rounding of long products; `turned_reductions` reduces in the order
in which results are read. Equal nodes are merged before subgraphs are inlined: a checkpoint
recomputes values that exist outside of it, and must not be merged with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, replace
from typing import Any, cast

from shaderad.bodies.unread import without_unread
from shaderad.ir import arrays, ops
from shaderad.ir import building as b
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph, KernelCall, Node, Value, operand_name
from shaderad.ir.dags import substitute
from shaderad.ir.equality import Expressions
from shaderad.ir.nodes import Expr, Function
from shaderad.ir.prints import silent
from shaderad.ir.types import Struct
from shaderad.plan.discarded import simply_discarded
from shaderad.plan.scatters import is_atomic, summed
from shaderad.plan.sorts.extremes import extreme_by_reduction
from shaderad.rules.arrays import convolutions, scan_operators
from shaderad.rules.arrays.halves import combines_halves, in_float

Rule = Callable[[Node], Sequence[Value]]
"""Maps a node to the values that replace its results."""


def rewritten(graph: Graph, rule: Rule) -> Graph:
    """`graph` with results of nodes replaced by a rule, which takes nodes of rewritten operands."""
    value_of: dict[Value, Value] = {v: v for v in graph.inputs}
    _rewrite(graph, rule, value_of)
    return Graph(graph.inputs, tuple(value_of[v] for v in graph.outputs))


def _rewrite(graph: Graph, rule: Rule, value_of: dict[Value, Value]) -> None:
    """Adds the rewritten values of `graph` to `value_of`, which has its inputs."""
    for node in graph.nodes:
        operands = tuple(value_of[v] for v in node.operands)
        if isinstance(node, arrays.Reshape):
            # The last of consecutive reshapes is enough.
            (x,) = operands
            while isinstance(x.producer, arrays.Reshape):
                x = x.producer.operands[0]
            if x.shape == node.shape:
                value_of[node.result] = x
                continue
            operands = (x,)
        results = rule(arrays.with_operands(node, operands))
        value_of.update(zip(node.results, results, strict=True))


# -- few operands -----------------------------------------------------------------------------


def narrowed(graph: Graph, limit: int) -> Graph:
    """Packs operands of fused nodes beyond `limit` as fields of arrays of structs."""
    return rewritten(graph, lambda node: _narrow(node, limit).results)


def _narrow(node: Node, limit: int) -> Node:
    if isinstance(node, arrays.Concatenate) and len(node.operands) > limit:
        joined = tuple(
            replace(node, operands=group).result for group in _groups(node.operands, limit)
        )
        return _narrow(replace(node, operands=joined), limit)
    if isinstance(node, arrays.Elementwise):
        distinct = tuple(dict.fromkeys(node.operands))
        if len(distinct) > limit:
            carriers, parts = _carried(distinct, limit)
            part_of = dict(zip(distinct, parts, strict=True))
            by_name = {operand_name(k): part_of[v] for k, v in enumerate(node.operands)}
            return replace(node, operands=carriers, expr=substitute(node.expr, by_name))
    return node


def _groups(values: Sequence[Value], limit: int) -> list[tuple[Value, ...]]:
    return [(*values[k : k + limit],) for k in range(0, len(values), limit)]


def _carried(values: tuple[Value, ...], limit: int) -> tuple[tuple[Value, ...], list[Expr]]:
    """At most `limit` arrays that hold `values`, and each of `values` as an element of them."""
    if len(values) <= limit:
        return values, [c.variable(operand_name(k), v.element) for k, v in enumerate(values)]
    groups = _groups(values, limit)
    carriers, packs = _carried(tuple(map(_pack, groups)), limit)
    return carriers, [
        c.field(pack, f"part{k}")
        for pack, group in zip(packs, groups, strict=True)
        for k in range(len(group))
    ]


def _pack(values: tuple[Value, ...]) -> Value:
    parts = tuple((f"part{k}", v.element) for k, v in enumerate(values))
    return b.struct(Struct("Operands", parts), values)


# -- merging and inlining ---------------------------------------------------------------------


def simplified(graph: Graph) -> Graph:
    """Merges equal nodes, inlines subgraphs, and expands nodes that no single step computes."""
    return rewritten(rewritten(_merged(graph), _inlined), _expanded)


def _merged(graph: Graph) -> Graph:
    """Merges nodes that compute the same; drops layout nodes that are identities."""
    expressions = Expressions()
    node_by_key: dict[Hashable, Node] = {}

    def merge(node: Node) -> Sequence[Value]:
        same = _unchanged(node)
        if same is not None:
            return (same,)
        return node_by_key.setdefault(_key(node, expressions), node).results

    return rewritten(graph, merge)


def _unchanged(node: Node) -> Value | None:
    """The operand of a layout node that is an identity; `None` for other nodes."""
    match node:
        case arrays.Broadcast() | arrays.Slice() | arrays.Place():
            steps = getattr(node, "steps", ())
            is_same = node.operands[0].shape == node.shape and all(s == 1 for s in steps)
        case arrays.Reshape():
            is_same = node.operands[0].shape == node.shape
        case arrays.Transpose():
            is_same = node.permutation == tuple(range(len(node.permutation)))
        case arrays.Concatenate():
            is_same = len(node.operands) == 1
        case _:
            return None
    return node.operands[0] if is_same else None


def _key(node: Node, expressions: Expressions) -> Hashable:
    parts: list[Hashable] = [type(node)]
    for f in fields(node):
        value: Any = getattr(node, f.name)
        if f.name == "span":
            continue
        if f.name == "operands":
            parts.append(tuple(map(id, cast("tuple[Value, ...]", value))))
        else:
            parts.append(expressions.number(value) if isinstance(value, Expr) else value)
    return tuple(parts)


def _inlined(node: Node) -> Sequence[Value]:
    """Replaces a subgraph by its nodes, and a scatter without atomics by one that devices run."""
    if isinstance(node, arrays.Subgraph):
        body = _merged(node.body)
        value_of = dict(zip(body.inputs, node.operands, strict=True))
        _rewrite(body, _inlined, value_of)
        return [value_of[v] for v in body.outputs]
    if isinstance(node, arrays.ScatterAdd) and not is_atomic(node.result.element):
        return (summed(node),)
    return node.results


def _expanded(node: Node) -> Sequence[Value]:
    """Expands searches and convolutions into nodes that plans have steps for.

    Adds and multiplies halves in float, bounds last writers, and makes masks on discarded
    cotangents cheap.
    """
    if isinstance(node, arrays.Elementwise):
        expr = simply_discarded(node.expr)
        return node.results if expr is node.expr else (replace(node, expr=expr).result,)
    if isinstance(node, arrays.ArgExtreme):
        return (extreme_by_reduction(node.operands[0], node.kind),)
    if isinstance(node, arrays.Convolution):
        return (convolutions.as_sum(node),)
    if isinstance(node, arrays.Reduce | arrays.Scan) and combines_halves(node):
        return (in_float(node),)
    if isinstance(node, arrays.LastWriter):
        # A Max array holds the smallest int where no thread wrote.
        x = node.result
        bounded = c.apply(ops.MAX, c.variable("x", x.element), c.whole(-1))
        return (b.elementwise(bounded, {"x": x}, x.shape),)
    return node.results


# -- kernels of the user --------------------------------------------------------------------


def without_unread_results(graph: Graph) -> Graph:
    """Leaves out arrays that kernels of the user write and nothing reads."""
    read = {*graph.outputs, *(v for node in graph.nodes for v in node.operands)}
    value_of: dict[Value, Value] = {v: v for v in graph.inputs}
    for node in graph.nodes:
        rebuilt = arrays.with_operands(node, tuple(value_of[v] for v in node.operands))
        results = node.results
        if isinstance(rebuilt, KernelCall) and not read.issuperset(results):
            rebuilt = _without_results(rebuilt, [v in read for v in results])
            names = {name for name, _ in rebuilt.written}
            written = cast("KernelCall", node).written
            own = [v for v, (n, _) in zip(results, written, strict=False) if n in names]
            results = (*own, *results[len(written) :])
        value_of.update(zip(results, rebuilt.results, strict=True))
    return Graph(graph.inputs, tuple(value_of[v] for v in graph.outputs))


def _without_results(call: KernelCall, are_read: Sequence[bool]) -> KernelCall:
    pairs = [*zip(call.written, are_read, strict=False)]
    kernel = call.kernel
    # Derivatives of other calls, which report or replay more, find these by their kernels.
    if not call.checks and silent(kernel) is kernel:
        kernel = without_unread(
            kernel, frozenset(name for (name, _), is_read in pairs if not is_read)
        )
    names = {b.name for b in kernel.buffers}
    written = tuple((name, t) for name, t in call.written if name in names)
    return replace(call, kernel=kernel, written=written)


# -- exact products ---------------------------------------------------------------------------


def exact_products(graph: Graph) -> Graph:
    """Replaces products along an axis by scans and reductions of pairs: value, rounding error.

    See `scan_operators`. Comes after differentiation, whose rules know plain products only.
    """
    return rewritten(graph, _exact)


def _exact(node: Node) -> Sequence[Value]:
    if not isinstance(node, arrays.Scan | arrays.Reduce):
        return node.results
    x, *init = node.operands
    if not scan_operators.needs_compensation(node.op, x.element):
        return node.results
    t = scan_operators.compensated(x.element)
    if isinstance(node, arrays.Scan):
        result = b.scan(_multiply(t), _in_two(t, x))
    else:
        one = b.full(node.result.shape, c.number(x.element, 1.0))
        result = b.reduce(_multiply(t), _in_two(t, x), _in_two(t, init[0] if init else one))
    pair = c.variable("x", t)
    finished = scan_operators.rounded_to_finite(c.field(pair, "value"), c.field(pair, "low"))
    return (b.elementwise(finished, {"x": result}, result.shape),)


def _in_two(t: Struct, x: Value) -> Value:
    return b.struct(t, (x, b.zeros(x.type)))


def _multiply(t: Struct) -> Function:
    left, right = c.variable("left", t), c.variable("right", t)
    a, a_low = c.field(left, "value"), c.field(left, "low")
    then, then_low = c.field(right, "value"), c.field(right, "low")
    parts = (c.apply(ops.MUL, a, then), scan_operators.product_error(a, a_low, then, then_low))
    return scan_operators.operator("multiply", left, right, c.construct(t, parts))


# -- transposed reductions ----------------------------------------------------------------------


def turned_reductions(graph: Graph) -> Graph:
    """Reduces transposed elements in place of reductions that are only read transposed.

    The derivative of a product by its right matrix is such: the results lie as they are read, and
    those that the graph returns need no step that moves them.
    """
    orders: defaultdict[Value, set[tuple[int, ...] | None]] = defaultdict(set)
    """The orders of axes in which values are read; `None` for their own."""
    for v in graph.outputs:
        orders[v].add(None)
    for node in graph.nodes:
        for v in node.operands:
            orders[v].add(node.permutation if isinstance(node, arrays.Transpose) else None)
    value_of: dict[Value, Value] = {v: v for v in graph.inputs}
    turned: dict[Value, Value] = {}
    """Reductions that are only read in one order -> their results in that order."""
    for node in graph.nodes:
        rebuilt = arrays.with_operands(node, tuple(value_of[v] for v in node.operands))
        results = rebuilt.results
        if isinstance(node, arrays.Transpose) and node.operands[0] in turned:
            results = [turned[node.operands[0]]]
        elif isinstance(rebuilt, arrays.Reduce) and len(rebuilt.operands) == 1:
            order, *others = orders[node.results[0]]
            if order is not None and not others:
                elements = b.transpose(rebuilt.operands[0], (*order, len(order)))
                turned[node.results[0]] = replace(rebuilt, operands=(elements,)).result
        value_of.update(zip(node.results, results, strict=True))
    return Graph(graph.inputs, tuple(value_of[v] for v in graph.outputs))
