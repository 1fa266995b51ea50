"""One call of an array function outside of any trace: a graph of its own, kept for the next call.

Invariant: what runs at once and what is traced are the same function, so that they agree.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from shaderad.frontend.annotations import TypeObject
from shaderad.frontend.host import UserFunction
from shaderad.frontend.intrinsics import Intrinsic
from shaderad.frontend.structs import StructInfo
from shaderad.ir import ops
from shaderad.session import trees
from shaderad.session.arguments_of_graphs import (
    Arguments,
    array_of_captured,
    array_of_data,
    taken_apart,
)
from shaderad.session.array_functions.operators import value_function
from shaderad.session.call import device_of
from shaderad.session.devices import Device
from shaderad.session.run_graph import run_graph
from shaderad.session.traced import is_traced
from shaderad.session.traced_calls import Form, Variant, form_of, traced_variant

_KEPT_GRAPHS = 512


def run_operator(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, which computes with traced arrays, on arrays of any sort."""
    if is_traced(trees.leaves(args)):
        return function(*args)
    device = device_of(None, trees.leaves(args))
    given = taken_apart(args, partial(array_of_data, device=device))
    form = form_of([(x.element, x.shape) for x in given.arrays])
    variant = device.kept(_Graphs).variant(function, given, form)
    return call_variant(variant, given.arrays, form.size_by_name, device)


def call_variant(
    variant: Variant, given: Sequence[Any], size_by_name: Mapping[str, int], device: Device
) -> Any:
    """The result of a traced function for arguments of its form."""
    operands = [*given, *(array_of_captured(x, device) for x in variant.captured)]
    return variant.result(run_graph(variant.graph, operands, size_by_name, device), size_by_name)


class _Graphs:
    """The graphs of the operators that ran last on one device."""

    def __init__(self, _: Device) -> None:
        self._known: OrderedDict[Hashable, Variant] = OrderedDict()

    def variant(self, function: Callable[..., Any], given: Arguments, form: Form) -> Variant:
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
    """What a function among the arguments does; `None` where that may change unseen."""
    if isinstance(leaf, UserFunction):
        return value_function(leaf)
    is_fixed = isinstance(leaf, Intrinsic | TypeObject | StructInfo | ops.Op | type)
    return None if callable(leaf) and not is_fixed else True
