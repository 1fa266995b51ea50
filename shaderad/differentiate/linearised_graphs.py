"""A graph at its arguments: its result, its pullback and its tangents are graphs that run.

Invariant: each of them is computed when it is asked for, in one submission with what else is
asked for at that time; under another transform it is a step of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When, trace_of
from shaderad.arrays.trees import Structure
from shaderad.calls.arguments import (
    Arguments,
    array_of_captured,
    array_of_data,
    array_of_number,
    taken_apart,
    typed_arguments,
)
from shaderad.calls.bindable_graphs import BoundGraph
from shaderad.calls.call import device_of
from shaderad.calls.run_graph import GraphStep
from shaderad.device.devices import Device
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.differentiate.forms import check_keywords
from shaderad.differentiate.leaves import Input, Linearised
from shaderad.differentiate.step_core import StepCore
from shaderad.ir import types
from shaderad.ir.arrays import ArrayType
from shaderad.ir.equality import shared_graph
from shaderad.language.signatures import Launchable
from shaderad.trace.calls import Form, Placeholder, TracedFunction, traced_variant
from shaderad.trace.primitives import as_number


def graph_at(bound: BoundGraph, args: Sequence[Any], *, when: When) -> Linearised:
    """A graph at its arguments; nothing runs before someone looks at a result."""
    sizes = bound.form.size_by_name
    run = GraphStep(bound.variant.graph, bound.operands, sizes, bound.device, when)
    tape = trace_of(run.operands)
    run.start(is_now=tape is not None)
    if tape is not None:
        tape.record(run)
    inputs: list[Input] = []
    operands: list[int | None] = []
    structures: list[Structure] = []
    # Keywords and defaults stand behind the positional arguments, and do not move.
    for argument, (structure, leaves) in zip(args, bound.arguments.each(), strict=False):
        given_leaves = structure.matched(argument, "argument")
        structures.append(structure.like(argument))
        for leaf, given in zip(leaves, given_leaves, strict=True):
            k = leaf.position if isinstance(leaf, Placeholder) else None
            is_active = k is not None and run.is_active(k)
            operands.append(k if is_active else None)
            inputs.append(Input(given, run.operands[k] if k is not None and is_active else None))
    shown = trees.leaves(bound.variant.out)
    results = [leaf.position if isinstance(leaf, Placeholder) else None for leaf in shown]
    out = bound.variant.result(run.results, sizes)
    return Linearised(StepCore(run, operands, results), inputs, structures, out)


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
) -> Linearised:
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

    arguments = taken_apart(*trees.flatten(tuple(args)), lifted)
    form = Form(tuple(ArrayType(x.element, x.shape) for x in arguments.arrays), {})

    def called(*arrays: Array) -> Any:
        return fitting_call(function, *arguments.filled(arrays), **keywords)

    variant = traced_variant(called, form)
    variant = replace(variant, graph=shared_graph(variant.graph))
    return Bound(variant, arguments, form, device)
