"""Functions called from kernels: several results, nesting, values without derivative."""

from __future__ import annotations

import shaderad as sad
from tests.conformance.programs.program import over_kernel


# Arguments are values: what Slang says with inout, a function here returns.
@sad.function
def advanced(a: float, b: float) -> float:
    return a * b + sad.sin(a)


@sad.kernel
def advance_twice(i: sad.Index, x: sad.In[float], y: sad.In[float], o: sad.Out[float]):
    a = x[i]
    a = advanced(a, y[i])
    a = advanced(a, a)
    o[i] = a


@sad.function
def product_and_sum(x: float, y: float) -> tuple[float, float]:
    return x * y, x + y


@sad.function
def combined(x: float) -> float:
    a, b = product_and_sum(x, x * x)
    return a * b


@sad.kernel
def nest(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = combined(combined(x[i]) * 0.125)


@sad.kernel
def stop_gradient(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] * sad.detach(x[i] * x[i]) + w[i] * sad.detach(w[i])


PROGRAMS = {
    "slang-inout-param": over_kernel(advance_twice, "o", dim=2),
    "own-nested-multireturn": over_kernel(nest, dim=2),
    "slang-no-diff": over_kernel(stop_gradient, dim=2),
}
