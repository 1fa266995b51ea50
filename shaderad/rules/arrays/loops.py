"""Derivatives of loops over arrays: loops that carry tangents forward or cotangents backward.

    forward    c[k+1], y[k] = body(k, c[k], z, x[k])             saves c[0], c[1], ..
    backward   c_bar[k], z_bar, x_bar[k] += pull(body at k, c[k])(c_bar[k+1], y_bar[k])

The derivative of a loop is a loop, so it has derivatives itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from shaderad.ir import arrays
from shaderad.ir.arrays import ArrayType, Graph, Loop, Value
from shaderad.ir.prints import silent_graph
from shaderad.ir.types import INT
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives

K = ArrayType(INT, ())
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Walks:
    """The derivatives of whole graphs, passed to the rules of nodes with bodies."""

    push: Callable[[Graph, Derivatives], Derivatives]
    """(graph, tangents of its inputs) -> tangents of its outputs."""
    pull: Callable[[Graph, Derivatives, Sequence[bool]], Derivatives]
    """(graph, cotangents of its outputs, flags of inputs) -> cotangents of flagged inputs."""
    depends: Callable[[Graph, Sequence[bool]], Sequence[bool]]
    """(graph, flags of inputs) -> flags of the outputs that depend on a flagged input."""


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """One item per operand of a loop, or per input of its body after k."""

    carries: tuple[T, ...]
    constants: tuple[T, ...]
    xs: tuple[T, ...]


def parts_of(values: Sequence[T], node: Loop) -> Parts[T]:
    """Splits `values`, one per operand of `node`."""
    first, second = node.carry_count, node.carry_count + node.constant_count
    return Parts(tuple(values[:first]), tuple(values[first:second]), tuple(values[second:]))


def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
    """New graph inputs with the types of `values`."""
    return tuple(Value(v.type) for v in values)


def kept(values: Derivatives) -> tuple[Value, ...]:
    return tuple(v for v in values if v is not None)


def selected(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    """The flagged values."""
    return [v for v, is_flagged in zip(values, flags, strict=True) if is_flagged]


def spread(values: Iterable[T], flags: Iterable[bool]) -> list[T | None]:
    """The inverse of `selected`: the next value for each flag that is set, else `None`."""
    remaining = iter(values)
    return [next(remaining) if is_flagged else None for is_flagged in flags]


def instantiate(graph: Graph, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of `graph` for other inputs."""
    new = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        copy = arrays.with_operands(node, tuple(new.get(v, v) for v in node.operands))
        new |= zip(node.results, copy.results, strict=True)
    return tuple(new.get(v, v) for v in graph.outputs)


def active_carries(
    node: Loop | arrays.WhileLoop, wanted: Sequence[bool], walks: Walks
) -> list[bool]:
    """Flags of the carries that depend on a `wanted` operand in some iteration."""
    offset = 1 if isinstance(node, Loop) else 0
    active = [*wanted]
    while True:
        reached = walks.depends(node.body, [*[False] * offset, *active])
        carries = [a or r for a, r in zip(active, reached, strict=False)][: node.carry_count]
        if carries == active[: node.carry_count]:
            return carries
        active[: node.carry_count] = carries


# -- forward ----------------------------------------------------------------------------------


def push_loop(node: Loop, dots: Derivatives, walks: Walks) -> Derivatives:
    """The loop over carries, constants and xs, each group followed by its tangents."""
    is_given = [dot is not None for dot in dots]
    active = active_carries(node, is_given, walks)
    flags = [*active, *is_given[node.carry_count :]]
    k, *inputs = node.body.inputs
    inputs_dot = flagged_inputs(inputs, flags)
    outputs_dot = list(walks.push(node.body, [None, *inputs_dot]))
    count = node.carry_count
    carries_dot = wanted_or_zeros(outputs_dot, node.body.outputs, active)
    operands_dot = spread(wanted_or_zeros(dots, node.operands, flags), flags)
    body = Graph(
        (k, *_interleaved(inputs, inputs_dot, node)),
        (
            *node.body.outputs[:count],
            *carries_dot,
            *node.body.outputs[count:],
            *kept(outputs_dot[count:]),
        ),
    )
    pushed = replace(
        node,
        operands=_interleaved(node.operands, operands_dot, node),
        body=silent_graph(body),
        carry_count=count + sum(active),
        constant_count=node.constant_count + sum(flags[count : count + node.constant_count]),
    )
    results_dot = (*pushed.results[count : pushed.carry_count],
                   *pushed.results[len(node.results) + sum(active) :])  # fmt: skip
    has_dot = [*active, *(dot is not None for dot in outputs_dot[count:])]
    return spread(results_dot, has_dot)


