"""The user's own backward derivatives, which need not be derivatives at all."""

from __future__ import annotations

import shaderad as sad
from tests.conformance.programs.program import over_kernel


@sad.function
def clip_gradient(x: float) -> float:
    return x


@clip_gradient.backward_derivative(check=False)
def clip_gradient_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += sad.clamp(d_out, -1.0, 1.0)


@sad.kernel
def clip(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 5.0 * clip_gradient(x[i]) + 0.25 * clip_gradient(x[i])


@sad.function
def double(x: float) -> float:
    return 2.0 * x


@double.backward_derivative(check=False)
def double_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out + sad.sqrt(double(x.p))


@sad.kernel
def use_result(i: sad.Index, x: float, c: sad.Out[float]):
    c[i] = double(x)


PROGRAMS = {
    "warp-custom-grad-clip": over_kernel(clip, dim=2),
    "fut-with-vjp": over_kernel(use_result, "c", dim=1),
}
