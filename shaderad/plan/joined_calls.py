"""Kernel calls and their pullbacks -> pairs that one dispatch computes.

A pullback computes its primal again; where its cotangents do not depend on the results of the call,
it can store these as well. Invariant: with each call at the place of its pullback, nodes have an
order in which operands come first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from shaderad.bodies.outputs import are_local
from shaderad.ir.arrays import Graph, KernelCall, KernelPull, KernelPush, Node, Value
from shaderad.ir.prints import silent
from shaderad.ir.types import Access, is_differentiable
from shaderad.rules.nodes import PushedKernel

Joined = Mapping[Node, Node]
"""The pullback of each call that has one in its dispatch."""


def call_key(node: KernelCall, operands: tuple[Value, ...]) -> Hashable:
    """Equal for calls that compute the same."""
    return (node.kernel, node.dim, node.names, node.written, node.bounds, node.checks, operands)


def launch_shaped(call: KernelCall) -> frozenset[str]:
    """The Out arrays of the launch's shape."""
    outs = {b.name for b in call.kernel.buffers if b.access is Access.OUT}
    return frozenset(name for name, t in call.written if name in outs and t.shape == call.dim)


def extremes_of(node: KernelPull | KernelPush) -> tuple[str, ...]:
    """Names of the Min and Max arrays of a kernel that have a derivative."""
    return tuple(
        b.name
        for b in node.call.kernel.buffers
        if b.access in (Access.MIN, Access.MAX) and is_differentiable(b.type.element)
    )


def needs_primal(node: KernelPull | KernelPush) -> bool:
    """True if the call must run before its derivative."""
    kernel = node.call.kernel
    # A pushed kernel checks its tangents for NaN itself, under their names.
    is_pushed = isinstance(kernel, PushedKernel)
    is_checked = node.call.checks == "writes" or (bool(node.call.checks) and not is_pushed)
    return is_checked or bool(extremes_of(node)) or silent(kernel) is not kernel


def joined_calls(graph: Graph, buffer_limit: int) -> Joined:
    """The calls whose results their pullbacks store."""
    calls = (node for node in graph.nodes if isinstance(node, KernelCall))
    call_by_key = {call_key(call, call.operands): call for call in calls}
    joined: dict[Node, Node] = {}
    for node in graph.nodes:
        if not isinstance(node, KernelPull) or needs_primal(node):
            continue
        key = call_key(node.call, node.operands[: len(node.call.operands)])
        call = call_by_key.get(key)
        if call is None or call in joined or not _can_store(node, call, buffer_limit):
            continue
        if call not in _needed_by(node, joined):
            joined[call] = node
    return joined


def _can_store(pull: KernelPull, call: KernelCall, buffer_limit: int) -> bool:
    """True if the threads of a pullback hold all results, and it binds few buffers with them."""
    count = len(pull.operands) + len(pull.wanted) + len(call.written)
    if count > buffer_limit or not call.kernel.has_body:
        return False
    return are_local(call.kernel, launch_shaped(call))


def _needed_by(pull: Node, joined: Joined) -> set[Node]:
    """The nodes that must run before a pullback."""
    needed: set[Node] = set()
    waiting = [pull]
    while waiting:
        for node in _producers(waiting.pop(), joined):
            if node not in needed:
                needed.add(node)
                waiting.append(node)
    return needed


def _producers(node: Node, joined: Joined) -> Iterable[Node]:
    """The nodes that compute the operands of a node, and of the pullback in its dispatch."""
    operands = (*node.operands, *(joined[node].operands if node in joined else ()))
    return (v.producer for v in operands if v.producer is not None)


def in_order(graph: Graph, joined: Joined) -> Iterable[Node]:
    """The nodes of a graph without the joined calls, operands first."""
    if not joined:
        return graph.nodes
    ordered: dict[Node, None] = {}
    for start in graph.nodes:
        waiting = [joined.get(start, start)]
        while waiting:
            node = waiting[-1]
            before = (joined.get(p, p) for p in _producers(node, {}))
            missing = [] if node in ordered else [p for p in before if p not in ordered]
            if missing:
                waiting += missing
            else:
                ordered[waiting.pop()] = None
    return ordered