def _interleaved(values: Sequence[Value], dots: Derivatives, node: Loop) -> tuple[Value, ...]:
    """Carries, their tangents, constants, their tangents, xs, their tangents."""
    primals, tangents = parts_of(values, node), parts_of(dots, node)
    return (
        *(*primals.carries, *kept(tangents.carries)),
        *(*primals.constants, *kept(tangents.constants)),
        *(*primals.xs, *kept(tangents.xs)),
    )


def or_zeros(derivative: Value | None, like: Value) -> Value:
    return b.zeros(like.type) if derivative is None else derivative


# -- backward ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoopPullback:
    """The pullback of a loop: a loop in the opposite direction."""

    node: Loop
    body: Graph
    """One backward iteration. In: k, cotangents of carries, summed cotangents of constants;
    constants; saved carries, xs, cotangents of ys. Out: the cotangents of carries, constants, xs.
    """
    flags: tuple[bool, ...]
    """Flags of the operands that get a cotangent."""
    y_flags: tuple[bool, ...]
    """Flags of the ys whose cotangents are used."""
    constants: tuple[Value, ...]
    xs: tuple[Value, ...]

    def __call__(self, bars: Derivatives) -> Derivatives:
        node, count = self.node, self.node.carry_count
        flagged = parts_of(self.flags, node)
        carry_bars = wanted_or_zeros(bars, node.results, flagged.carries)
        y_bars = wanted_or_zeros(bars[count:], node.results[count:], self.y_flags)
        sums = [
            b.zeros(v.type)
            for v in selected(parts_of(node.operands, node).constants, flagged.constants)
        ]
        backward = Loop(
            operands=(*carry_bars, *sums, *self.constants, *self.xs, *y_bars),
            body=self.body,
            count=node.count,
            carry_count=len(carry_bars) + len(sums),
            constant_count=len(self.constants),
            is_reversed=not node.is_reversed,
            checkpoint=node.checkpoint,
            span=node.span,
        )
        return spread(backward.results, self.flags)


def linearise_loop(node: Loop, wanted: Sequence[bool], walks: Walks) -> tuple[Loop, LoopPullback]:
    """The loop that also returns the carries that its pullback reads, and the pullback."""
    count = node.carry_count
    flags = (*active_carries(node, wanted, walks), *wanted[count:])
    flagged = parts_of(flags, node)
    k, *inputs = node.body.inputs
    parts = parts_of(inputs, node)
    y_flags = tuple(walks.depends(node.body, [False, *flags])[count:])
    bars = flagged_inputs(node.body.outputs, (*flagged.carries, *y_flags))
    pulled = parts_of(walks.pull(node.body, bars, [False, *flags])[1:], node)
    sums = [Value(v.type) for v in selected(parts.constants, flagged.constants)]
    outputs = (
        *wanted_or_zeros(pulled.carries, parts.carries, flagged.carries),
        *accumulated(sums, selected(pulled.constants, flagged.constants)),
        *wanted_or_zeros(pulled.xs, parts.xs, flagged.xs),
    )
    read = read_by(outputs)
    constants, carries, xs = (
        [v for v in group if v in read] for group in (parts.constants, parts.carries, parts.xs)
    )
    saving = replace(node, body=Graph(node.body.inputs, (*node.body.outputs, *carries)))
    # Silent, because it recomputes parts of the primal.
    body = silent_graph(
        Graph(
            (k, *kept(bars[:count]), *sums, *constants, *carries, *xs, *kept(bars[count:])), outputs
        )
    )
    operand_of = dict(zip(inputs, node.operands, strict=True))
    pullback = LoopPullback(
        node=saving,
        body=body,
        flags=flags,
        y_flags=y_flags,
        constants=tuple(operand_of[v] for v in constants),
        xs=(*saving.results[len(node.results) :], *(operand_of[v] for v in xs)),
    )
    return saving, pullback


def wanted_or_zeros(bars: Derivatives, like: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    """The flagged derivatives, zeros written out; surplus items of any sequence are ignored."""
    triples = zip(bars, like, flags, strict=False)
    return [or_zeros(bar, v) for bar, v, is_flagged in triples if is_flagged]


def flagged_inputs(values: Sequence[Value], flags: Sequence[bool]) -> list[Value | None]:
    """A new graph input for each flagged value, else `None`."""
    return spread(fresh(selected(values, flags)), flags)


def accumulated(sums: Sequence[Value], bars: Derivatives) -> list[Value]:
    return [
        total if bar is None else b.add(total, bar) for total, bar in zip(sums, bars, strict=True)
    ]


def read_by(outputs: Sequence[Value]) -> set[Value]:
    """Every value that the computation of `outputs` reads."""
    return {*outputs, *(v for node in arrays.needed_by(outputs) for v in node.operands)}
