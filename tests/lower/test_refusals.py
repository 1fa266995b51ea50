"""What cannot be differentiated right, or run at all, is refused at its Python line."""

from __future__ import annotations

import re

import pytest

import shaderad as sad
from shaderad.frontend.decorators import KernelFunction
from shaderad.ir.types import is_differentiable
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel


@sad.function
def cube(x: float) -> float:
    s = 1.0
    for _k in range(3):
        s *= x
    return s


@sad.function
def slope_of_cube(x: float) -> float:
    return sad.fwd_diff(cube)(sad.diff_pair(x, 1.0)).d  # error: SR0419


@sad.function
def unlimited(x: float, count: int) -> float:
    s = 1.0
    for _k in range(count):  # error: SR0415
        s *= x
    return s


@sad.function
def square(x: float) -> float:
    return x * x


@sad.function
def element(x: sad.In[float], i: int) -> float:
    return x[i]


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


@sad.function
def from_array(x: float, w: sad.In[float]) -> float:
    return x * element(w, 0)


@sad.struct
class Packed:
    a: float
    b: sad.half2


@sad.kernel
def half_part(i: sad.Index, x: sad.In[float], y: sad.Out[Packed]):
    y[i + 1].b.x = sad.half(x[i])  # error: SR0285


@sad.kernel
def slope_of_reads(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(from_array)(sad.diff_pair(x[i], 1.0), x).d  # error: SR0410


@sad.kernel
def forward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = own_forward(x[i])


@sad.kernel
def backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = own_backward(x[i])


@sad.kernel
def pulls(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    p = sad.diff_pair(x[i])
    sad.bwd_diff(square)(p, 1.0)  # error: SR0413
    y[i] = p.d


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
def unbounded(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    s = x[i]
    for _k in range(n):  # error: SR0415
        s *= x[i]
    y[i] = s


@sad.kernel
def doubles(
    i: sad.Index,
    x: sad.In[sad.double],  # error: SR0416
    j: sad.In[int],
    y: sad.Out[sad.double],
):
    y[i] = x[j[i]]


@sad.kernel
def twice(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(cube)(sad.diff_pair(x[i], 1.0)).d


@sad.kernel
def thrice(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(slope_of_cube)(sad.diff_pair(x[i], 1.0)).d


@sad.kernel
def pulls_unlimited(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    pair = sad.diff_pair(x[i])
    sad.bwd_diff(unlimited)(pair, n, 1.0)
    y[i] = pair.d


@sad.kernel
def slope_of_backward_only(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(own_backward)(sad.diff_pair(x[i], 1.0)).d  # error: SR0412


@sad.struct
class Inner:
    scale: float


@sad.struct
class Outer:
    inner: Inner
    shift: float


@sad.function
def through_nested(x: float) -> float:
    return Outer(Inner(x), 1.0).inner.scale * x


@sad.kernel
def slope_of_nested(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(through_nested)(sad.diff_pair(x[i], 1.0)).d  # error: SR0428


REFUSED = [
    (half_part, Mode.PRIMAL, "SR0285"),
    (slope_of_reads, Mode.PRIMAL, "SR0410"),
    (half_sum, Mode.PRIMAL, "SR0282"),
    (forward_only, Mode.BACKWARD, "SR0411"),
    (backward_only, Mode.FORWARD, "SR0412"),
    (slope_of_backward_only, Mode.PRIMAL, "SR0412"),
    (pulls, Mode.BACKWARD, "SR0413"),
    (pulls, Mode.FORWARD, "SR0413"),
    (repeats, Mode.BACKWARD, "SR0414"),
    (repeats_despite_promise, Mode.BACKWARD, "SR0425"),
    (repeats_despite_promise, Mode.FORWARD, "SR0425"),
    (unbounded, Mode.BACKWARD, "SR0415"),
    (doubles, Mode.BACKWARD, "SR0416"),
    (pulls_unlimited, Mode.PRIMAL, "SR0415"),
    (slope_of_nested, Mode.BACKWARD, "SR0428"),
    (thrice, Mode.BACKWARD, "SR0419"),
    (thrice, Mode.FORWARD, "SR0419"),
]
ALLOWED = [
    (forward_only, Mode.FORWARD),
    (backward_only, Mode.BACKWARD),
    (pulls, Mode.PRIMAL),
    (repeats, Mode.PRIMAL),
    (unbounded, Mode.PRIMAL),
    (unbounded, Mode.FORWARD),
    (doubles, Mode.FORWARD),
    (twice, Mode.PRIMAL),
    (twice, Mode.BACKWARD),
    (twice, Mode.FORWARD),
    (thrice, Mode.PRIMAL),
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


@sad.kernel
def unbounded_twice(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    first = x[i]
    for _k in range(n):  # error: SR0415
        first *= x[i]
    second = unlimited(x[i], n)
    for _k in range(n):
        second *= first
    y[i] = second


def test_all_loops_without_a_limit_are_named_at_once() -> None:
    with pytest.raises(sad.DerivativeError, match="SR0415") as caught:
        lower(unbounded_twice, Mode.BACKWARD)
    failure = caught.value
    start = unlimited.def_span.line
    lines = [start + 2, unbounded_twice.def_span.line + 5]
    assert failure.span is not None
    others = [int(line) for line in re.findall(r"\.py:(\d+) likewise, by `\w+`", failure.note)]
    assert sorted([failure.span.line, *others]) == sorted(
        [*lines, unbounded_twice.def_span.line + 2]
    )
    assert failure.span.line == min(failure.span.line, *others)


@pytest.mark.parametrize(("kernel", "mode"), ALLOWED)
def test_it_is_not_refused_where_it_is_right(kernel: KernelFunction, mode: Mode) -> None:
    lower(kernel, mode)
