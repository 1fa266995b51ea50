"""Array graphs run in NumPy, node by node as they are defined: the oracle of what plans compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import array_moves, array_sums
from shaderad.interpret.array_runner import Held, Rule, Runner, ints, taken
from shaderad.interpret.cells import cell, cells
from shaderad.interpret.forms import to_host
from shaderad.interpret.reports import Report, ReportKind
from shaderad.interpret.run import Run, interpret
from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, operand_name
from shaderad.ir.types import Access


def evaluate(
    graph: Graph, inputs: Sequence[Any], size_by_name: Mapping[str, int] | None = None
) -> tuple[list[Any], list[Report]]:
    """The outputs of `graph` in float64, structs as dicts, and what a device would report.

    Args:
        graph: What to run.
        inputs: Array-likes in the order of its inputs; dicts for structs.
        size_by_name: What its symbolic sizes are.
    """
    runner = Runner(size_by_name or {}, _RULES)
    given = [runner.from_host(x, v.type) for x, v in zip(inputs, graph.inputs, strict=True)]
    found = runner.graph(graph, given)
    return [to_host(held.value, held.shape) for held in found], runner.machine.reports.found


def _elementwise(r: Runner, node: arrays.Elementwise, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    by_name = {operand_name(k): held for k, held in enumerate(given)}
    return Held(node.expr.type, shape, r.expression(node.expr, by_name, prod(shape)))


def _iota(r: Runner, node: arrays.Iota, given: list[Held]) -> Held:
    shape = r.shape(node.shape)
    steps = np.arange(shape[node.axis]).reshape(
        [-1 if k == node.axis else 1 for k in range(len(shape))]
    )
    return ints(np.broadcast_to(steps, shape))


def _size_of(r: Runner, node: arrays.SizeOf, given: list[Held]) -> Held:
    return ints(np.asarray(r.size(node.size)))


# -- control flow -----------------------------------------------------------------------------


def _row(held: Held, k: int) -> Held:
    shape = held.shape[1:]
    return taken(held, np.arange(prod(shape)) + k * prod(shape), shape)


def _loop(r: Runner, node: arrays.Loop, given: list[Held]) -> list[Held]:
    count = r.size(node.count)
    carries = given[: node.carry_count]
    constants = given[node.carry_count :][: node.constant_count]
    xs = given[node.carry_count + node.constant_count :]
    ys: dict[int, list[Held]] = {}
    for k in reversed(range(count)) if node.is_reversed else range(count):
        rows = [_row(x, k) for x in xs]
        found = r.graph(node.body, [ints(np.asarray(k)), *carries, *constants, *rows])
        carries, ys[k] = found[: node.carry_count], found[node.carry_count :]
    stacked: list[Held] = []
    for position, y in enumerate(node.body.outputs[node.carry_count :]):
        shape = (count, *r.shape(y.shape))
        made = r.filled(y.element, shape)
        size = prod(shape[1:])
        for k, values in ys.items():
            for base, new in zip(cells(made.value), cells(values[position].value), strict=True):
                base.data[k * size : (k + 1) * size] = new.data
        stacked.append(made)
    return [*carries, *stacked]


def _while(r: Runner, node: arrays.WhileLoop, given: list[Held]) -> list[Held]:
    carries, constants = given[: node.carry_count], given[node.carry_count :]
    count = 0
    while True:
        (goes_on,) = r.graph(node.condition, [*carries, *constants])
        if not cell(goes_on.value).data[0]:
            break
        if count == node.limit:
            r.machine.reports.found.append(Report(ReportKind.LIMIT, node.span, str(node.limit), 0))
            break
        carries = r.graph(node.body, [*carries, *constants])
        count += 1
    return [*carries, ints(np.asarray(count))]


def _subgraph(r: Runner, node: arrays.Subgraph, given: list[Held]) -> list[Held]:
    return r.graph(node.body, given)


# -- kernels ----------------------------------------------------------------------------------


def _run_kernel(r: Runner, node: arrays.KernelCall, given: Sequence[Held]) -> Run:
    hosts = {n: to_host(h.value, h.shape) for n, h in zip(node.names, given, strict=False)}
    read = {b.name for b in node.kernel.buffers if b.access is Access.IN}
    return interpret(
        node.kernel,
        dim=r.shape(node.dim),
        arrays={n: x for n, x in hosts.items() if n in read},
        uniforms={n: x for n, x in hosts.items() if n not in read},
        shapes={n: r.shape(t.shape) for n, t in node.written},
    )


def _kernel_call(r: Runner, node: arrays.KernelCall, given: list[Held]) -> list[Held]:
    outputs = _run_kernel(r, node, given).outputs
    return [r.from_host(outputs[n], t) for n, t in node.written]


def _kernel_pull(r: Runner, node: arrays.KernelPull, given: list[Held]) -> list[Held]:
    run = _run_kernel(r, node.call, given)
    bars = given[len(node.call.names) :]
    found = run.pull({n: to_host(h.value, h.shape) for n, h in zip(node.given, bars, strict=True)})
    types = node.result_types()
    return [r.from_host(found[n], t) for n, t in zip(node.wanted, types, strict=True)]


def _kernel_push(r: Runner, node: arrays.KernelPush, given: list[Held]) -> list[Held]:
    run = _run_kernel(r, node.call, given)
    dots = given[len(node.call.names) :]
    found = run.push({n: to_host(h.value, h.shape) for n, h in zip(node.given, dots, strict=True)})
    types = node.result_types()
    return [r.from_host(found[n], t) for n, t in zip(node.wanted, types, strict=True)]


_RULES: dict[type[arrays.Node], Rule] = {
    **array_moves.RULES,
    **array_sums.RULES,
    arrays.Elementwise: _elementwise,
    arrays.Iota: _iota,
    arrays.SizeOf: _size_of,
    arrays.Loop: _loop,
    arrays.WhileLoop: _while,
    arrays.Subgraph: _subgraph,
    arrays.KernelCall: _kernel_call,
    arrays.KernelPull: _kernel_pull,
    arrays.KernelPush: _kernel_push,
}
