"""Graphs whose plans use every command; run by hosts."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import shaderad as sad


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], gain: float, y: sad.Out[float], total: sad.Add[float],
           low: sad.Min[float]):  # fmt: skip
    y[i] = gain * x[i] * x[len(x) - 1 - i]
    total[i % 3] += x[i] * x[i]
    low[0] = sad.min(low[0], x[i])


@sad.graph
def called(x: sad.Array[float, "n"], gain: float):
    y, total, low = spread(x * (1.5 - x), gain, dim=x.shape[0], shapes={"total": 3, "low": 1})
    return y, total * 2.0, low


@sad.graph
def rearranged(x: sad.Array[float, "n"], bins: sad.Array[int, "n"], base: sad.Array[float, "m"]):
    return sad.scatter_add(base, bins, sad.sort(x)), sad.concatenate([x[:2], base]) * 2.0


@sad.graph
def repeated(x: sad.Array[float, "n"], y: sad.Array[float, "n"]):
    def step(k, carry):
        a, b = carry
        return sad.reverse(a * (0.8 - 0.2 * a)) + b, sad.roll(b, -1) * 0.9 + a * 0.01

    return sad.fori_loop(5, step, (x, y))


@sad.graph
def halved(x: sad.Array[float, "n"]):
    return sad.while_loop(lambda a: sad.sum(a) > 1.0, lambda a: sad.reverse(a) * 0.5, x, limit=40)


@sad.graph
def layer(x: sad.Array[float, 40, 80], w: sad.Array[float, 80, 32]):
    """A product and gradients whose threads share what they load."""
    return sad.relu(x @ w)


@sad.graph
def swapped(x: sad.Array[float, "n"], y: sad.Array[float, "n"]):
    return y, x


@sad.graph
def scored(x: sad.Array[float, "n"], y: sad.Array[float, "n"]):
    """A sum, and what is stored in passing."""
    error = x * y - 0.5
    return sad.sum(error * error), error
