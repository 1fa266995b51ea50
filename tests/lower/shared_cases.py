"""Gradients of elements that many threads read: in loops, branches, functions, at any launch."""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3
from tests.lower.loop_cases import floats
from tests.lower.reference import Case

COUNTS = (1, 63, 64, 130)
"""Threads: the last group is whole, or not, or the only one."""


@sad.kernel
def layer(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """Every thread reads all weights, by loops."""
    total = w[12]
    for j in range(4):
        part = 0.0
        for k in range(3):
            part += w[3 * j + k] * x[(i + k) % 7]
        total += sad.tanh(part)
    y[i] = total


@sad.kernel
def chosen(i: sad.Index, w: sad.In[float], n: int, x: sad.In[float], y: sad.Out[float]):
    """Some threads read an element, and all do."""
    total = 0.0
    if x[i % 7] > 0.5:
        total += w[0] * w[1]
    if n > 2:
        total += w[2] * x[i % 7]
    for k in range(i % 3 + 1):
        total += w[3 + k] * w[0]
    for k in range(n):
        if total > 1.0:
            break
        total += w[k] * w[k]
    y[i] = total


@sad.function
def weighted(w: sad.In[float3], at: int, x: float) -> float:
    return sad.dot(w[at], float3(x, x * x, 1.0))


@sad.kernel
def called(i: sad.Index, w: sad.In[float3], x: sad.In[float], y: sad.Out[float]):
    """One function is called by all threads alike, another also apart."""
    value = weighted(w, 1, x[i % 7])
    for k in range(2):
        value += weighted(w, k + 1, value)
    y[i] = value


@sad.kernel
def called_apart(i: sad.Index, w: sad.In[float3], x: sad.In[float], y: sad.Out[float]):
    value = weighted(w, 0, x[i % 7])
    if i % 2 == 1:
        value += weighted(w, 1, value)
    value += weighted(w, i % 3, value)
    y[i] = value


@sad.kernel
def read_at(i: sad.Index, w: sad.In[float], at: sad.In[int], x: sad.In[float], y: sad.Out[float]):
    """Addresses that arrays give: one that all threads share, and one of each."""
    y[i] = w[at[0]] * x[i % 7] + w[at[i % 4]] * w[at[1]]


@sad.kernel
def summed(i: sad.Index, w: sad.In[float], x: sad.In[float], loss: sad.Add[float]):
    """A launch whose threads run in a loop of their group."""
    for k in range(3):
        error = w[k] * x[i % 7] - w[3]
        loss[0] += error * error


@sad.function
def distance_to(w: sad.In[float], p: float) -> float:
    d = 10.0
    for k in range(3):
        d = sad.min(d, sad.abs(p - w[k]))
    return d


@sad.kernel
def marched(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    """A loop that each thread leaves when it likes, around a function with a loop."""
    t = x[i % 7]
    for _ in range(12):
        d = distance_to(w, t)
        if d < 0.05:
            break
        t += 0.3 * d * d
    y[i] = t


@sad.kernel
def windowed(i: sad.Index, w: sad.In[float], x: sad.In[float], y: sad.Out[float]):
    total = w[3]
    for k in range(3):
        total += w[k] * x[i + k]
    y[i] = total


def _cases() -> dict[str, Case]:
    w, x = floats(16, seed=40), floats(7, seed=41)
    rows = floats(9, seed=42).reshape(3, 3)
    at = np.array([2, 0, 1, 2], np.int32)
    apart = np.array([0.2, 1.9, 3.7], np.float32)
    cases: dict[str, Case] = {}
    for n in COUNTS:
        cases[f"layer_{n}"] = Case(layer, (w, x), n)
        cases[f"chosen_{n}"] = Case(chosen, (w, 4, x), n)
        cases[f"called_{n}"] = Case(called, (rows, x), n)
        cases[f"called_apart_{n}"] = Case(called_apart, (rows, x), n)
        cases[f"read_at_{n}"] = Case(read_at, (w, at, x), n)
        cases[f"summed_{n}"] = Case(summed, (w, x), n, {"loss": (1,)})
        cases[f"marched_{n}"] = Case(marched, (apart, x), n)
    return cases


CASES = _cases()
