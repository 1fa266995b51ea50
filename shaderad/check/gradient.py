"""`gradcheck`: gradients against central differences, and the vjp against the jvp."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.tape import When
from shaderad.check.differences import ArgumentReport, Differences, Problem
from shaderad.check.slots import (
    as_data,
    as_float32,
    cotangent_tree,
    gradient_vectors,
    result_floats,
    slots_of,
    tangent_floats,
    with_leaves,
)
from shaderad.diagnostics import DerivativeError, error, text_of
from shaderad.diagnostics.errors import counted
from shaderad.diagnostics.notebook import preformatted, table
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.differentiate.leaves import Linearised
from shaderad.differentiate.linearised import linearised
from shaderad.ir import nodes
from shaderad.ir.types import HALF, scalars
from shaderad.ir.walk import reachable

__all__ = ["gradcheck"]

DEFAULT_RTOL = 1e-2
HALF_RTOL = 3e-2
DEFAULT_ATOL = 1e-4
# Relative to the argument. Large steps reduce rounding errors, small ones avoid kinks; a correct
# gradient agrees with one of them.
STEPS = (1e-2, 2e-3, 5e-4)
HALF_STEPS = (2e-1, 5e-2, 2e-2)
# A few units in the last place of a result, summed as independent errors.
FLOAT32_NOISE = 4e-7
HALF_NOISE = 1e-3
# The identity compares two exact derivatives, which differ only by rounding.
IDENTITY_RTOL = 2e-3


@dataclass
class GradcheckReport:
    """The comparisons of a successful `gradcheck`."""

    function: str
    arguments: list[ArgumentReport] = field(default_factory=list[ArgumentReport])
    is_exempt: bool = False
    """True if nothing was compared, because a derivative has ``check=False``."""
    identity: str = "vjp agrees with jvp"

    def __repr__(self) -> str:
        if self.is_exempt:
            return (
                f"gradcheck of {self.function}: nothing was compared, because it calls a function "
                "that is exempt by backward_derivative(check=False)"
            )
        lines = [f"gradcheck of {self.function}: {self.identity}"]
        lines += [
            f"  {a.name}: {counted(a.comparisons, 'comparison')} over {counted(a.size, 'float')}, "
            f"worst at {a.worst:.0%} of the tolerance"
            + (f", {counted(a.skipped, 'float')} skipped at jumps" if a.skipped else "")
            for a in self.arguments
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self.is_exempt:
            return preformatted(repr(self))
        rows = [
            (a.name, a.size, a.comparisons, f"{a.worst:.0%}", a.skipped) for a in self.arguments
        ]
        head = ("argument", "floats", "comparisons", "worst, of the tolerance", "skipped at jumps")
        return table(f"gradcheck of {self.function}: {self.identity}", head, rows)


@api_boundary
def gradcheck(
    function: Callable[..., Any],
    *args: Any,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    jump_share: float = 0.0,
    **call: Any,
) -> GradcheckReport:
    """Compares the derivatives of `function` at `args` with finite differences.

    With ``L(x) = <out_bar, function(x)>`` for a random `out_bar` and its gradient g,
    ``(L(x + h s) - L(x - h s)) / 2h`` must equal ``<g, s>`` for random signs s and for single
    elements, and ``<out_bar, jvp(s)>`` must equal ``<g, s>``.

    Args:
        function: A kernel, a graph, or a Python function that calls kernels and functions on
            arrays.
        args: Its positional arguments.
        eps: Step of the finite differences, relative to the argument or to 1 if that is larger. By
            default several steps are tried, of which one must agree.
        rtol: Largest relative difference; default 1e-2, with halves 3e-2.
        atol: Largest absolute difference; default 1e-4.
        jump_share: Largest share of the floats of an argument that may be skipped because the
            function seems to jump there, which means that finite differences with several steps
            disagree with each other. By default none is skipped.
        call: Call keywords such as ``dim``.

    Returns:
        The comparisons; its ``repr`` is a readable table.

    Raises:
        GradientError: SR0462 if a gradient disagrees with finite differences, SR0463 if the vjp
            disagrees with the jvp, SR0464 if `eps` is too small to change an argument, SR0480 if
            the function seems to jump at more floats than `jump_share` allows.
        DerivativeError: SR0465 for a step or tolerance out of range, SR0467 if an argument is not
            finite, and if the function cannot be differentiated.

    At a tie or kink, finite differences straddle two slopes, so check beside it. A function with a
    derivative that opts out of checks (``check=False``) is reported as exempt.
    """
    _check_settings(eps=eps, rtol=rtol, atol=atol, jump_share=jump_share)
    report = GradcheckReport(getattr(function, "__name__", type(function).__name__))
    args = tuple(as_data(function, arg) for arg in args)
    linear = linearised(function, args, call, when=When.NOW)
    if any(map(is_exempt, linear.kernels)):
        report.is_exempt = True
        return report
    random = np.random.default_rng(0)
    leaves = trees.leaves((args, linear.out))
    is_half = any(map(_holds_half, linear.kernels)) or any(map(_is_half, leaves))
    slots = slots_of(function, args, is_half=is_half)
    for slot in slots:
        not_finite = slot.values[~np.isfinite(slot.values)]
        if not_finite.size:
            raise error("SR0467", name=slot.name, value=not_finite[0])
    cotangent = random.uniform(0.5, 1.5, result_floats(linear.out).size)
    gradients = linear.pull(cotangent_tree(linear.out, cotangent), range(len(args)), None)
    problem = Problem(
        function=function,
        args=args,
        call=call,
        slots=slots,
        cotangent=as_float32(cotangent),
        gradients=gradient_vectors(slots, args, gradients),
        rtol=rtol if rtol is not None else HALF_RTOL if is_half else DEFAULT_RTOL,
        atol=DEFAULT_ATOL if atol is None else atol,
        steps=(eps,) if eps is not None else HALF_STEPS if is_half else STEPS,
        noise=HALF_NOISE if is_half else FLOAT32_NOISE,
        jump_share=jump_share,
    )
    report.arguments = [Differences(problem, k).check(random) for k in range(len(slots))]
    report.identity = _check_identity(linear, problem, random)
    return report


def _check_settings(**settings: object) -> None:
    for name, value in settings.items():
        if value is None:
            continue
        number = float(value) if isinstance(value, int | float) else -1.0
        is_share = name == "jump_share"
        is_allowed = number > 0 or (number == 0 and name != "eps")
        if not is_allowed or (is_share and number > 1):
            wanted = "above 0" if name == "eps" else "from 0 to 1" if is_share else "from 0 on"
            raise error("SR0465", name=name, wanted=wanted, found=text_of(value))


def is_exempt(kernel: nodes.Kernel) -> bool:
    """True if the kernel calls a function whose derivative has ``check=False``."""
    return not all(f.is_checked for f in reachable(kernel.body))


def _holds_half(kernel: nodes.Kernel) -> bool:
    """True if an array or uniform of the kernel holds 16-bit floats."""
    types = [b.type.element for b in kernel.buffers] + [u.type for u in kernel.uniforms]
    return any(HALF in scalars(t) for t in types)


def _is_half(leaf: Any) -> bool:
    """True if an argument or a result holds 16-bit floats."""
    if isinstance(leaf, Array):
        return HALF in scalars(leaf.element)
    return getattr(leaf, "dtype", None) == np.float16


def _check_identity(linear: Linearised, problem: Problem, random: np.random.Generator) -> str:
    """Compares vjp and jvp along random signs: <pullback(y_bar), x_dot> == <y_bar, jvp(x_dot)>.

    Returns:
        The verdict as text.

    Raises:
        GradientError: SR0463 if they disagree.
    """
    slots = problem.slots
    x_dots = [as_float32(random.choice([-1.0, 1.0], slot.values.size)) for slot in slots]
    leaves = [slot.tangent(x_dot) for slot, x_dot in zip(slots, x_dots, strict=True)]
    try:
        tangents = linear.push(with_leaves(problem.args, leaves, keeps_others=False))
    except DerivativeError as refused:
        return f"no jvp to compare with ({refused.code})"
    y_dot = tangent_floats(linear.out, tangents)
    forward = float(np.dot(problem.cotangent, y_dot))
    pairs = list(zip(problem.gradients, x_dots, strict=True))
    backward = float(sum(np.dot(x_bar, x_dot) for x_bar, x_dot in pairs))
    size = float(np.sum(np.abs(problem.cotangent * y_dot)))
    size += float(sum(np.sum(np.abs(x_bar * x_dot)) for x_bar, x_dot in pairs))
    if not abs(forward - backward) <= IDENTITY_RTOL * size + problem.atol:
        names = ", ".join(slot.name for slot in slots)
        raise error("SR0463", name=names, found=backward, expected=forward)
    return "vjp agrees with jvp"
