"""A graph -> the graphs of its gradients and tangents, kept for as long as they are in use.

Invariant: those of one kernel call are one node, and need nothing of the rules for functions on
arrays, which a program that only calls kernels does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from shaderad.ir.arrays import Graph, KernelCall, KernelPull, KernelPush, Value
from shaderad.ir.prints import silent_graph
from shaderad.ir.types import is_differentiable

if TYPE_CHECKING:
    from shaderad.ir.nodes import Kernel

Flags = tuple[bool, ...]


def pulled(
    graph: Graph,
    wanted: Flags,
    given: Flags,
    *,
    with_outputs: bool = False,
    zero_wins: bool = False,
) -> Graph:
    """Gradients of the inputs `wanted`, for cotangents of the outputs `given`.

    Takes the inputs of `graph`, then the cotangents. `zero_wins`: True if zeros among them suppress
    NaN.
    """
    key = (pulled, wanted, given, with_outputs, zero_wins)
    return _kept(graph, key, lambda: _pulled(graph, wanted, given, with_outputs, zero_wins))


def _pulled(
    graph: Graph, wanted: Flags, given: Flags, with_outputs: bool, zero_wins: bool
) -> Graph:
    if graph.is_built:
        return cast("Any", graph).pulled(wanted, given, with_outputs=with_outputs)
    call = only_call(graph)
    if call is not None:
        bars = _like(_selected(graph.outputs, given))
        node = _pull(call, wanted, given, bars)
        outputs = graph.outputs if with_outputs else ()
        return Graph((*graph.inputs, *bars), (*outputs, *node.results))
    # Imported here: see the invariant above.
    from shaderad.ir.building import or_zeros
    from shaderad.rules.arrays import LinearisedGraph
    from shaderad.rules.arrays.subgraphs import kept

    linear = LinearisedGraph(graph, wanted)
    bars = [Value(v.type) if flag else None for v, flag in zip(graph.outputs, given, strict=True)]
    pulled_bars = linear.pull(bars, graph.outputs if zero_wins else ())
    gradients = [
        or_zeros(bar, v)
        for bar, v, flag in zip(pulled_bars, graph.inputs, wanted, strict=True)
        if flag
    ]
    outputs = linear.outputs if with_outputs else ()
    return Graph((*graph.inputs, *kept(bars)), (*outputs, *gradients))


def pushed(
    graph: Graph, given: Flags, *, with_outputs: bool = False, of_all: bool = False
) -> Graph:
    """Tangents of the outputs that hold floats, for tangents of the inputs `given`.

    Takes the inputs of `graph`, then the tangents. `of_all`: True for tangents of all outputs.
    """
    key = (pushed, given, with_outputs, of_all)
    return _kept(graph, key, lambda: _pushed(graph, given, with_outputs, of_all))


def _pushed(graph: Graph, given: Flags, with_outputs: bool, of_all: bool) -> Graph:
    if graph.is_built:
        return cast("Any", graph).pushed(given, with_outputs=with_outputs)
    outputs = graph.outputs if with_outputs else ()
    call = only_call(graph)
    if call is not None and not of_all:
        dots = _like(_selected(graph.inputs, given))
        node = KernelPush(
            operands=(*call.operands, *dots),
            call=call,
            derivative_names=tuple(_selected(call.names, given)),
            wanted=tuple(name for name, t in call.written if is_differentiable(t.element)),
            span=call.span,
        )
        return Graph((*graph.inputs, *dots), (*outputs, *node.results))
    # Imported here: see the invariant above.
    from shaderad.ir.building import or_zeros
    from shaderad.rules.arrays import push
    from shaderad.rules.arrays.subgraphs import kept

    dots = [Value(v.type) if flag else None for v, flag in zip(graph.inputs, given, strict=True)]
    moved = [
        or_zeros(dot, v)
        for dot, v in zip(push(graph, dots), graph.outputs, strict=True)
        if of_all or is_differentiable(v.element)
    ]
    return Graph((*graph.inputs, *kept(dots)), (*outputs, *moved))


def summed_pull(graph: Graph, wanted: Flags, given: Flags) -> Graph:
    """Gradients of a kernel call that are added in place to arrays, which follow the cotangents."""
    return _kept(graph, (summed_pull, wanted, given), lambda: _summed(graph, wanted, given))


def _summed(graph: Graph, wanted: Flags, given: Flags) -> Graph:
    call = only_call(graph)
    assert call is not None
    bars, totals = _like(_selected(graph.outputs, given)), _like(_selected(graph.inputs, wanted))
    node = _pull(call, wanted, given, bars, totals)
    return Graph((*graph.inputs, *bars, *totals), node.results)


def _kept(graph: Graph, key: Hashable, make: Callable[[], Graph]) -> Graph:
    """A graph made of `graph`, made once."""
    derived = graph.derived.get(key)
    if derived is None:
        derived = graph.derived[key] = make()
    return derived


def silenced(graph: Graph) -> Graph:
    """`graph` for derivatives, which print nothing."""
    return _kept(graph, silenced, lambda: silent_graph(graph))


def only_call(graph: Graph) -> KernelCall | None:
    """The kernel call that is all of a graph."""
    if len(graph.nodes) != 1 or graph.is_built:
        return None
    (node,) = graph.nodes
    if not isinstance(node, KernelCall):
        return None
    return node if (graph.inputs, graph.outputs) == (node.operands, node.results) else None


def kernels_of(graph: Graph) -> Sequence[Kernel]:
    """The kernels that a graph calls."""
    return [node.kernel for node in graph.nodes if isinstance(node, KernelCall)]


def _pull(
    call: KernelCall,
    wanted: Flags,
    given: Flags,
    bars: Sequence[Value],
    totals: Sequence[Value] = (),
) -> KernelPull:
    return KernelPull(
        operands=(*call.operands, *bars, *totals),
        call=call,
        wanted=tuple(_selected(call.names, wanted)),
        derivative_names=tuple(_selected([name for name, _ in call.written], given)),
        accumulates=bool(totals),
        span=call.span,
    )


def _selected(items: Iterable[Any], flags: Flags) -> list[Any]:
    return [item for item, flag in zip(items, flags, strict=False) if flag]


def _like(values: Sequence[Value]) -> list[Value]:
    """New inputs of the types of `values`."""
    return [Value(v.type) for v in values]
