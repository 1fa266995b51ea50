"""Runs the nodes of an array graph in NumPy; all expressions share one machine.

An array is a value whose rows are its elements in row-major order (see cells.py), with its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import AnyArray, Cell, Value, cells, combined, filled, mapped
from shaderad.interpret.expressions import evaluate as evaluate_expression
from shaderad.interpret.forms import from_host
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir.arrays import ArrayType, Graph, Reducer
from shaderad.ir.types import INT, Type

Shape = tuple[int, ...]
Rule = Callable[["GraphRunner", Any, "list[ArrayValue]"], "ArrayValue | list[ArrayValue]"]
"""``(runner, node, operands) -> results``."""


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array while the graph runs."""

    element: Type
    shape: Shape
    value: Value


@dataclass(slots=True)
class GraphRunner:
    """Runs nodes; all share one list of reports."""

    sizes: Mapping[str, int]
    rules: Mapping[type[arrays.Node], Rule]
    machine: Machine = field(default_factory=functions.machine)

    def size(self, size: sizes.Size) -> int:
        return sizes.evaluate(size, self.sizes)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(map(self.size, shape))

    def from_host(self, data: Any, t: ArrayType) -> ArrayValue:
        shape = self.shape(t.shape)
        return ArrayValue(t.element, shape, from_host(data, t.element, shape, np.float64))

    def graph(self, graph: Graph, inputs: Sequence[ArrayValue]) -> list[ArrayValue]:
        """The outputs of `graph`."""
        array_by_value = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            operands = [array_by_value[v] for v in node.operands]
            results = self.rules[type(node)](self, node, operands)
            results = results if isinstance(results, list) else [results]
            for v, array in zip(node.results, results, strict=True):
                assert array.shape == self.shape(v.shape), f"{node}: {array.shape}, {v.type}"
                array_by_value[v] = array
        return [array_by_value[v] for v in graph.outputs]

    def filled(self, t: Type, shape: Shape, fill: Any = 0) -> ArrayValue:
        return ArrayValue(t, shape, filled(t, (prod(shape),), np.float64, fill))

    def expression(self, e: nodes.Expr, by_name: Mapping[str, ArrayValue], count: int) -> Value:
        """`e` for each of `count` elements."""
        if not count:
            return filled(e.type, (0,), np.float64)
        types = {name: array.element for name, array in by_name.items()}
        variables = {name: array.value for name, array in by_name.items()}
        frame = Frame(np.arange(count), types, variables)
        return evaluate_expression(self.machine, frame, e, all_rows(frame))

    def combine(self, op: Reducer, left: Value, right: Value, count: int) -> Value:
        """``left op right`` element by element."""
        if isinstance(op, nodes.Function):
            result = functions.run(self.machine, op, [left, right], np.arange(count)).result
            assert result is not None
            return result
        numpy: Any = op.numpy
        return combined(
            lambda a, b: Cell(np.asarray(numpy(a.data, b.data), a.data.dtype)), left, right
        )


def taken(array: ArrayValue, rows: AnyArray, shape: Shape) -> ArrayValue:
    """The elements of `array` at `rows`, which are row-major numbers."""
    flat = rows.reshape(-1)
    return ArrayValue(array.element, shape, mapped(lambda c: Cell(c.data[flat]), array.value))


def put(target: ArrayValue, rows: Any, source: ArrayValue) -> None:
    """Replaces the elements of `target` at `rows` by those of `source`, in place."""
    for base, new in zip(cells(target.value), cells(source.value), strict=True):
        base.data[rows] = new.data


def numbers(shape: Shape) -> AnyArray:
    """The row-major number of each element."""
    return np.arange(prod(shape)).reshape(shape)


def ints(data: AnyArray) -> ArrayValue:
    return ArrayValue(INT, data.shape, Cell(data.reshape(-1).astype(np.int32)))
