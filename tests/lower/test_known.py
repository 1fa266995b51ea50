"""Dividing by a zero that a compiler could find gives what dividing by any zero gives."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2, float2x2, uint
from shaderad.decorators import KernelFunction
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from tests.agreement import check_against_oracle, close
from tests.lower.loop_cases import floats
from tests.oracle import oracle


@sad.function
def quotient(a: float, b: float) -> float:
    return a / b


@sad.kernel
def by_local(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = 0.0
    y[i] = x[i] / a


@sad.kernel
def by_component(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = float2(x[i], 0.0)
    y[i] = x[i] / v.y


@sad.kernel
def by_vector(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = float2(0.0, 1.0)
    y[i] = (float2(x[i], x[i]) / v).x


@sad.kernel
def by_matrix(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    m = float2x2(0.0, 1.0, 1.0, 1.0)
    y[i] = (float2x2(x[i], 1.0, 1.0, 1.0) / m)[0].x


@sad.kernel
def by_half(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = 0.0
    y[i] = float(sad.half(x[i]) / sad.half(a))


@sad.kernel
def by_element(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = sad.LocalArray[float, 2]()
    y[i] = x[i] / a[1]


@sad.kernel
def by_argument(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = quotient(x[i], 0.0)


@sad.kernel
def by_counter(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = 0.0
    for k in sad.static_range(2):
        y[i] += x[i] / float(k)


@sad.kernel
def by_product(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    n = 0
    y[i] = x[i] / float(n * i)


@sad.kernel
def by_difference(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = x[i] / (x[0] - x[0])


@sad.kernel
def updates(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a, v = 0.0, x[i]
    v /= a
    y[i] = v


@sad.kernel
def remainder(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = 0.0
    y[i] = x[i] % a


@sad.kernel
def floored(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    a = 0.0
    y[i] = x[i] // a


BY_ZERO = [
    by_local, by_component, by_vector, by_matrix, by_half, by_element, by_argument, by_counter,
    by_product, by_difference, updates, remainder, floored,
]  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", BY_ZERO, ids=lambda k: k.__name__)
def test_a_constant_zero_divides_as_any_zero_does(
    kernel: KernelFunction, device: sad.Device
) -> None:
    x = np.float32([-1.5, 2.0, 0.0])
    close(kernel(x, dim=3), oracle(kernel, x, dim=3).out, "result")


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", [by_local, by_argument, by_component])
def test_its_gradient_is_infinite(kernel: KernelFunction, device: sad.Device) -> None:
    x, bar = np.float32([-1.5, 2.0]), np.float32([1.0, -1.0])
    _, pullback = sad.vjp(kernel, x, dim=2)
    close(pullback(bar), oracle(kernel, x, dim=2).vjp(bar), "gradient")


@sad.kernel
def averages(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    total, weight = 0.0, 0.0
    for k in range(3):
        total += x[k] * x[k]
        weight += x[k] / float(k + 1)
    y[i] = quotient(total * x[i], weight)


@pytest.mark.gpu
def test_derivatives_through_a_hidden_divisor_are_right(device: sad.Device) -> None:
    assert "atRunTime" in text_of(averages)
    check_against_oracle(averages, floats(3), dim=3)


@sad.function
def inverse(x: float) -> float:
    a = 0.0
    if x > 0.0:
        a = x
    return 1.0 / a


@sad.kernel
def slopes(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    y[i] = sad.fwd_diff(inverse)(sad.diff_pair(x[i], 1.0)).d


@pytest.mark.gpu
def test_second_derivatives_through_a_hidden_divisor_are_right(device: sad.Device) -> None:
    assert "atRunTime" in text_of(slopes)
    check_against_oracle(slopes, floats(3), dim=3)


@sad.kernel
def plain_divisors(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    sigma = 2.0
    y[i] = quotient(x[i], 1.0 + sad.exp(-x[i])) / sigma / float(2 * n + 1)


def test_divisors_that_are_read_or_no_zero_stay_as_written() -> None:
    assert "atRunTime" not in text_of(plain_divisors)


@sad.kernel
def by_numbers(i: sad.Index, x: sad.In[uint], n: uint, y: sad.Out[uint]):
    y[i] = x[i] // 8 * 100 + x[i] % 3 * (x[i] // n)


@pytest.mark.gpu
def test_unsigned_numbers_are_divided_by_operators(device: sad.Device) -> None:
    variant = Variant(bounds="unchecked")
    text = lower_kernel(by_numbers.specialise({}), Mode.PRIMAL, variant)[0].program.slang
    assert " / 8u * 100u" in text
    assert " % 3u * floorDivide<" in text
    x = np.array([0, 7, 8, 2**32 - 1], np.uint32)
    result = by_numbers(sad.array(x), 5, dim=4).numpy()
    np.testing.assert_array_equal(result, x // 8 * 100 + x % 3 * (x // 5))


def text_of(kernel: KernelFunction) -> str:
    variant = Variant(wanted=frozenset({"x"}))
    return lower_kernel(kernel.specialise({}), Mode.BACKWARD, variant)[0].program.slang
