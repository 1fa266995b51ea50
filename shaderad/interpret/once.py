"""Calls one function once, on host values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shaderad.interpret import functions
from shaderad.interpret.cells import Value
from shaderad.interpret.derivatives import DiffCall, backward_diff, forward_diff
from shaderad.interpret.forms import from_host, to_host
from shaderad.interpret.reports import RunReports
from shaderad.ir.nodes import Function
from shaderad.ir.types import Pair, is_differentiable, tangent

_THREAD = np.zeros(1, np.int64)


def call_once(function: Function, args: Sequence[Any]) -> tuple[Any, RunReports]:
    """Calls a function of values in double precision.

    Returns:
        The result, structs and tuples as dicts; and the reports of the run.
    """
    machine = functions.machine(rounds_constants=False)
    values = [
        from_host(arg, p.type, (), np.float64)
        for p, arg in zip(function.parameters, args, strict=True)
    ]
    result = functions.run(machine, function, values, _THREAD).result
    return ({} if result is None else to_host(result, ())), machine.reports


def forward_once(function: Function, args: Sequence[Any]) -> Any:
    """``sad.fwd_diff(function)(*args)``: pairs have ``p`` and ``d``, the result is a dict."""
    machine = functions.machine(rounds_constants=False)
    return to_host(forward_diff(machine, _diff_call(function, args)), ())


def backward_once(function: Function, args: Sequence[Any], cotangent: Any) -> list[Any]:
    """``sad.bwd_diff(function)(*args, cotangent)``: the new ``d`` of each pair, else `None`."""
    t = function.result
    bar: Value = from_host(cotangent, tangent(t), (), np.float64) if is_differentiable(t) else {}
    machine = functions.machine(rounds_constants=False)
    bars = backward_diff(machine, _diff_call(function, args), bar)
    return [None if bar is None else to_host(bar, ()) for bar in bars]


def _diff_call(function: Function, args: Sequence[Any]) -> DiffCall:
    is_pair = [is_differentiable(p.type) for p in function.parameters]
    types = [
        Pair(p.type) if pair else p.type
        for p, pair in zip(function.parameters, is_pair, strict=True)
    ]
    values = [from_host(a, t, (), np.float64) for a, t in zip(args, types, strict=True)]
    return DiffCall(function, values, is_pair, _THREAD)
