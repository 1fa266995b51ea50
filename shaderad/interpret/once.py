"""One function, called once on host values: from Python, and from the debugger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import Value
from shaderad.interpret.derivatives import Derived, backward_diff, forward_diff
from shaderad.interpret.forms import from_host, to_host
from shaderad.interpret.machine import Machine
from shaderad.interpret.reports import Reports
from shaderad.interpret.tape import Tape
from shaderad.ir.nodes import Function
from shaderad.ir.types import Pair, Type, is_differentiable, tangent

_THREAD = np.zeros(1, np.int64)


def call_once(function: Function, args: Sequence[Any]) -> tuple[Any, Reports]:
    """A function of values in double precision.

    Returns:
        The result, structs and tuples as dicts; and what a device would report and print.
    """
    machine = _machine()
    values = [
        from_host(given, p.type, (), np.float64)
        for p, given in zip(function.parameters, args, strict=True)
    ]
    result = functions.run(machine, function, values, _THREAD).result
    return ({} if result is None else to_host(result, ())), machine.reports


def forward_once(function: Function, args: Sequence[Any]) -> Any:
    """``sad.fwd_diff(function)(*args)``: pairs have ``p`` and ``d``, the result is a dict."""
    return to_host(forward_diff(_machine(), _derived(function, args)), ())


def backward_once(function: Function, args: Sequence[Any], cotangent: Any) -> list[Any]:
    """``sad.bwd_diff(function)(*args, cotangent)``: the new ``d`` of each pair, else `None`."""
    t = function.result
    bar: Value = from_host(cotangent, tangent(t), (), np.float64) if is_differentiable(t) else {}
    found = backward_diff(_machine(), _derived(function, args), bar)
    return [None if one is None else to_host(one, ()) for one in found]


def _machine() -> Machine:
    return Machine(
        tape=Tape(is_recording=False), precision=np.float64, memory={}, reports=Reports(),
        run=functions.run, rounds_constants=False,
    )  # fmt: skip


def _derived(function: Function, args: Sequence[Any]) -> Derived:
    is_pair = [is_differentiable(p.type) for p in function.parameters]
    kinds: list[Type] = [
        Pair(p.type) if pair else p.type
        for p, pair in zip(function.parameters, is_pair, strict=True)
    ]
    values = [from_host(a, t, (), np.float64) for a, t in zip(args, kinds, strict=True)]
    return Derived(function, values, is_pair, _THREAD)
