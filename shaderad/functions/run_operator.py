"""One call of an array function outside of any trace: a graph of its own, kept for the next call.

Invariant: what runs at once and what is traced are the same function, so that they agree.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from types import MethodType
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import trace_of
from shaderad.device.devices import Device
from shaderad.execute.call import device_of
from shaderad.execute.run_graph import run_graph
from shaderad.functions.operators import value_function
from shaderad.ir import ops
from shaderad.language.annotations import TypeObject
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.structs import StructInfo
from shaderad.trace.arguments import (
    Arguments,
    array_of_captured,
    array_of_data,
    taken_apart,
)
from shaderad.trace.calls import Form, TracedFunction, form_of, traced_variant
from shaderad.trace.captures import KeptTraces, Traced
from shaderad.trace.primitives import (
    NumberInput,
    OpenNumber,
    as_number,
)
from shaderad.trace.traced import is_traced

_KEPT_GRAPHS = 512
_KEPT_RULES = 64
"""Custom rules at arguments of one form; their traces hold what the rules capture."""


def run_operator(function: Callable[..., Any], *args: Any, zero_wins: bool = False) -> Any:
    """``function(*args)``, which computes with traced arrays, on arrays of any sort.

    `zero_wins`: True if zero cotangents suppress NaN in its pullback.
    """
    if is_traced(trees.leaves(args)):
        return function(*args)
    device = device_of(None, trees.leaves(args))
    given = taken_apart(args, partial(array_of_data, device=device))
    form = form_of([(x.element, x.shape) for x in given.arrays])
    graphs = device.kept(_Graphs)
    if isinstance(function, MethodType):
        traced = graphs.traced(function, given, form)
        variant, captured = traced.variant, [get() for get in traced.captured]
    else:
        variant = graphs.variant(function, given, form)
        captured = [_at_this_call(x, args) for x in variant.captured]
    operands = [*given.arrays, *(array_of_captured(x, device) for x in captured)]
    results = run_graph(variant.graph, operands, form.size_by_name, device, zero_wins=zero_wins)
    return variant.result(results, form.size_by_name)


def _at_this_call(captured: Any, args: Sequence[Any]) -> Any:
    """A number among the arguments as it is now; anything else is what it was."""
    if not isinstance(captured, NumberInput):
        return captured
    return replace(captured, value=args[captured.position].value)


def run_elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """`run_operator`, by one graph for all numbers that stand in the same place."""
    if is_traced(operands):
        return function(*operands)
    return run_operator(function, *(_open(x, k) for k, x in enumerate(operands)))


def _open(operand: Any, position: int) -> Any:
    number = as_number(operand)
    if number is None:
        return operand
    return OpenNumber(position, type(number), number == 0, number)


class _Graphs:
    """The graphs of the operators that ran last on one device."""

    def __init__(self, _: Device) -> None:
        self._known: OrderedDict[Hashable, TracedFunction] = OrderedDict()
        self._traced: OrderedDict[Hashable, KeptTraces] = OrderedDict()

    def variant(self, function: Callable[..., Any], given: Arguments, form: Form) -> TracedFunction:
        called, key = _call(function, given), _key(function, given, form)
        if key is None:
            return traced_variant(called, form)
        found = self._known.get(key)
        if found is None or not found.serves(form.size_by_name):
            found = self._known[key] = traced_variant(called, form)
            if len(self._known) > _KEPT_GRAPHS:
                self._known.popitem(last=False)
        return found

    def traced(self, method: MethodType, given: Arguments, form: Form) -> Traced:
        """The trace of a method, which runs functions of the user's that its object holds."""
        key = _key(method, given, form)
        traces = KeptTraces() if key is None else self._traced.get(key)
        if traces is None:
            traces = self._traced[key] = KeptTraces()
            if len(self._traced) > _KEPT_RULES:
                self._traced.popitem(last=False)
        found = traces.current(form.size_by_name)
        if found is not None:
            captured = (get() for get in found.captured)
            # A custom rule refuses arrays that derivatives are taken by.
            if trace_of(x for x in captured if isinstance(x, Array)) is None:
                return found
        name = getattr(method.__self__, "__name__", method.__name__)
        roots = [(name, method.__self__), *((name, leaf) for leaf in trees.leaves(given.skeleton))]
        return traces.trace(name, roots, _call(method, given), form)


def _call(function: Callable[..., Any], given: Arguments) -> Callable[..., Any]:
    return lambda *arrays: function(*given.filled(arrays))


def _key(function: Callable[..., Any], given: Arguments, form: Form) -> Hashable | None:
    """All that a trace depends on; `None` where the meaning of an argument may change unseen."""
    meaning = [_meaning(leaf) for leaf in trees.leaves(given.skeleton)]
    return None if None in meaning else (function, given.key, tuple(meaning), form.key)


def _meaning(leaf: Any) -> Hashable | None:
    """The identity of a function argument; `None` where its meaning may change unseen."""
    if isinstance(leaf, UserFunction):
        return value_function(leaf)
    is_fixed = isinstance(leaf, Intrinsic | TypeObject | StructInfo | ops.Op | type)
    return None if callable(leaf) and not is_fixed else True
