"""A call of an adjoint that could add only zeros does not run; one that could add more does."""

from __future__ import annotations

import re

import numpy as np
import pytest

import shaderad as sad
from shaderad import float3
from shaderad.decorators import KernelFunction
from tests.agreement import check_against_oracle
from tests.lower.golden_kernels import text_of
from tests.lower.loop_cases import floats

N = 70
GUARD = "if (changesSum("


@sad.function
def ball(p: float3, center: float3, radius: float) -> float:
    q = p - center
    return sad.sqrt(sad.dot(q, q) + 1e-3) - radius * sad.exp(-q.x * q.x)


@sad.kernel
def nearest_ball(i: sad.Index, points: sad.In[float3], centers: sad.In[float3], radius: float,
                 first: int, y: sad.Out[float]):  # fmt: skip
    """Only the nearest of three has a cotangent; threads begin with different ones."""
    d = 10.0
    for k in range(3):
        d = sad.min(d, ball(points[i], centers[(i + first + k) % 3], radius))
    y[i] = d


@sad.function
def centered(p: float3, by: float) -> float3:
    return sad.normalize(p + float3(by, 0.1, 0.2)) * sad.sin(by)


@sad.kernel
def vectors(i: sad.Index, points: sad.In[float3], y: sad.Out[float3]):
    y[i] = centered(points[i], points[i].x)


@sad.function
def to_all(p: float3, centers: sad.In[float3]) -> float:
    total = 0.0
    for k in range(3):
        total += ball(p, centers[k], 0.5)
    return total


@sad.kernel
def shared_centers(i: sad.Index, points: sad.In[float3], centers: sad.In[float3],
                   y: sad.Out[float]):  # fmt: skip
    """All threads add to one element at a time, inside of a call."""
    y[i] = to_all(points[i], centers)


@sad.function
def biased(x: float) -> float:
    return sad.sin(sad.exp(sad.cos(sad.exp(x))))


@biased.backward_derivative(check=False)
def biased_bwd(x: sad.DifferentialPair[float], d_out: float):
    x.d += d_out * sad.sin(sad.exp(sad.cos(sad.exp(x.p)))) + 1.0


@sad.function
def around_biased(x: float) -> float:
    return biased(x) * sad.sin(sad.exp(x))


@sad.kernel
def own_derivatives(i: sad.Index, x: sad.In[float], y: sad.Out[float], z: sad.Out[float]):
    y[i] = biased(x[i])
    z[i] = around_biased(x[i])


@sad.function
def noted(x: float, j: int, sums: sad.Add[float]) -> float:
    value = sad.sin(sad.exp(x)) * sad.cos(x)
    sums[j % 2] += value * value
    return value * sad.sqrt(value * value + 1.0)


@sad.kernel
def writes_as_well(i: sad.Index, x: sad.In[float], y: sad.Out[float], sums: sad.Add[float]):
    y[i] = noted(x[i], i, sums)


def _points(count: int, seed: int) -> np.ndarray:
    return floats(3 * count, seed=seed).reshape(count, 3)


@pytest.mark.parametrize("kernel", [nearest_ball, vectors])
def test_a_costly_call_stands_under_a_test_of_its_cotangent(kernel: KernelFunction) -> None:
    calls = [line for line in text_of(kernel).split("\n") if "_bwd(" in line and ";" in line]
    lines = text_of(kernel).split("\n")
    assert calls
    for call in calls:
        assert GUARD in lines[lines.index(call) - 1]


@pytest.mark.parametrize("kernel", [own_derivatives, writes_as_well, shared_centers])
def test_a_call_that_adds_more_than_products_or_for_others_runs(kernel: KernelFunction) -> None:
    lines = text_of(kernel).split("\n")
    names = "biased_bwd|noted_bwd|to_all_bwd"
    calls = [k for k, line in enumerate(lines) if re.search(rf"({names})\w*\(.*;", line)]
    assert calls
    assert not any(GUARD in lines[k - 1] for k in calls)


@pytest.mark.gpu
def test_gradients_are_those_of_the_oracle(device: sad.Device) -> None:
    check_against_oracle(nearest_ball, _points(N, 1), _points(3, 2), 0.4, 1, dim=N)
    check_against_oracle(vectors, _points(N, 3), dim=N)
    check_against_oracle(shared_centers, _points(N, 4), _points(3, 5), dim=N)
    check_against_oracle(writes_as_well, floats(N, seed=6), dim=N, shapes={"sums": (2,)})
    device.synchronize()


@pytest.mark.gpu
def test_ties_go_to_the_first_and_zeros_add_nothing(device: sad.Device) -> None:
    """Ball 0 is ball 1, so the first of both takes all; every other thread has no cotangent."""
    points, centers = _points(N, 1), np.repeat(_points(1, 2), 3, axis=0)
    _, pullback = sad.vjp(nearest_ball, points, centers, 0.4, 0, dim=N, device=device)
    bar = (np.arange(N) % 2).astype(np.float32)
    gradient = pullback(bar)
    assert np.all(gradient[0].numpy()[::2] == 0.0)
    alone = np.zeros((N, 3, 3))
    for i in np.flatnonzero(bar):
        _, one = sad.vjp(ball, points[i], centers[0], 0.4)
        alone[i, i % 3] = one(1.0)[1]
    np.testing.assert_allclose(gradient[1].numpy(), alone.sum(0), rtol=2e-4, atol=1e-5)


@pytest.mark.gpu
def test_user_defined_derivatives_run_with_a_cotangent_of_0(device: sad.Device) -> None:
    x = floats(N, seed=7)
    _, pullback = sad.vjp(own_derivatives, x, dim=N, device=device)
    zeros = np.zeros(N, np.float32)
    np.testing.assert_allclose(pullback((zeros, zeros))[0].numpy(), 2.0, rtol=1e-6)
