"""What runs an array graph in NumPy holds: arrays, sizes, one machine for all expressions.

An array is a value whose rows are its elements in row-major order (see cells.py), with its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import AnyArray, Cell, Value, combined, filled, mapped
from shaderad.interpret.expressions import evaluate as evaluate_expression
from shaderad.interpret.forms import from_host
from shaderad.interpret.machine import Frame, Machine, all_rows
from shaderad.interpret.reports import Reports
from shaderad.interpret.tape import Tape
from shaderad.ir import arrays, nodes, sizes
from shaderad.ir.arrays import ArrayType, Graph, Reducer
from shaderad.ir.types import INT, Type

Shape = tuple[int, ...]
Rule = Callable[["Runner", Any, "list[Held]"], "Held | list[Held]"]
"""What a node makes of its operands."""


@dataclass(frozen=True, slots=True)
class Held:
    """An array while the graph runs."""

    element: Type
    shape: Shape
    value: Value


def _machine() -> Machine:
    return Machine(
        tape=Tape(is_recording=False), precision=np.float64, memory={},
        reports=Reports(), run=functions.run,
    )  # fmt: skip


@dataclass(slots=True)
class Runner:
    """Runs nodes; all share one machine, and so one list of reports."""

    sizes: Mapping[str, int]
    rules: Mapping[type[arrays.Node], Rule]
    machine: Machine = field(default_factory=_machine)

    def size(self, size: sizes.Size) -> int:
        return sizes.evaluate(size, self.sizes)

    def shape(self, shape: sizes.Shape) -> Shape:
        return tuple(map(self.size, shape))

    def from_host(self, data: Any, t: ArrayType) -> Held:
        shape = self.shape(t.shape)
        return Held(t.element, shape, from_host(data, t.element, shape, np.float64))

    def graph(self, graph: Graph, inputs: Sequence[Held]) -> list[Held]:
        known = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            given = [known[v] for v in node.operands]
            made = self.rules[type(node)](self, node, given)
            found = made if isinstance(made, list) else [made]
            for v, held in zip(node.results, found, strict=True):
                assert held.shape == self.shape(v.shape), f"{node}: {held.shape}, {v.type}"
                known[v] = held
        return [known[v] for v in graph.outputs]

    def filled(self, t: Type, shape: Shape, fill: Any = 0) -> Held:
        return Held(t, shape, filled(t, (prod(shape),), np.float64, fill))

    def expression(self, e: nodes.Expr, by_name: Mapping[str, Held], count: int) -> Value:
        """`e` for each of `count` elements."""
        if not count:
            return filled(e.type, (0,), np.float64)
        types = {name: held.element for name, held in by_name.items()}
        variables = {name: held.value for name, held in by_name.items()}
        frame = Frame(np.arange(count), types, variables)
        return evaluate_expression(self.machine, frame, e, all_rows(frame))

    def combine(self, op: Reducer, left: Value, right: Value, count: int) -> Value:
        """``left op right`` element by element."""
        if isinstance(op, nodes.Function):
            threads = np.arange(count)
            found = functions.run(self.machine, op, [left, right], threads).result
            assert found is not None
            return found
        numpy: Any = op.numpy
        return combined(
            lambda a, b: Cell(np.asarray(numpy(a.data, b.data), a.data.dtype)), left, right
        )


def taken(held: Held, rows: AnyArray, shape: Shape) -> Held:
    """The elements of `held` at `rows`, which are row-major numbers."""
    flat = rows.reshape(-1)
    return Held(held.element, shape, mapped(lambda c: Cell(c.data[flat]), held.value))


def numbers(shape: Shape) -> AnyArray:
    """The row-major number of each element."""
    return np.arange(prod(shape)).reshape(shape)


def ints(data: AnyArray) -> Held:
    return Held(INT, data.shape, Cell(data.reshape(-1).astype(np.int32)))
