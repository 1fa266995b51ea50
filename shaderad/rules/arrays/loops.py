"""Derivatives of loops over arrays: forward they carry tangents along; backward they run again
from the end, over the carries that the loop saved.

    forward    c[k+1], y[k] = body(k, c[k], z, x[k])             saves c[0], c[1], ..
    backward   c_bar[k], z_bar, x_bar[k] += pull(body at k, c[k])(c_bar[k+1], y_bar[k])

The derivative of a loop is a loop, so it has derivatives itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from shaderad.ir import arrays
from shaderad.ir.arrays import ArrayType, Graph, Loop, Value
from shaderad.ir.graph_prints import silent_graph
from shaderad.ir.types import INT
from shaderad.rules.arrays import building as b
from shaderad.rules.arrays.layout import Derivatives

K = ArrayType(INT, ())
T = TypeVar("T")


class Walks(Protocol):
    """Derivatives of whole graphs, of which bodies are some."""

    def push(self, graph: Graph, dots: Derivatives) -> Derivatives:
        """Tangents of the outputs, given those of the inputs."""
        ...

    def pull(self, graph: Graph, bars: Derivatives, wanted: Sequence[bool]) -> Derivatives:
        """Cotangents of the inputs, given those of the outputs."""
        ...

    def depends(self, graph: Graph, wanted: Sequence[bool]) -> Sequence[bool]:
        """Which outputs a derivative by the inputs `wanted` can flow to."""
        ...


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """What belongs to the operands of a loop, or to its body's inputs behind k."""

    carries: tuple[T, ...]
    constants: tuple[T, ...]
    xs: tuple[T, ...]


def parts_of(values: Sequence[T], node: Loop) -> Parts[T]:
    """`values`, one for each operand of `node`, by what that is."""
    first, second = node.carry_count, node.carry_count + node.constant_count
    return Parts(tuple(values[:first]), tuple(values[first:second]), tuple(values[second:]))


def fresh(values: Sequence[Value]) -> tuple[Value, ...]:
    """New inputs of a graph, of the types of `values`."""
    return tuple(Value(v.type) for v in values)


def kept(values: Derivatives) -> tuple[Value, ...]:
    return tuple(v for v in values if v is not None)


def only(values: Sequence[T], flags: Sequence[bool]) -> list[T]:
    """Those that are flagged."""
    return [v for v, one in zip(values, flags, strict=True) if one]


