"""A graph at its arguments: its result, its pullback and its tangents are graphs that run.

Invariant: each of them is computed when it is asked for, in one submission with what else is
asked for at that time; under another transform it is a step of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, vector_of
from shaderad.arrays.tape import When, trace_of
from shaderad.device.devices import Device
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.differentiate.forms import (
    accumulated,
    by_levels,
    by_parts,
    check_keywords,
    cotangents_of,
    tangents_of,
)
from shaderad.execute.bindable_graphs import BoundGraph
from shaderad.execute.call import device_of
from shaderad.execute.convert import recorded_form
from shaderad.execute.run_graph import GraphStep
from shaderad.ir import types
from shaderad.ir.arrays import ArrayType
from shaderad.ir.nodes import Kernel
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


@dataclass(eq=False, slots=True)
class GraphAt:
    """A graph at its operands."""

    variant: TracedFunction
    arguments: Arguments
    """All arguments, in one tuple: the positional ones, then keywords and defaults."""
    args: Sequence[Any]
    """The positional arguments as they were given."""
    run: GraphStep
    out: Any

    @property
    def kernels(self) -> Sequence[Kernel]:
        return self.run.kernels

    def is_differentiable(self, position: int) -> bool:
        return any(map(self.run.is_active, self._positions(position)))

    def pull(self, out_bar: Any, positions: Sequence[int], into: Sequence[Any] | None) -> list[Any]:
        run = self.run
        asked = {k for position in positions for k in self._positions(position)}
        flags = tuple([k in asked and run.is_active(k) for k in range(len(run.operands))])
        computed = run.gradients(flags, self._bars(out_bar))
        order = [k for k, flag in enumerate(flags) if flag]
        gradients = dict(zip(order, computed, strict=True))
        formed = [self._form(position, gradients) for position in positions]
        return formed if into is None else accumulated(formed, into)

    def push(self, tangents: Sequence[Any]) -> Any:
        by_result = self.run.tangents(self._dots(tangents))
        leaves = trees.leaves(self.variant.out)
        shown = [by_result[x.position] if isinstance(x, Placeholder) else None for x in leaves]
        return tangents_of(self.out, shown)

    def _positions(self, position: int) -> Iterator[int]:
        """The positions of the operands of one argument."""
        for leaf in trees.leaves(self.arguments.skeleton[position]):
            if isinstance(leaf, Placeholder):
                yield leaf.position

    def _bars(self, out_bar: Any) -> list[Array | None]:
        """A cotangent, or nothing, for each output of the graph."""
        found: list[Array | None] = [None] * len(self.run.results)
        leaves = trees.leaves(self.variant.out)
        for leaf, bar in zip(leaves, cotangents_of(self.out, out_bar), strict=True):
            if isinstance(leaf, Placeholder):
                found[leaf.position] = bar
        return found

    def _dots(self, tangents: Sequence[Any]) -> list[Array | None]:
        """A tangent, or nothing, for each operand."""
        filled = self.arguments.filled(self.run.operands)
        found: list[Array | None] = [None] * len(self.run.operands)
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
        return by_levels(trees.zeros_for_none(given, _in_structs(found, given)))


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
    sizes = bound.form.size_by_name
    run = GraphStep(bound.variant.graph, bound.operands, sizes, bound.device, when)
    tape = trace_of(run.operands)
    run.start(is_now=tape is not None)
    if tape is not None:
        tape.record(run)
    return GraphAt(
        bound.variant, bound.arguments, args, run, bound.variant.result(run.results, sizes)
    )


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
