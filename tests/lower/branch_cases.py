"""Kernels whose values are only used in a branch, with what keeps their reverse outside of it."""

from __future__ import annotations

import shaderad as sad
from tests.lower.function_cases import square
from tests.lower.loop_cases import floats

N = 7


@sad.function
def bend(v: float, w: sad.In[float], k: int) -> float:
    return sad.sin(v) * w[k]


@sad.kernel
def used_in_one_branch(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    """Chains of values, a loop, and a branch of their own, for `then` and for `else`."""
    s = sad.sin(x[i] * a)
    t = s * a
    for _k in range(3):
        t = t * t + 0.1
    u = sad.cos(x[i])
    if u > 0.2:
        u = u * a
    v = u * u
    if x[i] > 0.5:
        y[i] = t * x[i]
    else:
        y[i] = v + sad.exp(v * 0.1)


@sad.kernel
def used_again(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float], z: sad.Out[float]):
    """Values that are used behind the branch too, or in both branches, or that are results."""
    s, t, u = x[i] * a, x[i] + a, x[i] - a
    z[i] = u * u
    if x[i] > 0.5:
        y[i] = s * s * t * z[i]
    else:
        y[i] = t * t
    y[i] += s


@sad.kernel
def names_between(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    """Names and elements that are assigned again between a value and the branch that uses it."""
    held = sad.LocalArray[float, 3]()
    for k in range(3):
        held[k] = x[i] * float(k + 1)
    m = x[i] * 2.0
    s = m * held[1]
    m = a * a
    held[1] = m * a
    r = held[1] * s
    held[i % 3] = 0.5
    t = sad.sin(r)
    s = s * m
    total = m + held[2] + held[0]
    if x[i] > 0.4:
        total += t * r
    if a > 0.3:
        total *= s
    y[i] = total


@sad.kernel
def carried(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    """Values that a loop carries to its next iteration, and such that it does not."""
    t, last, total = x[i], 0.0, 0.0
    for k in range(4):
        d = sad.sin(t * a) + last * 0.1
        fresh = d * x[i]
        t = t * 0.9 + 0.1
        if k % 2 == 0:
            total += fresh * d * t
        elif total > 0.1:
            last = d * a
        if d < -0.5:
            break
    y[i] = total


@sad.kernel
def marched(i: sad.Index, x: sad.In[float], a: float, y: sad.Out[float]):
    """A loop of unknown count whose result is used where it ended early."""
    t, steps = 0.0, 0
    while steps < 12 and t < 1.0:
        d = sad.abs(x[i] - t) * 0.5 + 0.01 * a
        if d < 0.05:
            break
        t += d
        steps += 1
    if t < 1.0:
        y[i] = sad.sin(t) * a
    else:
        y[i] = 0.25 * a


@sad.kernel
def with_arrays(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    """Gradients of arrays at addresses that threads share, and derivatives of users."""
    first = bend(x[i], w, 1)
    own = square(x[i], first)
    second = w[0] * x[i]
    if x[i] > 0.5:
        y[i] = own * second


@sad.kernel
def filled_and_read(i: sad.Index, x: sad.In[float], w: sad.In[float], y: sad.Out[float]):
    """Elements of local arrays that are written once, once more, and from each other."""
    once = sad.LocalArray[float, 4]()
    more = sad.LocalArray[float, 4]()
    chain = sad.LocalArray[float, 4]()
    turns = sad.LocalArray[float, 2]()
    total = 0.0
    for k in range(4):
        once[k] = w[k] * x[i]
        more[k] = w[k] + x[i]
        chain[k] = chain[(k + 3) % 4] + w[k] * x[i]
        total += once[3 - k]
    for k in range(4):
        more[k] = more[k] * more[3 - k]
    for _k in range(3):
        for m in range(2):
            turns[m] = turns[1 - m] * 0.5 + once[m]
    for k in range(4):
        total += once[k] * more[k] * chain[k]
    y[i] = total * turns[0] + turns[1]


ARGUMENTS = {
    used_in_one_branch: (floats(N), 0.7),
    used_again: (floats(N), 0.7),
    names_between: (floats(N), 0.6),
    carried: (floats(N), 0.8),
    marched: (floats(N), 0.9),
    with_arrays: (floats(N), floats(4)),
    filled_and_read: (floats(N), floats(4)),
}
