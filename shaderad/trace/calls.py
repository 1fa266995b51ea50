"""A Python function on arrays -> its graph, traced once for each form of its arguments.

Tracing depends only on the form: element types, ranks, which extents are equal and which are 1, and
every argument that is not an array. Sizes are symbols, so that one graph serves every size.
Invariant: a graph is reused only if every decision that tracing made from sizes still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.containers import register
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Graph
from shaderad.ir.types import Type
from shaderad.trace.traced import GraphTrace, TracedArray
from shaderad.trace.varying import NO_GROUPS, Groups


@dataclass(frozen=True, slots=True)
class Placeholder:
    """The position of an array among arguments or results."""

    position: int
    vector: Type | None = None
    """The host's vector type, if the array was given as one."""
    number: type[Any] | Type | None = field(default=None, compare=False)
    """The `kind` of a number of the host that was given in place of an array."""


register(Placeholder, None)


@dataclass(frozen=True, slots=True)
class Form:
    """The properties of arguments on which a trace depends."""

    types: tuple[ArrayType, ...]
    size_by_name: Mapping[str, int]
    has_named_sizes: bool = True
    """True if users named any of the sizes."""

    @property
    def key(self) -> Hashable:
        return tuple((t.element, t.shape) for t in self.types)


def form_of(
    outlines: Sequence[tuple[Type, tuple[int, ...]]], taken: Container[str] = frozenset()
) -> Form:
    """The form of arrays with these element types and shapes.

    Each extent except 1 gets a symbol, which equal extents share. `taken` are the names that the
    user gave to other sizes.
    """
    name_by_extent: dict[int, str] = {}
    free = (name for name in map("n{}".format, count()) if name not in taken)

    def extent(number: int) -> sizes.Size:
        if number == 1:
            return 1
        if number not in name_by_extent:
            name_by_extent[number] = next(free)
        return sizes.symbol(name_by_extent[number])

    types = tuple(ArrayType(element, tuple(map(extent, shape))) for element, shape in outlines)
    return Form(types, {name: number for number, name in name_by_extent.items()},
                has_named_sizes=False)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """The graph of a function for arguments of one form."""

    graph: Graph
    out: Any
    """The result, with a `Placeholder` for each array and a symbolic size for each size."""
    captured: tuple[Any, ...]
    """Values of the graph inputs that follow the arguments."""
    constants: tuple[Array, ...]
    """Arrays that the function created while it was traced."""
    looked_at: tuple[Array, ...]
    """Device arrays whose content the function read on the host."""
    numbers: tuple[float, ...]
    """The float numbers that the function used: see `trace/varying.py`."""
    equal_sizes: tuple[tuple[sizes.Size, sizes.Size], ...]
    positive_sizes: tuple[sizes.Size, ...]

    def serves(self, size_by_name: Mapping[str, int]) -> bool:
        """True if every decision that tracing made from sizes holds for these."""
        return all(
            sizes.evaluate(a, size_by_name) == sizes.evaluate(b, size_by_name)
            for a, b in self.equal_sizes
        ) and all(sizes.evaluate(size, size_by_name) > 0 for size in self.positive_sizes)

    def result(self, arrays: Sequence[Array], size_by_name: Mapping[str, int]) -> Any:
        """Arrays in the structure of the function's result."""

        def filled(leaf: Any) -> Any:
            if isinstance(leaf, Placeholder):
                return arrays[leaf.position]
            if isinstance(leaf, TracedSize):
                return sizes.evaluate(leaf.size, size_by_name)
            return leaf

        out = self.out  # Most functions have one array as their result.
        return filled(out) if isinstance(out, Placeholder) else trees.mapped(filled, out)


def traced_variant(
    function: Callable[..., Any],
    form: Form,
    groups: Groups = NO_GROUPS,
    *,
    holds_vectors: bool = False,
) -> TracedFunction:
    """Runs `function` on traced arrays of this form.

    Args:
        function: The function to trace.
        form: The form of its arguments.
        groups: The numbers that become inputs.
        holds_vectors: Makes vectors such as ``float3(1, 0, 0)`` constants of the graph.
    """
    trace = GraphTrace(dict(form.size_by_name))
    trace.groups = groups
    trace.holds_vectors = holds_vectors
    trace.has_named_sizes = form.has_named_sizes
    arguments = [trace.argument(t, None) for t in form.types]
    out = trace.run(function, *arguments)
    graph, placed = graph_of(trace, out)
    return TracedFunction(
        graph=graph,
        out=placed,
        captured=tuple(trace.given[len(arguments) :]),
        constants=tuple(trace.constants),
        looked_at=tuple(trace.looked_at),
        numbers=tuple(trace.numbers),
        equal_sizes=tuple(dict.fromkeys(trace.equal_sizes)),
        positive_sizes=tuple(dict.fromkeys(trace.positive_sizes)),
    )


def graph_of(trace: GraphTrace, out: Any) -> tuple[Graph, Any]:
    """The graph of a result, and the result with a `Placeholder` for each array."""
    outputs: list[Any] = []

    def placed(leaf: Any) -> Any:
        if not isinstance(leaf, Array):
            _check_result(leaf)
            return leaf
        outputs.append(trace.value_of(leaf))
        return Placeholder(len(outputs) - 1)

    skeleton = trees.mapped(placed, out)
    return trace.graph([*outputs, *(x.value for x in trace.effects)]), skeleton


def _check_result(leaf: Any) -> None:
    """Raises SR0430 for an object that holds arrays of the trace, which would never be computed."""
    for name, value in getattr(leaf, "__dict__", {}).items():
        if any(isinstance(part, TracedArray) for part in trees.leaves(value)):
            raise error("SR0430", user_span(), found=type(leaf).__name__, name=name)
