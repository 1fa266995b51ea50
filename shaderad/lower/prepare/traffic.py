"""The memory traffic of one thread of a kernel, for `shaderad build --report`.

The counts are those of the lowered body; compilers may merge equal accesses. Invariant: a count is
a number only if every thread makes that many accesses, whatever the data; otherwise `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from shaderad.bodies.loops import trip_count
from shaderad.bodies.outputs import Resolved, resolve_outputs
from shaderad.ir import nodes
from shaderad.ir.types import Access, Type, byte_count, is_differentiable, leaves
from shaderad.ir.walk import blocks, called, children, has_own_backward, statements
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.prepare.strategy import Strategies, choose

Count = int | None
"""`None`: the count depends on data."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic of one thread."""

    read_bytes: Count
    written_bytes: Count
    atomics: Count
    """Atomic operations of a thread."""
    group_atomics: Count
    """Atomic operations of a workgroup, after its threads have summed."""


def traffic_of(
    kernel: nodes.Kernel, mode: Mode, variant: Variant, unread: Collection[str] = ()
) -> Traffic | None:
    """The traffic of a primal or backward dispatch of `kernel`; `None` for other modes.

    Args:
        kernel: The kernel.
        mode: The mode of the dispatch.
        variant: The properties of the dispatch and its device.
        unread: The inputs of which the dispatch reads no element.
    """
    resolved = resolve_outputs(kernel, variant.launch_shaped)
    if mode is Mode.PRIMAL:
        return _primal(kernel, resolved)
    if mode is Mode.BACKWARD:
        strategies = choose(kernel, resolved.body, variant.wanted)
        return _backward(kernel, resolved, strategies, variant, unread)
    return None


def _primal(kernel: nodes.Kernel, resolved: Resolved) -> Traffic:
    own = sum(byte_count(kernel.buffer(name).type.element) for name in resolved.own)
    return Traffic(
        read_bytes=cost_of(resolved.body, _loaded),
        written_bytes=_added(own, cost_of(resolved.body, _stored)),
        atomics=cost_of(resolved.body, _accumulated),
        group_atomics=sum(_words(s.type) for s in resolved.sums),
    )


def _backward(
    kernel: nodes.Kernel,
    resolved: Resolved,
    strategies: Strategies,
    variant: Variant,
    unread: Collection[str],
) -> Traffic:
    """Reads of the primal are repeated and add cotangents; writes become reads of cotangents."""
    body = strategies.apply(resolved.body)
    exclusive = {n: byte_count(kernel.buffer(n).type.element) for n in strategies.exclusive}
    hoisted_bytes = sum(size for name, size in exclusive.items() if name not in unread)
    own = [kernel.buffer(name).type.element for name in resolved.own]
    cotangents = sum(byte_count(t) for t in own if is_differentiable(t))
    summed = {
        b.name
        for b in kernel.buffers
        if b.access is Access.IN and b.name in variant.wanted and is_differentiable(b.type.element)
    }

    def read(node: nodes.Expr | nodes.Stmt) -> int:
        if isinstance(node, nodes.Load) and node.buffer in unread:
            return 0
        if not isinstance(node, nodes.Store | nodes.Accumulate):
            return _loaded(node)
        return byte_count(node.value.type) if is_differentiable(node.value.type) else 0

    def added(node: nodes.Expr | nodes.Stmt) -> int:
        return _words(node.type) if isinstance(node, nodes.Load) and node.buffer in summed else 0

    # The additions of a custom derivative are unknown.
    is_known = not any(has_own_backward(f) for f in called(body))
    hoisted = [h.buffer for h in strategies.uniform]
    uniforms = [u.type for u in kernel.uniforms if u.name in variant.wanted]
    return Traffic(
        read_bytes=_added(cotangents + hoisted_bytes, cost_of(body, read)),
        written_bytes=sum(exclusive.values()),
        atomics=cost_of(body, added) if is_known else None,
        group_atomics=sum(_words(kernel.buffer(name).type.element) for name in hoisted)
        + sum(map(_words, uniforms)),
    )


def _words(t: Type) -> int:
    """The atomic operations of one value."""
    return len(tuple(leaves(t)))


def _loaded(node: nodes.Expr | nodes.Stmt) -> int:
    return byte_count(node.type) if isinstance(node, nodes.Load) else 0


def _stored(node: nodes.Expr | nodes.Stmt) -> int:
    return byte_count(node.value.type) if isinstance(node, nodes.Store) else 0


def _accumulated(node: nodes.Expr | nodes.Stmt) -> int:
    return _words(node.value.type) if isinstance(node, nodes.Accumulate) else 0


# -- counting over all paths ----------------------------------------------------------------


Cost = Callable[[nodes.Expr | nodes.Stmt], int]
"""The cost of a node by itself."""


def _added(*counts: Count) -> Count:
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def _either(left: Count, right: Count) -> Count:
    """The count of one of two branches."""
    return left if left == right else None


def cost_of(body: Iterable[nodes.Stmt], cost: Cost) -> Count:
    """The cost of one run of a body."""
    total: Count = 0
    may_end = False
    for s in body:
        own = _statement(s, cost)
        total = None if may_end and own != 0 else _added(total, own)
        may_end = may_end or any(
            isinstance(t, nodes.Return | nodes.Break | nodes.Continue) for t in statements([s])
        )
    return total


def _statement(s: nodes.Stmt, cost: Cost) -> Count:
    inside = [cost_of(block, cost) for block in blocks(s)]
    direct = _added(cost(s), *(_expression(e, cost) for e in children(s)))
    if isinstance(s, nodes.If):
        return _added(direct, _either(*inside))
    if isinstance(s, nodes.For | nodes.While):
        # The condition of a `while` is evaluated as often as its body.
        each = _added(*inside, direct if isinstance(s, nodes.While) else 0)
        times = trip_count(s) if isinstance(s, nodes.For) and not s.exits else None
        repeated = 0 if each == 0 else None if times is None or each is None else times * each
        return _added(repeated, 0 if isinstance(s, nodes.While) else direct)
    return _added(direct, *inside)


def _expression(e: nodes.Expr, cost: Cost) -> Count:
    if isinstance(e, nodes.Conditional):
        branches = _either(_expression(e.if_true, cost), _expression(e.if_false, cost))
        return _added(_expression(e.condition, cost), branches)
    if isinstance(e, nodes.Logical):
        return _added(_expression(e.left, cost), _either(_expression(e.right, cost), 0))
    inside = cost_of(e.function.body, cost) if isinstance(e, nodes.Call) else 0
    return _added(cost(e), inside, *(_expression(child, cost) for child in children(e)))
