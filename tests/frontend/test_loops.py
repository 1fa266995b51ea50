"""Variables of ``sad.static_range`` as numbers: exponents, bounds, constant arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.decorators import KernelFunction
from shaderad.ir.printer import kernel_text

pytestmark = pytest.mark.usefixtures("device")
X = np.float32([-1.5, 0.0, 0.5, 2.0, 3.0])


@sad.function
def power_sum(x: float, count: sad.Const[int]) -> float:
    s = 0.0
    for k in sad.static_range(count):
        s += x**k
    return s


@sad.function
def folded(x: float, first: int, count: sad.Const[int]) -> float:
    s = x
    for k in range(count):
        s = s * x + float(first + k)
    return s


@sad.kernel
def powers_of_two(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 0.0
    for k in sad.static_range(4):
        for _j in range(2**k):
            s += float(k) * x[i]
    y[i] = s


@sad.kernel
def powers_of_x(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = power_sum(x[i], 4)


@sad.kernel
def triangle(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 0.0
    for k in sad.static_range(4):
        for j in sad.static_range(k + 1, 4):
            s += x[i] ** j * float(k + 1)
    y[i] = s


@sad.kernel
def butterfly(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    t = sad.LocalArray[float, 8]()
    for k in sad.static_range(8):
        t[k] = x[(i + k) % x.shape[0]]
    for level in sad.static_range(3):
        half = 2**level
        for k in sad.static_range(0, 8, 2 ** (level + 1)):
            for j in range(2**level):
                a, b = t[k + j], t[k + j + half]
                t[k + j] = a + b
                t[k + j + half] = a * b
    y[i] = t[0] + t[3] * t[5]


@sad.kernel
def constant_arguments(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 0.0
    for k in sad.static_range(3, 0, -1):
        s += folded(x[i], k, k)
        n = k
        while sad.limit(n < 5, 6 - k):
            n += 1
            s *= 0.5
    y[i] = s


@sad.kernel
def limits(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = x[i]
    for k in sad.static_range(1, 3):
        n = 0
        while sad.limit(s > 0.1 and n < k, k):
            n += 1
            s *= 0.5
    for k in sad.static_range(1, 3):
        for _j in sad.range(k, limit=2 * k):
            s += x[i]
    y[i] = s


@sad.kernel
def branches(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 1.0
    for k in sad.static_range(5):
        if k > 0:
            s += x[i] ** (k - 1)
        if k == 3 and x[i] > 2.5:
            y[i] = s
            return
    y[i] = -s


@sad.kernel
def empty(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = x[i]
    for k in sad.static_range(3, 3):
        s += 2**k
    y[i] = s


@sad.kernel
def by_component(i: sad.Index, x: sad.In[float], y: sad.Out[float3]):
    for k in sad.static_range(3):
        y[i][k] = x[i] ** (k + 1)


KERNELS = [powers_of_two, powers_of_x, triangle, butterfly, constant_arguments, limits, branches,
           empty, by_component]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_a_repeated_body_means_what_the_loop_means_in_python(kernel: KernelFunction) -> None:
    found = kernel(X, dim=len(X)).numpy()
    own = [kernel.debug(X, dim=len(X), thread=i)["y"][i] for i in range(len(X))]
    np.testing.assert_allclose(found, np.stack([np.asarray(y) for y in own]), rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_repeated_bodies_have_derivatives(kernel: KernelFunction) -> None:
    sad.gradcheck(kernel, X[2:], dim=len(X) - 2)


def test_negative_bases_have_exact_powers() -> None:
    """``x ** k`` is a product, where a power of run time would be NaN."""
    np.testing.assert_allclose(powers_of_x(X, dim=5).numpy(), 1 + X + X**2 + X**3, rtol=1e-6)
    (found,) = sad.vjp(powers_of_x, X, dim=5)[1](np.ones(5, np.float32))
    np.testing.assert_allclose(found.numpy(), 1 + 2 * X + 3 * X**2, rtol=1e-6)


def plain(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in sad.static_range(3):
        y[i] += x[i] * float(k)


def left_early(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in sad.static_range(3):
        if x[i] > 1.0:
            break
        y[i] += 2**k


def read_afterwards(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    k = 0
    for k in sad.static_range(3):
        y[i] += 2**k
    y[i] += float(k)


def of_run_time(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    for k in range(3):
        y[i] += 2**k


def test_other_loops_stay_loops() -> None:
    assert "static_range(0, 3, 1)" in kernel_text(sad.kernel(plain).specialise({}))


@pytest.mark.parametrize("body", [left_early, read_afterwards, of_run_time])
def test_a_variable_that_is_no_number_is_none(body: Callable[..., Any]) -> None:
    with pytest.raises(sad.LanguageError, match="SR0315"):
        sad.kernel(body)(X, dim=5)
