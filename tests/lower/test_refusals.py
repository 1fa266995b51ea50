"""What cannot be differentiated right, or run at all, is refused at its Python line."""

from __future__ import annotations

import pytest

import shaderad as sad
from shaderad.decorators import KernelFunction
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel


@sad.function
def own_backward(x: float) -> float:  # error: SR0412
    return x


@own_backward.backward_derivative
def own_backward_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out


@sad.function
def own_forward(x: float) -> float:  # error: SR0411
    return x


@own_forward.forward_derivative
def own_forward_fwd(x: sad.DifferentialPair[float]) -> sad.DifferentialPair[float]:
    return x


@sad.kernel
def half_sum(i: sad.Index, x: sad.In[float], t: sad.Add[sad.half]):  # error: SR0282
    t[0] += sad.half(x[i])


@sad.struct
class Packed:
    a: float
    b: sad.half2


@sad.kernel
def half_part(i: sad.Index, x: sad.In[float], y: sad.Out[Packed]):
    y[i + 1].b.x = sad.half(x[i])  # error: SR0285


@sad.function
def writes(x: float, w: sad.Add[float]) -> float:
    w[0] += x
    return x * x


@sad.kernel
def slope_of_writes(i: sad.Index, x: sad.In[float], y: sad.Out[float], w: sad.Add[float]):
    y[i] = sad.fwd_diff(writes)(sad.diff_pair(x[i], 1.0), w).d  # error: SR0410


@sad.kernel
def carries_much(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 5000]()
    for k in range(9):  # error: SR0415
        a[k + i] = a[k] * x[i]
    y[i] = a[7]


@sad.kernel
def forward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = own_forward(x[i])


@sad.kernel
def backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = own_backward(x[i])


@sad.kernel
def repeats(i: sad.Index, x: sad.In[float], y: sad.Out[float]):  # error: SR0414
    y[i % 2] = x[i]


@sad.kernel
def repeats_despite_promise(i: sad.Index, x: sad.In[float], at: sad.In[int], y: sad.Out[float]):
    j = at[i]
    y[sad.unique(j)] = x[i]
    if x[i] > 0.0:
        y[sad.unique(j)] = 2.0 * x[i]  # error: SR0425


@sad.kernel
def doubles(
    i: sad.Index,
    x: sad.In[sad.double],  # error: SR0416
    j: sad.In[int],
    y: sad.Out[sad.double],
):
    y[i] = x[j[i]]


@sad.kernel
def slope_of_backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(own_backward)(sad.diff_pair(x[i], 1.0)).d  # error: SR0412


REFUSED = [
    (half_part, Mode.PRIMAL, "SR0285"),
    (slope_of_writes, Mode.PRIMAL, "SR0410"),
    (carries_much, Mode.BACKWARD, "SR0415"),
    (half_sum, Mode.PRIMAL, "SR0282"),
    (forward_only, Mode.BACKWARD, "SR0411"),
    (backward_only, Mode.FORWARD, "SR0412"),
    (slope_of_backward_only, Mode.PRIMAL, "SR0412"),
    (repeats, Mode.BACKWARD, "SR0414"),
    (repeats_despite_promise, Mode.BACKWARD, "SR0425"),
    (repeats_despite_promise, Mode.FORWARD, "SR0425"),
    (doubles, Mode.BACKWARD, "SR0416"),
]
ALLOWED = [
    (forward_only, Mode.FORWARD),
    (backward_only, Mode.BACKWARD),
    (repeats, Mode.PRIMAL),
    (doubles, Mode.FORWARD),
]


def lower(kernel: KernelFunction, mode: Mode) -> None:
    ir = kernel.specialise({})
    wanted = frozenset(b.name for b in ir.buffers if is_differentiable(b.type.element))
    launch_shaped = frozenset({"y"}) if kernel is not repeats else frozenset[str]()
    lower_kernel(ir, mode, Variant(wanted=wanted, launch_shaped=launch_shaped))


@pytest.mark.parametrize(("kernel", "mode", "code"), REFUSED)
def test_it_is_refused(kernel: KernelFunction, mode: Mode, code: str) -> None:
    with pytest.raises(sad.Error, match=code) as caught:
        lower(kernel, mode)
    shown = str(caught.value).splitlines()
    assert any(f"# error: {code}" in line for line in shown), shown


@pytest.mark.parametrize(("kernel", "mode"), ALLOWED)
def test_it_is_not_refused_where_it_is_right(kernel: KernelFunction, mode: Mode) -> None:
    lower(kernel, mode)
