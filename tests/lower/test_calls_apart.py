"""Calls with equal arguments, of functions whose own backward is not linear in the cotangent."""

from __future__ import annotations

import numpy as np
import pytest

import shaderad as sad
from shaderad import float2
from shaderad.decorators import KernelFunction
from tests.oracle import oracle

pytestmark = pytest.mark.gpu


@sad.function
def clipped(x: float) -> float:
    return x


@clipped.backward_derivative(check=False)
def clipped_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += sad.clamp(d_out, -1.0, 1.0)


@sad.struct
class Point:
    at: float2
    id: int


@sad.function
def first(p: Point, scale: float) -> float:
    return p.at.x * scale


@first.backward_derivative(check=False)
def first_bwd(p: sad.DifferentialPair[Point], scale: sad.DifferentialPair[float], d_out: float):
    p.d.at.x += sad.clamp(d_out, -1.0, 1.0)
    scale.d += sad.clamp(d_out, -2.0, 2.0)


@sad.function
def through(x: float) -> float:
    return clipped(x) * 3.0


@sad.kernel
def own(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = x[i]
    y[i] = 5.0 * clipped(v) + 0.25 * clipped(v)


@sad.kernel
def of_uniform(i: sad.Index, a: float, y: sad.Out[float]):
    y[i] = 5.0 * clipped(a) + 0.25 * clipped(a)


@sad.kernel
def behind_another(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = x[i]
    y[i] = through(v) + 0.1 * through(v)


@sad.kernel
def in_loop(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    v = x[i]
    total = 0.0
    for k in range(3):
        total += 5.0 * clipped(v) + float(k) * clipped(v)
    y[i] = total


@sad.kernel
def of_struct(i: sad.Index, x: sad.In[float2], y: sad.Out[float]):
    p = Point(x[i], i)
    y[i] = 5.0 * first(p, 2.0) + 0.25 * first(p, 2.0) + first(p, x[i].y)


KERNELS = [own, behind_another, in_loop]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_each_call_gets_its_own_cotangent(kernel: KernelFunction, device: sad.Device) -> None:
    x = np.float32([1.5, -2.0])
    _, pullback = sad.vjp(kernel, x, dim=2)
    expected = oracle(kernel, x, dim=2).vjp(np.ones(2))
    np.testing.assert_allclose(pullback(np.ones(2))[0].numpy(), expected[0], rtol=1e-6)


def test_calls_on_a_uniform_get_their_own_cotangents(device: sad.Device) -> None:
    _, pullback = sad.vjp(of_uniform, 1.0, dim=2)
    assert float(pullback(np.ones(2))[0]) == pytest.approx(2.5)


def test_calls_on_a_struct_get_their_own_cotangents(device: sad.Device) -> None:
    x = np.float32([[1.5, 0.5], [-2.0, 3.0]])
    _, pullback = sad.vjp(of_struct, x, dim=2)
    np.testing.assert_allclose(pullback(np.ones(2))[0].numpy(), [[2.25, 1.0], [2.25, 1.0]])
