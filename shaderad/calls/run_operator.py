"""A call of an array function outside of any trace -> a graph that runs at once and is cached.

Invariant: immediate and traced calls use the same function, so their results agree.
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
from shaderad.calls.arguments import Arguments, array_of_captured, array_of_data, taken_apart
from shaderad.calls.call import device_of
from shaderad.calls.run_graph import run_graph
from shaderad.device.devices import Device
from shaderad.ir import ops
from shaderad.language.annotations import TypeObject
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.structs import StructInfo
from shaderad.trace.calls import Form, TracedFunction, form_of, traced_variant
from shaderad.trace.captures import KeptTraces, Traced
from shaderad.trace.operators import value_function
from shaderad.trace.primitives import (
    NumberInput,
    OpenNumber,
    as_number,
)
from shaderad.trace.traced import is_traced

_KEPT_GRAPHS = 512
_KEPT_RULES = 64
"""Most custom rules kept, one per form of arguments; their traces hold captured arrays."""


def run_operator(function: Callable[..., Any], *args: Any, zero_wins: bool = False) -> Any:
    """Calls `function`, which computes with traced arrays, on any arrays and data.

    `zero_wins`: True if zero cotangents suppress NaN in its pullback.
    """
    leaves, structure = trees.flatten(args)
    if is_traced(leaves):
        return function(*args)
    device = device_of(None, leaves)
    arguments = taken_apart(leaves, structure, partial(array_of_data, device=device))
    form = form_of([(x.element, x.shape) for x in arguments.arrays])
    graphs = device.kept(_Graphs)
    if isinstance(function, MethodType):
        traced = graphs.traced(function, arguments, form)
        variant, captured = traced.variant, [get() for get in traced.captured]
    else:
        variant = graphs.variant(function, arguments, form)
        captured = [_at_this_call(x, args) for x in variant.captured]
    operands = [*arguments.arrays, *(array_of_captured(x, device) for x in captured)]
    results = run_graph(variant.graph, operands, form.size_by_name, device, zero_wins=zero_wins)
    return variant.result(results, form.size_by_name)


def _at_this_call(captured: Any, args: Sequence[Any]) -> Any:
    """A number with its value in this call; anything else unchanged."""
    if not isinstance(captured, NumberInput):
        return captured
    return replace(captured, value=args[captured.position].value)


def run_elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """Like `run_operator`, but one graph serves all numbers in the same position."""
    if is_traced(operands):
        return function(*operands)
    return run_operator(function, *(_open(x, k) for k, x in enumerate(operands)))


def _open(operand: Any, position: int) -> Any:
    number = as_number(operand)
    if number is None:
        return operand
    return OpenNumber(position, type(number), number == 0, number)


class _Graphs:
    """The graphs of the latest operators on one device."""

    def __init__(self, _: Device) -> None:
        self._traced_by_key: OrderedDict[Hashable, TracedFunction] = OrderedDict()
        self._traced: OrderedDict[Hashable, KeptTraces] = OrderedDict()

    def variant(
        self, function: Callable[..., Any], arguments: Arguments, form: Form
    ) -> TracedFunction:
        called, key = _call(function, arguments), _key(function, arguments, form)
        if key is None:
            return traced_variant(called, form)
        traced = self._traced_by_key.get(key)
        if traced is None or not traced.serves(form.size_by_name):
            traced = self._traced_by_key[key] = traced_variant(called, form)
            if len(self._traced_by_key) > _KEPT_GRAPHS:
                self._traced_by_key.popitem(last=False)
        return traced

    def traced(self, method: MethodType, arguments: Arguments, form: Form) -> Traced:
        """The trace of a method, which calls functions of the user that its object holds."""
        key = _key(method, arguments, form)
        traces = KeptTraces() if key is None else self._traced.get(key)
        if traces is None:
            traces = self._traced[key] = KeptTraces()
            if len(self._traced) > _KEPT_RULES:
                self._traced.popitem(last=False)
        traced = traces.current(form.size_by_name)
        if traced is not None:
            captured = (get() for get in traced.captured)
            # Otherwise retrace: a custom rule refuses to capture arrays that are differentiated.
            if trace_of(x for x in captured if isinstance(x, Array)) is None:
                return traced
        name = getattr(method.__self__, "__name__", method.__name__)
        roots = [
            (name, method.__self__),
            *((name, leaf) for leaf in arguments.leaves),
        ]
        return traces.trace(name, roots, _call(method, arguments), form)


def _call(function: Callable[..., Any], arguments: Arguments) -> Callable[..., Any]:
    return lambda *arrays: function(*arguments.filled(arrays))


def _key(function: Callable[..., Any], arguments: Arguments, form: Form) -> Hashable | None:
    """The cache key of a trace; `None` if an argument may change its meaning unnoticed."""
    meaning = [_meaning(leaf) for leaf in arguments.leaves]
    return None if None in meaning else (function, arguments.key, tuple(meaning), form.key)


def _meaning(leaf: Any) -> Hashable | None:
    """The key of a function argument; `None` if its meaning may change unnoticed."""
    if isinstance(leaf, UserFunction):
        return value_function(leaf)
    is_fixed = isinstance(leaf, Intrinsic | TypeObject | StructInfo | ops.Op | type)
    return None if callable(leaf) and not is_fixed else True
