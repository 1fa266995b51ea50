"""Kernel calls in a loop that runs on after its end -> calls that then do nothing.

A device may run iterations that change no carry, because it learns late that the loop has ended.
Kernels must not report or print in these, so a bool without axes tells them whether to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from shaderad.ir import nodes
from shaderad.ir.arrays import (
    Graph,
    KernelCall,
    KernelPull,
    KernelPush,
    Loop,
    Node,
    Subgraph,
    Value,
    WhileLoop,
    graphs_in,
    with_operands,
)
from shaderad.ir.nodes import Kernel
from shaderad.ir.prints import silent
from shaderad.ir.types import BOOL
from shaderad.ir.verifier import verified
from shaderad.ir.walk import made_name, reads, writes


def instantiate_where(active: Value, graph: Graph, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of `graph` for `inputs`; its kernels run only if `active` holds."""
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        own = with_operands(node, tuple(new.get(v, v) for v in node.operands))
        new |= zip(node.results, _guarded(own, active).results, strict=True)
    return tuple(new.get(v, v) for v in graph.outputs)


def _guarded(node: Node, active: Value) -> Node:
    if isinstance(node, KernelCall):
        return _call(node, active)
    if isinstance(node, KernelPull | KernelPush):
        count, call = len(node.call.names), _call(node.call, active)
        if call is node.call:
            return node
        operands = (*node.operands[:count], active, *node.operands[count:])
        return replace(node, call=call, operands=operands)
    if not any(map(_calls_kernels, graphs_in(node).values())):
        return node
    if isinstance(node, Loop):
        first = node.carry_count + node.constant_count
        operands = (*node.operands[:first], active, *node.operands[first:])
        body = _with_input(node.body, active, 1 + first)
        return replace(node, operands=operands, body=body, constant_count=node.constant_count + 1)
    operands = (*node.operands, active)
    if isinstance(node, WhileLoop):
        condition, body = (
            _with_input(graph, active, len(graph.inputs)) for graph in (node.condition, node.body)
        )
        return replace(node, operands=operands, condition=condition, body=body)
    assert isinstance(node, Subgraph)
    body = _with_input(node.body, active, len(node.body.inputs))
    return replace(node, operands=operands, body=body, custom=None)  # derivatives are taken


def _with_input(graph: Graph, active: Value, position: int) -> Graph:
    """`graph` with one more input, which tells its kernels whether to run."""
    own = Value(active.type)
    inputs = (*graph.inputs[:position], own, *graph.inputs[position:])
    return Graph(inputs, instantiate_where(own, graph, graph.inputs))


def _calls_kernels(graph: Graph) -> bool:
    return any(
        isinstance(node, KernelCall | KernelPull | KernelPush)
        or any(map(_calls_kernels, graphs_in(node).values()))
        for node in graph.nodes
    )


def _call(call: KernelCall, active: Value) -> KernelCall:
    is_quiet = call.bounds != "raise" and not call.checks and silent(call.kernel) is call.kernel
    if is_quiet or call.kernel.is_built:
        return call
    kernel = _kernel_where(call.kernel)
    return replace(
        call,
        kernel=kernel,
        operands=(*call.operands, active),
        names=(*call.names, kernel.uniforms[-1].name),
    )


@lru_cache(maxsize=256)
def _kernel_where(kernel: Kernel) -> Kernel:
    """`kernel`, whose threads run if its last uniform holds."""
    declared = (b.name for b in (*kernel.buffers, *kernel.uniforms))
    name = made_name("active", {*declared, *kernel.index_names, *kernel.local_types,
                                *reads(kernel.body), *writes(kernel.body)})  # fmt: skip
    uniform = nodes.Uniform(name=name, path=(name,), type=BOOL, span=kernel.span)
    body = (nodes.If(condition=nodes.Var(type=BOOL, name=name), then=kernel.body),)
    guarded = replace(kernel, uniforms=(*kernel.uniforms, uniform), body=body)
    verified(guarded)
    return guarded
