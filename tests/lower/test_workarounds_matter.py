"""With one workaround against a fault of Slang switched off, the oracle finds the wrong number.

Each call agrees with the oracle as it is, and no longer without what we emit against the fault;
so the oracle would see a workaround that no longer holds.

Faults of reverse mode reach few kernels, since their adjoints are made by `rules/pulling`; what is
left shows in tangents. One does not show in modules of ours, seen as such by tests/compiler_faults:

- ``asfloat(asuint(x))``: 0 is its derivative here by definition (docs/conventions.md).

For the weak compare-exchange, raw pointers and infinities the text is tested: there, in
test_faults_avoided.py, test_kernels.py and test_spelling.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad.frontend.decorators import KernelFunction
from shaderad.lower import refusals
from shaderad.runtime import routes
from tests.agreement import check_against_oracle, close
from tests.lower.loop_cases import floats
from tests.lower.workarounds import (
    WORKAROUNDS,
    Workaround,
    leave_loops_in_bodies,
    squares,
    switch_off,
)
from tests.oracle import oracle

pytestmark = pytest.mark.gpu


def again(kernel: KernelFunction) -> KernelFunction:
    """The kernel as no device has met it yet: devices keep what they compiled."""
    return sad.kernel(kernel.python)


def hold_to_oracle(workaround: Workaround) -> None:
    kernel, args = again(workaround.kernel), workaround.args
    check_against_oracle(kernel, *args, dim=len(args[0]), **workaround.call)


@pytest.mark.parametrize("name", WORKAROUNDS)
def test_with_the_workaround_the_device_agrees(name: str, device: sad.Device) -> None:
    hold_to_oracle(WORKAROUNDS[name])


@pytest.mark.parametrize("name", WORKAROUNDS)
def test_without_the_workaround_the_oracle_finds_a_wrong_number(
    name: str, device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    workaround = WORKAROUNDS[name]
    changed = switch_off(workaround.edits, monkeypatch)
    if workaround.keeps_loops:
        leave_loops_in_bodies(monkeypatch)
    with pytest.raises(AssertionError, match=f"\n({workaround.wrong})"):
        hold_to_oracle(workaround)
    assert changed


@sad.function
def backward_only(x: float) -> float:
    return x**2


@backward_only.backward_derivative
def backward_only_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += 2.0 * x.p * d_out


@sad.kernel
def through_backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = backward_only(x[i])


def test_without_its_refusal_forward_mode_loses_what_has_only_a_backward(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, x_dot = floats(3), np.ones(3, np.float32)
    wanted = oracle(squares, x, dim=3).jvp((x_dot,))
    close(sad.jvp(squares, (x,), (x_dot,), dim=3)[1], wanted, "tangent")
    with pytest.raises(sad.DerivativeError, match="SR0412"):
        sad.jvp(through_backward_only, (x,), (x_dot,), dim=3)
    monkeypatch.setattr(refusals, "check_mode", lambda *_: None)
    found = sad.jvp(again(through_backward_only), (x,), (x_dot,), dim=3)[1]
    with pytest.raises(AssertionError, match="tangent"):
        close(found, wanted, "tangent")


@sad.kernel
def compares(i: sad.Index, x: sad.In[float], y: sad.Out[bool], is_nan: sad.Out[bool]):
    v = x[i] + 1.0
    y[i] = not (v < 1.0)
    is_nan[i] = sad.isnan(v)


def test_without_ordered_comparisons_naga_misjudges_nan(
    device: sad.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN test by comparison needs them, too; the one by bits needs nothing."""
    if device.capabilities.runtime != "wgpu":
        pytest.skip("naga is wgpu's")
    x = np.float32([np.nan, 1.0, -3.0])
    wanted = oracle(compares, x, dim=3).out
    close(compares(x, dim=3), wanted, "result")
    monkeypatch.setattr(routes, "with_ordered_comparisons", lambda module: module)
    with sad.open_device("wgpu"):  # which has not compiled it yet
        with pytest.raises(AssertionError, match="result 0"):
            close(compares(x, dim=3), wanted, "result")
        changed = switch_off(((r"isNan\((\w+)\)", r"\1 != \1"),), monkeypatch)
        found = again(compares)(x, dim=3)
    assert changed
    with pytest.raises(AssertionError, match="NaN by comparison"):
        close(found[1], wanted[1], "NaN by comparison")
