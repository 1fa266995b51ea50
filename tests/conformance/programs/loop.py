"""Loops: bounds known at run time, while, break, carried arrays, a million iterations.

Where a loop carries a float that is read again its bound has a limit, which a derivative needs.
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2
from tests.conformance.programs.program import over_kernel


@sad.kernel
def power(i: sad.Index, x: float, n: int, y: sad.Out[float]):
    acc = 1.0
    for _ in sad.range(n, limit=16):
        acc *= x
    y[i] = acc


@sad.kernel
def powers(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    a = sad.LocalArray[float, 3]()
    for k in range(3):
        a[k] = 1.0
    for _ in sad.range(n, limit=4):
        for k in range(3):
            a[k] *= x[k]
    for k in range(3):
        y[sad.unique(k)] = a[k]


@sad.kernel
def square_of_last(i: sad.Index, x: sad.In[float], y: sad.Out[float]):
    s = 1.0
    for k in sad.range(len(x), limit=8):
        s = x[k] * x[k]
    y[i] = s


@sad.kernel
def carry_two(i: sad.Index, x: sad.In[float], A: sad.Out[float], B: sad.Out[float]):
    a = x[i]
    b = x[i]
    for _ in range(3):
        b = b + 1.0
        a = 2.0 * a
    A[i] = a
    B[i] = b


@sad.kernel
def power_by_while(i: sad.Index, x: float, n: int, y: sad.Out[float]):
    k = 0
    a = 1.0
    while sad.limit(k < n, 8):
        k += 1
        a *= x
    y[i] = a


@sad.kernel
def million_factors(i: sad.Index, x: float, y: sad.Out[float]):
    acc = 1.0
    for _ in range(1000000):
        acc *= x
    y[i] = acc


@sad.kernel
def product(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    p = 1.0
    for k in sad.range(n, limit=8):
        p *= x[k]
    y[i] = p


@sad.kernel
def weighted_mean(i: sad.Index, x: sad.In[float], w: sad.In[float], n: int, y: sad.Out[float]):
    q = 0.0
    s = 0.0
    for k in sad.range(n, limit=8):
        q += w[k]
        s += x[k] * w[k]
    y[i] = s / q


@sad.kernel
def squares_until_negative(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    s = 0.0
    for k in sad.range(n, limit=8):
        if x[k] < 0.0:
            break
        s += x[k] * x[k]
    y[i] = s


@sad.kernel
def sum_by_while(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    k = 0
    s = 0.0
    while sad.limit(k < n, 8):
        s += 2.0 * x[k]
        k += 1
    y[i] = s


@sad.kernel
def branches_in_loop(i: sad.Index, x: sad.In[float], n: int, y: sad.Out[float]):
    s = 0.0
    for k in sad.range(n, limit=8):
        if k < 4:
            if x[k] > 2.0:
                s += 4.0 * x[k]
            else:
                s += 2.0 * x[k]
        else:
            s += 6.0 * x[k]
    y[i] = s


@sad.struct
class Rates:
    birth: float
    predation: float
    growth: float
    loss: float

    def slope(self, state: float2) -> float2:
        return float2(
            (self.birth - self.predation * state.y) * state.x,
            (self.growth * state.x - self.loss) * state.y,
        )


@sad.function
def runge_kutta_step(rates: Rates, state: float2, dt: float) -> float2:
    k1 = rates.slope(state)
    k2 = rates.slope(state + 0.5 * dt * k1)
    k3 = rates.slope(state + 0.5 * dt * k2)
    k4 = rates.slope(state + dt * k3)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


@sad.kernel
def lotka_volterra(i: sad.Index, p: sad.In[float], Y: sad.Out[float2]):
    rates = Rates(p[2], p[3], p[4], p[5])
    state = float2(p[0], p[1])
    for t in range(12):
        state = runge_kutta_step(rates, state, 0.1)
        Y[sad.unique(t)] = state


PROGRAMS = {
    "fut-for-pow": over_kernel(power, dim=1),
    "fut-for-pow-list": over_kernel(powers, dim=1, shapes={"y": 3}),
    "fut-for-last": over_kernel(square_of_last, dim=1),
    "fut-swap-carry": over_kernel(carry_two, "A B", dim=3),
    "fut-while-pow": over_kernel(power_by_while, dim=1),
    "fut-stripmine-1e6": over_kernel(million_factors, dim=1),
    "warp-dynloop-prod": over_kernel(product, dim=1),
    "warp-dynloop-mean": over_kernel(weighted_mean, dim=1),
    "own-loop-break": over_kernel(squares_until_negative, dim=1),
    "own-while-sum": over_kernel(sum_by_while, dim=1),
    "warp-nested-if-loop": over_kernel(branches_in_loop, dim=1),
    "fut-lotka-rk4": over_kernel(lotka_volterra, "Y", dim=1, shapes={"Y": 12}),
}