def instantiate(graph: Graph, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of `graph` for other inputs."""
    known = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        changed = arrays.with_operands(node, tuple(known.get(v, v) for v in node.operands))
        known |= zip(node.results, changed.results, strict=True)
    return tuple(known.get(v, v) for v in graph.outputs)


def active_carries(
    node: Loop | arrays.WhileLoop, wanted: Sequence[bool], walks: Walks
) -> list[bool]:
    """The carries that depend on the operands `wanted` in some iteration."""
    offset = 1 if isinstance(node, Loop) else 0
    active = [*wanted]
    while True:
        reached = walks.depends(node.body, [*[False] * offset, *active])
        found = [a or r for a, r in zip(active, reached, strict=False)][: node.carry_count]
        if found == active[: node.carry_count]:
            return found
        active[: node.carry_count] = found


# -- forward ----------------------------------------------------------------------------------


def push_loop(node: Loop, dots: Derivatives, walks: Walks) -> Derivatives:
    """The loop over carries, constants and xs, each followed by those tangents that are not 0."""
    is_given = [dot is not None for dot in dots]
    active = active_carries(node, is_given, walks)
    flags = [*active, *is_given[node.carry_count :]]
    k, *inputs = node.body.inputs
    inputs_dot = [
        Value(v.type) if is_moved else None for v, is_moved in zip(inputs, flags, strict=True)
    ]
    outputs_dot = list(walks.push(node.body, [None, *inputs_dot]))
    count = node.carry_count
    carries_dot = [
        or_zeros(dot, v)
        for dot, v, is_active in zip(outputs_dot, node.body.outputs, active, strict=False)
        if is_active
    ]
    full_dots = [
        or_zeros(dot, v) if moved else None
        for dot, v, moved in zip(dots, node.operands, flags, strict=True)
    ]
    body = Graph(
        (k, *_interleaved(inputs, inputs_dot, node)),
        (
            *node.body.outputs[:count],
            *carries_dot,
            *node.body.outputs[count:],
            *kept(outputs_dot[count:]),
        ),
    )
    made = replace(
        node,
        operands=_interleaved(node.operands, full_dots, node),
        body=silent_graph(body),
        carry_count=count + sum(active),
        constant_count=node.constant_count + sum(flags[count : count + node.constant_count]),
    )
    moved = iter((*made.results[count : made.carry_count],
                  *made.results[len(node.results) + sum(active) :]))  # fmt: skip
    has_dot = [*active, *(dot is not None for dot in outputs_dot[count:])]
    return [next(moved) if one else None for one in has_dot]


def _interleaved(values: Sequence[Value], dots: Derivatives, node: Loop) -> tuple[Value, ...]:
    """Carries, their tangents, constants, their tangents, xs, their tangents."""
    first, second = node.carry_count, node.carry_count + node.constant_count
    found: list[Value] = []
    for part in (slice(0, first), slice(first, second), slice(second, None)):
        found += [*values[part], *kept(dots[part])]
    return tuple(found)


def or_zeros(derivative: Value | None, like: Value) -> Value:
    return b.zeros(like.type) if derivative is None else derivative


# -- backward ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoopPullback:
    """A loop from its end, ready for the cotangents of its results."""

    node: Loop
    body: Graph
    """One iteration backward. In: k, the cotangents of carries, sums of those of constants;
    then constants; then states, xs and cotangents of ys. Out: the first two, and those of xs."""
    flags: tuple[bool, ...]
    """Which operands get a cotangent."""
    y_flags: tuple[bool, ...]
    """Which ys have one that matters."""
    constants: tuple[Value, ...]
    xs: tuple[Value, ...]

    def __call__(self, bars: Derivatives) -> Derivatives:
        node, count = self.node, self.node.carry_count
        flagged = parts_of(self.flags, node)
        carry_bars = wanted_or_zeros(bars, node.results, flagged.carries)
        y_bars = wanted_or_zeros(bars[count:], node.results[count:], self.y_flags)
        sums = [
            b.zeros(v.type)
            for v in only(parts_of(node.operands, node).constants, flagged.constants)
        ]
        made = Loop(
            operands=(*carry_bars, *sums, *self.constants, *self.xs, *y_bars),
            body=self.body,
            count=node.count,
            carry_count=len(carry_bars) + len(sums),
            constant_count=len(self.constants),
            is_reversed=not node.is_reversed,
            checkpoint=node.checkpoint,
            span=node.span,
        )
        found = iter(made.results)
        return [next(found) if one else None for one in self.flags]


def linearise_loop(node: Loop, wanted: Sequence[bool], walks: Walks) -> tuple[Loop, LoopPullback]:
    """The loop that also returns what its pullback reads of the carries, and the pullback."""
    count = node.carry_count
    flags = (*active_carries(node, wanted, walks), *wanted[count:])
    flagged = parts_of(flags, node)
    k, *inputs = node.body.inputs
    parts, given = parts_of(inputs, node), parts_of(node.operands, node)
    y_flags = tuple(walks.depends(node.body, [False, *flags])[count:])
    bars = like_flagged(node.body.outputs, (*flagged.carries, *y_flags))
    found = parts_of(walks.pull(node.body, bars, [False, *flags])[1:], node)
    sums = [Value(v.type) for v in only(parts.constants, flagged.constants)]
    outputs = (
        *wanted_or_zeros(found.carries, parts.carries, flagged.carries),
        *grown(sums, only(found.constants, flagged.constants)),
        *wanted_or_zeros(found.xs, parts.xs, flagged.xs),
    )
    read = read_by(outputs)
    constants, carries, xs = (
        [v for v in own if v in read] for own in (parts.constants, parts.carries, parts.xs)
    )
    saving = replace(node, body=Graph(node.body.inputs, (*node.body.outputs, *carries)))
    # What it computes of the primal it computes again.
    body = silent_graph(
        Graph(
            (k, *kept(bars[:count]), *sums, *constants, *carries, *xs, *kept(bars[count:])), outputs
        )
    )
    operand_of = dict(zip(inputs, (*given.carries, *given.constants, *given.xs), strict=True))
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
    """The cotangents of those flagged, zeros written out; any of the sequences may be longer."""
    return [or_zeros(bar, v) for bar, v, one in zip(bars, like, flags, strict=False) if one]


def like_flagged(values: Sequence[Value], flags: Sequence[bool]) -> list[Value | None]:
    """A new input for each value that is flagged."""
    return [Value(v.type) if one else None for v, one in zip(values, flags, strict=True)]


def grown(sums: Sequence[Value], bars: Derivatives) -> list[Value]:
    return [
        total if bar is None else b.add(total, bar) for total, bar in zip(sums, bars, strict=True)
    ]


def read_by(outputs: Sequence[Value]) -> set[Value]:
    """Every value that is read to compute `outputs`."""
    return {*outputs, *(v for node in arrays.needed_by(outputs) for v in node.operands)}
