"""A graph at its arguments: its result, its pullback and its tangents are graphs that run.

Invariant: each of them is computed when it is asked for, in one submission with what else is
asked for at that time; under another transform it is a step of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, vector_of
from shaderad.arrays.tape import When, trace_of
from shaderad.device.devices import Device
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.differentiate.forms import (
    accumulated,
    by_parts,
    check_keywords,
    cotangents_of,
    tangents_of,
)
from shaderad.execute.bindable_graphs import BoundGraph
from shaderad.execute.call import device_of
from shaderad.execute.convert import recorded_form
from shaderad.execute.run_graph import kernels_of, pulled, pushed, run_graph
from shaderad.ir import sizes, types
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Kernel
from shaderad.ir.prints import silent_graph
from shaderad.language.signatures import Launchable
from shaderad.rules.equality import shared_graph
from shaderad.runtime import buffers
from shaderad.trace.arguments import (
    Arguments,
    array_of_captured,
    array_of_data,
    array_of_number,
    taken_apart,
    typed_arguments,
)
from shaderad.trace.calls import Form, Placeholder, TracedFunction, traced_variant
from shaderad.trace.primitives import as_number


@dataclass(eq=False)
class GraphAt:
    """A graph at its operands."""

    variant: TracedFunction
    arguments: Arguments
    """All arguments, in one tuple: the positional ones, then keywords and defaults."""
    args: Sequence[Any]
    """The positional arguments as they were given."""
    operands: list[Array]
    size_by_name: Mapping[str, int]
    device: Device
    when: When
    out: Any = None
    _results: list[Array] = field(default_factory=list[Array])

    @property
    def graph(self) -> Graph:
        return self.variant.graph

    @property
    def _again(self) -> Graph:
        """The graph for derivatives."""
        return silent_graph(self.graph)

    @property
    def kernels(self) -> Sequence[Kernel]:
        return kernels_of(self.graph)

    def start(self) -> None:
        """Makes the results, which wait until someone looks at them."""
        if trace_of(self.operands) is None:
            self._results = [self._pending(v) for v in self.graph.outputs]
        else:
            self._results = self._ran(self.graph, self.operands)
        if self._again is not self.graph and self.when is not When.NEVER:
            self.run()  # Its kernels print, once; its derivatives do not.
        self.out = self.variant.result(self._results, self.size_by_name)

    def run(self) -> None:
        """Computes the results alone, when one is looked at."""
        if any(one.is_pending for one in self._results):
            self._fill_in(self._ran(self.graph, self.operands))

    def is_differentiable(self, position: int) -> bool:
        return any(self._is_active(k) for k in self._positions(position))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        wanted = {k for position in positions for k in self._positions(position)}
        active = tuple(k in wanted and self._is_active(k) for k in range(len(self.operands)))
        bars = self._bars(out_bar)
        given = tuple(bar is not None for bar in bars)
        with_outputs = self._is_waiting()
        graph = pulled(self._again, active, given, with_outputs=with_outputs)
        found = self._with_results(graph, [x for x in bars if x is not None], with_outputs)
        order = [k for k, one in enumerate(active) if one]
        gradients = dict(zip(order, found, strict=True))
        made = [self._form(position, gradients) for position in positions]
        return made if into is None else accumulated(made, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        dots = self._dots(tangents)
        given = tuple(dot is not None for dot in dots)
        with_outputs = self._is_waiting()
        graph = pushed(self._again, given, with_outputs=with_outputs)
        moved = iter(self._with_results(graph, [x for x in dots if x is not None], with_outputs))
        by_result = [
            next(moved) if types.is_differentiable(v.element) else None for v in self.graph.outputs
        ]
        shown: list[Array | None] = []

        def collect(leaf: Any) -> None:
            if isinstance(leaf, Placeholder):
                shown.append(by_result[leaf.position])
            else:
                shown.append(None)

        trees.mapped(collect, self.variant.out)
        return tangents_of(self.out, shown)

    def _is_waiting(self) -> bool:
        """True if the results are to be computed with the next derivative."""
        return self.when is not When.IF_NEEDED and any(one.is_pending for one in self._results)

    def _with_results(
        self, graph: Graph, given: Sequence[Array], with_outputs: bool
    ) -> list[Array]:
        found = self._ran(graph, [*self.operands, *given])
        count = len(self._results) if with_outputs else 0
        self._fill_in(found[:count])
        return found[count:]

    def _ran(self, graph: Graph, operands: Sequence[Array]) -> list[Array]:
        return run_graph(graph, operands, self.size_by_name, self.device)

    def _pending(self, v: Value) -> Array:
        shape = tuple(sizes.evaluate(extent, self.size_by_name) for extent in v.shape)
        return Array(self.device, v.element, shape, None, pending=self.run)

    def _fill_in(self, found: Sequence[Array]) -> None:
        for one, computed in zip(self._results, found, strict=False):
            one.fill_in(computed.buffer, computed.offset)

    def _is_active(self, k: int) -> bool:
        return types.is_differentiable(self.graph.inputs[k].element)

    def _positions(self, position: int) -> Iterator[int]:
        """The positions of the operands of one argument."""
        for leaf in trees.leaves(self.arguments.skeleton[position]):
            if isinstance(leaf, Placeholder):
                yield leaf.position

    def _bars(self, out_bar: Any) -> list[Array | None]:
        """A cotangent, or nothing, for each output of the graph."""
        found: list[Array | None] = [None] * len(self.graph.outputs)
        leaves = trees.leaves(self.variant.out)
        for leaf, bar in zip(leaves, cotangents_of(self.out, out_bar), strict=True):
            if isinstance(leaf, Placeholder):
                found[leaf.position] = bar
        return found

    def _dots(self, tangents: Sequence[Any]) -> list[Array | None]:
        """A tangent, or nothing, for each operand."""
        filled = self.arguments.filled(self.operands)
        found: list[Array | None] = [None] * len(self.operands)
        # Defaults and keywords stand behind the positional arguments, and do not move.
        fixed = [None] * (len(filled) - len(tangents))
        pairs = zip(self.arguments.skeleton, filled, [*tangents, *fixed], strict=True)
        for skeleton, lifted, tangent in pairs:
            leaves = cotangents_of(lifted, tangent, "tangent")
            for leaf, dot in zip(trees.leaves(skeleton), leaves, strict=True):
                if isinstance(leaf, Placeholder):
                    found[leaf.position] = dot
        return found

    def _form(self, position: int, gradients: Mapping[int, Array]) -> Any:
        """The gradient of one argument, in its form."""
        if not self.is_differentiable(position):
            return None

        def formed(leaf: Any, given: Any) -> Any:
            if not isinstance(leaf, Placeholder) or leaf.position not in gradients:
                return None
            return _in_form_given(gradients[leaf.position], given)

        skeleton = self.arguments.skeleton[position]
        given = self.args[position]
        found = trees.mapped(formed, skeleton, given, name="argument")
        return trees.zeros_for_none(given, _in_structs(found, given))


def _in_structs(gradient: Any, given: Any) -> Any:
    """`gradient` with structs where the argument has them: builds know them as dicts."""
    parts = trees.children(given)
    if parts is None or trees.children(gradient) is None:
        return gradient
    columns = trees.matching(given, parts, gradient, "argument")
    inner = {key: _in_structs(columns[key], part) for key, part in parts.items()}
    return trees.built_like(given, inner)


def _in_form_given(gradient: Array, given: Any) -> Any:
    """A gradient as the array, number, NumPy array or tuple that it belongs to."""
    if isinstance(given, Array):
        return recorded_form(gradient, given.element, given.shape)
    base, axes = buffers.base_of(gradient.element), buffers.element_axes(gradient.element)
    whole = recorded_form(gradient, base, (*gradient.shape, *axes)).noted_as(vector_of(given))
    return whole if gradient.shape else by_parts(whole, given, gradient.element)


def graph_at(bound: BoundGraph, args: Sequence[Any], *, when: When) -> GraphAt:
    """A graph at its arguments; nothing runs before someone looks at a result."""
    found = GraphAt(
        variant=bound.variant,
        arguments=bound.arguments,
        args=args,
        operands=bound.operands,
        size_by_name=bound.form.size_by_name,
        device=bound.device,
        when=when,
    )
    found.start()
    return found


@dataclass(frozen=True, slots=True)
class Bound:
    """A function traced for one call: sizes are numbers."""

    variant: TracedFunction
    arguments: Arguments
    form: Form
    device: Device

    @property
    def operands(self) -> list[Array]:
        captured = (array_of_captured(x, self.device) for x in self.variant.captured)
        return [*self.arguments.arrays, *captured]


def function_as_graph(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], *, when: When
) -> GraphAt:
    """Any function at its arguments, traced as a whole."""
    check_keywords(keywords)
    return graph_at(bound_once(function, args, keywords), args, when=when)


def bound_once(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Bound:
    """Any function at its arguments, traced as a whole."""
    device = device_of(keywords.get("device"), trees.leaves(tuple(args)))
    if isinstance(function, Launchable):
        args = typed_arguments(function, args, device)

    def lifted(leaf: Any) -> Array | None:
        is_number = isinstance(as_number(leaf), float)
        found = array_of_number(leaf, device) if is_number else None
        found = found or array_of_data(leaf, device)
        return found if found is not None and types.is_differentiable(found.element) else None

    arguments = taken_apart(tuple(args), lifted)
    form = Form(tuple(ArrayType(x.element, x.shape) for x in arguments.arrays), {})

    def called(*arrays: Array) -> Any:
        return fitting_call(function, *arguments.filled(arrays), **keywords)

    variant = traced_variant(called, form)
    variant = replace(variant, graph=shared_graph(variant.graph))
    return Bound(variant, arguments, form, device)
