"""`gradcheck`: linearises a function at a point and checks its pullback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shaderad.check.differences import FLOAT32_NOISE, HALF_NOISE, STEPS, Problem, check_slot
from shaderad.check.identity import check_identity
from shaderad.check.report import Report
from shaderad.check.results import cotangent_tree, gradient_vectors, result_floats
from shaderad.check.slots import as_data, slots_of
from shaderad.check.vectors import as_float32
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.differentiate.linearised import linearised
from shaderad.ir import nodes
from shaderad.ir.types import HALF, scalars
from shaderad.ir.walk import reachable
from shaderad.trace.tape import When

__all__ = ["gradcheck"]

DEFAULT_RTOL = 1e-2
DEFAULT_ATOL = 1e-4


@api_boundary
def gradcheck(
    function: Callable[..., Any],
    *args: Any,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    **call: Any,
) -> Report:
    """Holds the derivatives of `function` at `args` against finite differences.

    With ``L(x) = <out_bar, function(x)>`` for a random `out_bar` and its gradient g,
    ``(L(x + h s) - L(x - h s)) / 2h`` must equal ``<g, s>`` for random signs s and for single
    elements, and ``<out_bar, jvp(s)>`` must equal ``<g, s>``.

    Args:
        function: A kernel, a graph, or a Python function that calls kernels and functions on
            arrays.
        args: Its positional arguments.
        eps: Step of the finite differences, relative to the argument (at least to 1). Default:
            several, of which one must agree.
        rtol: Largest relative difference; default 1e-2, for float32.
        atol: Largest absolute difference; default 1e-4.
        call: Call keywords such as ``dim``.

    Returns:
        The comparisons; its ``repr`` is a readable table.

    Raises:
        GradientError: SR0462 where a gradient disagrees with finite differences, SR0463 where
            the vjp disagrees with the jvp, SR0464 where `eps` is too small to move an argument.
        DerivativeError: SR0465 for a step or tolerance out of range, SR0467 where an argument is
            not finite, and where the function cannot be differentiated.

    At a tie, jump or kink finite differences straddle two slopes: check beside it. A function with
    a derivative that asks not to be checked (``check=False``) is reported as exempt.
    """
    _check_settings(eps=eps, rtol=rtol, atol=atol)
    name = getattr(function, "__name__", type(function).__name__)
    args = tuple(as_data(function, arg) for arg in args)
    at = linearised(function, args, call, when=When.NOW)
    report = Report(name)
    if any(map(is_exempt, at.kernels)):
        report.is_exempt = True
        return report
    random = np.random.default_rng(0)
    is_half = any(map(_holds_half, at.kernels))
    slots = slots_of(function, args, is_half=is_half)
    for slot in slots:
        odd = slot.values[~np.isfinite(slot.values)]
        if odd.size:
            raise error("SR0467", name=slot.name, value=odd[0])
    cotangent = random.uniform(0.5, 1.5, result_floats(at.out).size)
    out_bar = cotangent_tree(at.out, cotangent)
    pulled = at.pull(out_bar, range(len(args)), None)
    problem = Problem(
        function=function,
        args=args,
        call=call,
        slots=slots,
        cotangent=as_float32(cotangent),
        gradients=gradient_vectors(slots, args, pulled),
        rtol=DEFAULT_RTOL if rtol is None else rtol,
        atol=DEFAULT_ATOL if atol is None else atol,
        steps=STEPS if eps is None else (eps,),
        noise=HALF_NOISE if is_half else FLOAT32_NOISE,
    )
    for k in range(len(slots)):
        report.arguments.append(check_slot(problem, k, random))
    report.identity = check_identity(at, problem, random)
    return report


def _check_settings(**settings: object) -> None:
    for name, value in settings.items():
        if value is None:
            continue
        number = float(value) if isinstance(value, int | float) else -1.0
        if not (number > 0 or (number == 0 and name != "eps")):
            wanted = "above 0" if name == "eps" else "from 0 on"
            raise error("SR0465", name=name, wanted=wanted, found=repr(value))


def is_exempt(kernel: nodes.Kernel) -> bool:
    """True if the kernel calls a function whose derivative has ``check=False``."""
    return not all(f.is_checked for f in reachable(kernel.body))


def _holds_half(kernel: nodes.Kernel) -> bool:
    """True if an array or uniform of the kernel holds 16-bit floats."""
    types = [b.type.element for b in kernel.buffers] + [u.type for u in kernel.uniforms]
    return any(scalar == HALF for t in types for scalar in scalars(t))
