"""Runs array graphs in NumPy, node by node: the oracle of plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import array_moves, array_sums
from shaderad.interpret.array_runner import ArrayValue, GraphRunner, Rule, ints, put, taken
from shaderad.interpret.cells import cell
from shaderad.interpret.forms import to_host
from shaderad.interpret.reports import ReportKind, RunReport
from shaderad.interpret.run import KernelRun, interpret
from shaderad.ir import arrays
from shaderad.ir.arrays import Graph, operand_name
from shaderad.ir.types import Access


def evaluate(
    graph: Graph, inputs: Sequence[Any], size_by_name: Mapping[str, int] | None = None
) -> tuple[list[Any], list[RunReport]]:
    """The outputs of `graph` in float64, structs as dicts, and the reports of the run.

    Args:
        graph: The graph.
        inputs: Array-likes in the order of its inputs; dicts for structs.
        size_by_name: Values of its symbolic sizes.
    """
    runner = GraphRunner(size_by_name or {}, _RULES)
    values = [runner.from_host(x, v.type) for x, v in zip(inputs, graph.inputs, strict=True)]
    outputs = runner.graph(graph, values)
    return [to_host(x.value, x.shape) for x in outputs], runner.machine.reports.reports


def _elementwise(
    r: GraphRunner, node: arrays.Elementwise, operands: list[ArrayValue]
) -> ArrayValue:
    shape = r.shape(node.shape)
    by_name = {operand_name(k): array for k, array in enumerate(operands)}
    return ArrayValue(node.expr.type, shape, r.expression(node.expr, by_name, prod(shape)))


def _iota(r: GraphRunner, node: arrays.Iota, operands: list[ArrayValue]) -> ArrayValue:
    shape = r.shape(node.shape)
    steps = np.arange(shape[node.axis]).reshape(
        [-1 if k == node.axis else 1 for k in range(len(shape))]
    )
    return ints(np.broadcast_to(steps, shape))


def _size_of(r: GraphRunner, node: arrays.SizeOf, operands: list[ArrayValue]) -> ArrayValue:
    return ints(np.asarray(r.size(node.size)))


# -- control flow -----------------------------------------------------------------------------


def _row(array: ArrayValue, k: int) -> ArrayValue:
    shape = array.shape[1:]
    return taken(array, np.arange(prod(shape)) + k * prod(shape), shape)


def _loop(r: GraphRunner, node: arrays.Loop, operands: list[ArrayValue]) -> list[ArrayValue]:
    count = r.size(node.count)
    carries = operands[: node.carry_count]
    constants = operands[node.carry_count :][: node.constant_count]
    xs = operands[node.carry_count + node.constant_count :]
    ys: dict[int, list[ArrayValue]] = {}
    for k in reversed(range(count)) if node.is_reversed else range(count):
        rows = [_row(x, k) for x in xs]
        outputs = r.graph(node.body, [ints(np.asarray(k)), *carries, *constants, *rows])
        carries, ys[k] = outputs[: node.carry_count], outputs[node.carry_count :]
    stacked: list[ArrayValue] = []
    for position, y in enumerate(node.body.outputs[node.carry_count :]):
        shape = (count, *r.shape(y.shape))
        result = r.filled(y.element, shape)
        size = prod(shape[1:])
        for k, values in ys.items():
            put(result, slice(k * size, (k + 1) * size), values[position])
        stacked.append(result)
    return [*carries, *stacked]


def _while(r: GraphRunner, node: arrays.WhileLoop, operands: list[ArrayValue]) -> list[ArrayValue]:
    carries, constants = operands[: node.carry_count], operands[node.carry_count :]
    count = 0
    while True:
        (goes_on,) = r.graph(node.condition, [*carries, *constants])
        if not cell(goes_on.value).data[0]:
            break
        if count == node.limit:
            limit = RunReport(ReportKind.LIMIT, node.span, str(node.limit), 0)
            r.machine.reports.reports.append(limit)
            break
        carries = r.graph(node.body, [*carries, *constants])
        count += 1
    return [*carries, ints(np.asarray(count))]


def _subgraph(
    r: GraphRunner, node: arrays.Subgraph, operands: list[ArrayValue]
) -> list[ArrayValue]:
    return r.graph(node.body, operands)


# -- kernels ----------------------------------------------------------------------------------


def _run_kernel(
    r: GraphRunner, node: arrays.KernelCall, operands: Sequence[ArrayValue]
) -> KernelRun:
    hosts = _to_hosts(node.names, operands)
    read = {b.name for b in node.kernel.buffers if b.access is Access.IN}
    return interpret(
        node.kernel,
        dim=r.shape(node.dim),
        arrays={n: x for n, x in hosts.items() if n in read},
        uniforms={n: x for n, x in hosts.items() if n not in read},
        shapes={n: r.shape(t.shape) for n, t in node.written},
    )


def _kernel_call(
    r: GraphRunner, node: arrays.KernelCall, operands: list[ArrayValue]
) -> list[ArrayValue]:
    outputs = _run_kernel(r, node, operands).outputs
    return [r.from_host(outputs[n], t) for n, t in node.written]


def _to_hosts(names: Iterable[str], values: Iterable[ArrayValue]) -> dict[str, Any]:
    return {n: to_host(x.value, x.shape) for n, x in zip(names, values, strict=False)}


def _kernel_derivative(
    r: GraphRunner, node: arrays.KernelPull | arrays.KernelPush, operands: list[ArrayValue]
) -> list[ArrayValue]:
    run = _run_kernel(r, node.call, operands)
    derivatives = _to_hosts(node.given, operands[len(node.call.names) :])
    is_pull = isinstance(node, arrays.KernelPull)
    results = run.pull(derivatives) if is_pull else run.push(derivatives)
    types = node.result_types()
    return [r.from_host(results[n], t) for n, t in zip(node.wanted, types, strict=True)]


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
    arrays.KernelPull: _kernel_derivative,
    arrays.KernelPush: _kernel_derivative,
}
