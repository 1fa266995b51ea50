"""Kernels with tangents say what forward mode says, and their gradients how gradients move.

All in float64 NumPy: the tangents by the kernel against those by the interpreter's own tape, the
second derivatives against central differences of the first ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad.diagnostics import DerivativeError
from shaderad.ir.printer import kernel_text
from shaderad.rules.transforms import push_kernel
from tests.agreement import close, drawn_for
from tests.lower import function_cases, guard_cases, loop_cases, output_cases, typed_cases
from tests.oracle import oracle
from tests.rules.pushing import cases

N = 7
CASES = {name: (case.kernel, case.args, case.call) for name, case in (
    loop_cases.CASES | guard_cases.CASES | output_cases.CASES | cases.CASES
).items()} | {
    kernel.shown_name: (kernel, args, {"dim": N})
    for kernel, args in (function_cases.ARGUMENTS | typed_cases.ARGUMENTS).items()
}  # fmt: skip
STEP = 1e-5
# Numbers of the rules, such as ln 2, are stored as floats.
ROUNDED = 1e-6
DIFFERENCES = 1e-4


@pytest.mark.parametrize("name", CASES)
def test_its_tangents_are_those_of_forward_mode(name: str) -> None:
    kernel, args, call = CASES[name]
    judge = oracle(kernel, *args, **call)
    _, tangents = drawn_for(judge, args)
    close(judge.pushed(tangents), judge.jvp(tangents), "tangent", ROUNDED)


@pytest.mark.parametrize("name", [name for name in CASES if name != "ties"])
def test_its_gradients_are_how_gradients_move(name: str) -> None:
    kernel, args, call = CASES[name]
    judge = oracle(kernel, *args, **call)
    bars, tangents = drawn_for(judge, args)
    found = judge.moved_by_name(bars, tangents)
    for at, wanted in judge.differences(bars, tangents, STEP).items():
        close(found[at], wanted, at, DIFFERENCES)


@sad.kernel
def highest(i: sad.Index, x: sad.In[float], high: sad.Max[float]):
    high[0] = sad.max(high[0], x[i] * x[i])


def test_at_ties_the_winner_alone_moves() -> None:
    judge = oracle(highest, np.float32([1, -2, 2]), dim=3, shapes={"high": (1,)})
    (moved,) = judge.moved(np.float32([3.0]), (np.float32([10, 20, 30]),))
    np.testing.assert_array_equal(moved, [0.0, 2 * 3.0 * 20.0, 0.0])


@sad.kernel
def half_attached(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * sad.detach(x[i] * x[i])


def test_what_is_detached_does_not_move() -> None:
    judge = oracle(half_attached, np.float32([3.0]), dim=1)
    (moved,) = judge.moved(np.float32([1.0]), (np.float32([2.0]),))
    # The gradient is detach(x^2), the derivative of which is 0.
    np.testing.assert_array_equal(moved, [0.0])


@sad.function
def straight_through(x: float) -> float:
    return sad.floor(x)


@straight_through.backward_derivative(check=False)
def straight_through_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out


@straight_through.forward_derivative
def straight_through_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return sad.diff_pair(straight_through(x.p), x.d)


@sad.function
def backward_only(x: float) -> float:
    return x * x


@backward_only.backward_derivative
def backward_only_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@sad.kernel
def rounds(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = straight_through(x[i]) * x[i]


@sad.kernel
def pulls(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = backward_only(x[i]) * x[i]


@pytest.mark.parametrize(
    ("kernel", "code"),
    [
        (rounds, "SR0429"),
        (pulls, "SR0412"),
    ],
)
def test_what_has_no_second_derivative_is_refused_with_its_line(kernel: Any, code: str) -> None:
    with pytest.raises(DerivativeError, match=code) as caught:
        push_kernel(kernel.specialise({}), frozenset({"x"}))
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_arrays_without_tangents_are_read_once() -> None:
    kernel = push_kernel(cases.mixed.specialise({}), frozenset({"w"}))
    assert set(kernel.dots) == {"w", "y", "t", "norms"}
    assert "m_dot" not in kernel_text(kernel)
