"""One call of an array function outside of any trace: a graph of its own, kept for the next call.

Invariant: what runs at once and what is traced are the same function, so that they agree.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, array
from shaderad.device.devices import Device
from shaderad.device.lines import user_span
from shaderad.execute.call import device_of
from shaderad.execute.run_graph import run_graph
from shaderad.frontend.conversions import constant
from shaderad.functions.operators import value_function
from shaderad.ir import ops
from shaderad.ir.types import Scalar
from shaderad.language.annotations import TypeObject
from shaderad.language.host import UserFunction
from shaderad.language.intrinsics import Intrinsic
from shaderad.language.structs import StructInfo
from shaderad.language.values import PythonNumber
from shaderad.trace.arguments import (
    Arguments,
    array_of_captured,
    array_of_data,
    taken_apart,
)
from shaderad.trace.calls import Form, TracedFunction, form_of, traced_variant
from shaderad.trace.primitives import (
    Number,
    NumberInput,
    OpenNumber,
    as_number,
)
from shaderad.trace.traced import is_traced

_KEPT_GRAPHS = 512
_KEPT_NUMBERS = 256


def run_operator(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, which computes with traced arrays, on arrays of any sort."""
    if is_traced(trees.leaves(args)):
        return function(*args)
    device = device_of(None, trees.leaves(args))
    given = taken_apart(args, partial(array_of_data, device=device))
    form = form_of([(x.element, x.shape) for x in given.arrays])
    variant = device.kept(_Graphs).variant(function, given, form)

    def operand(captured: Any) -> Array:
        if not isinstance(captured, NumberInput):
            return array_of_captured(captured, device)
        number = args[captured.position].value
        return device.kept(_Numbers).array(number, captured.type)

    operands = [*given.arrays, *map(operand, variant.captured)]
    results = run_graph(variant.graph, operands, form.size_by_name, device)
    return variant.result(results, form.size_by_name)


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


class _Numbers:
    """The numbers that operators took last, on one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: OrderedDict[Hashable, Array] = OrderedDict()

    def array(self, number: Number, t: Scalar) -> Array:
        """A number as an array without axes.

        Raises:
            LanguageError: SR0306, where its type does not hold it.
        """
        key = (t, repr(number))
        found = self._known.get(key)
        if found is None:
            value = constant(PythonNumber(number), t, user_span()).value
            found = array(np.asarray(value), dtype=t, device=self._device)
            self._known[key] = found
            if len(self._known) > _KEPT_NUMBERS:
                self._known.popitem(last=False)
        return found


class _Graphs:
    """The graphs of the operators that ran last on one device."""

    def __init__(self, _: Device) -> None:
        self._known: OrderedDict[Hashable, TracedFunction] = OrderedDict()

    def variant(self, function: Callable[..., Any], given: Arguments, form: Form) -> TracedFunction:
        def called(*arrays: Any) -> Any:
            return function(*given.filled(arrays))

        meaning = [_meaning(leaf) for leaf in trees.leaves(given.skeleton)]
        if None in meaning:
            return traced_variant(called, form)
        key = (function, given.key, tuple(meaning), form.key)
        found = self._known.get(key)
        if found is None or not found.serves(form.size_by_name):
            found = self._known[key] = traced_variant(called, form)
            if len(self._known) > _KEPT_GRAPHS:
                self._known.popitem(last=False)
        return found


def _meaning(leaf: Any) -> Hashable | None:
    """The identity of a function argument; `None` where its meaning may change unseen."""
    if isinstance(leaf, UserFunction):
        return value_function(leaf)
    is_fixed = isinstance(leaf, Intrinsic | TypeObject | StructInfo | ops.Op | type)
    return None if callable(leaf) and not is_fixed else True
