"""Graphs whose builds use every kind of step, argument and result; read by the tests beside it."""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

import shaderad as sad
from shaderad import float2, float3


@sad.struct
class Particle:
    place: float2
    mass: float


class Layer(NamedTuple):
    weights: sad.Array[float, "hidden", "n"]
    bias: sad.Array[float, "hidden"]


class Batch(TypedDict):
    layer: Layer
    targets: sad.Array[float, "hidden"]


class Fit(NamedTuple):
    loss: Any
    found: Any
    count: Any


@sad.kernel
def spread(i: sad.Index, x: sad.In[float], gain: float, y: sad.Out[float], total: sad.Add[float],
           low: sad.Min[float]):  # fmt: skip
    y[i] = gain * x[i] * x[len(x) - 1 - i]
    total[i % 3] += x[i] * x[i]
    low[0] = sad.min(low[0], x[i])


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)


@sad.graph
def calls_a_kernel(x: sad.Array[float, "n"], gain: float):
    y, total, low = spread(sad.sin(x), gain, dim=x.shape[0], shapes={"total": 3, "low": 1})
    return sad.sum(y), total * 2.0, low


@sad.graph
def layer(x: sad.Array[float, "n"], batch: Batch, scale: float, power: int, order=3):
    found = sad.matmul(batch["layer"].weights, x) + batch["layer"].bias
    error = found * scale - batch["targets"]
    loss = sad.sum(error**order) * sad.cast(power, float)
    return {"fit": Fit(loss, found, x.shape[0] * 2), "parts": [error, (found, 1.5)]}


@sad.graph
def sorted_bins(x: sad.Array[float, "n"], bins: sad.Array[int, "n"], base: sad.Array[float, "m"]):
    summed = sad.scatter_add(base, bins, sad.sort(x))
    largest = sad.segment_reduce(sad.max, -100.0, base.shape[0], bins, x)
    return summed, largest, sad.argsort(x)


@sad.graph
def moved(x: sad.Array[float, "n"], pairs: tuple[sad.Array[float, "n"], sad.Array[int, "m"]]):
    def step(k, carry):
        a, b = carry
        return sad.reverse(sad.sin(a)) + b, sad.roll(b, -1) * 0.9 + sad.sum(a) * 0.01

    first, second = sad.fori_loop(5, step, (x, pairs[0]))
    last, rows = sad.loop(lambda c, row: (sad.reverse(c) * row, sad.sum(c)), first,
                          sad.reshape(second, (second.shape[0], 1)))  # fmt: skip
    return last, rows, sad.gather(first, pairs[1])


@sad.graph
def halved(x: sad.Array[float, "n"]):
    return sad.while_loop(lambda a: sad.sum(a) > 1.0, lambda a: sad.reverse(a) * 0.5, x, limit=40)


@sad.custom_vjp
def clipped(x):
    return sad.where(x > 1.0, 1.0, x)


clipped.defvjp(lambda x: (sad.where(x > 1.0, 1.0, x), x), lambda x, bar: (bar * 3.0,))


@sad.graph
def straight(x: sad.Array[float, "n", 1], y: sad.Array[float, 1, "m"]) -> sad.Array[float]:
    return sad.sum(clipped(x) * y, axis=0) + sad.checkpoint(lambda a: sad.sum(sad.exp(a)))(y)


@sad.graph
def weighed(particles: sad.Array[Particle, "n"], colors: sad.Array[float3, "n", 4]):
    total = sad.sum(particles.mass)
    center = sad.sum(particles.place * particles.mass) / total
    return center, Particle(particles.place - center, particles.mass), sad.mean(colors, axis=1)


@sad.graph
def counted(x: sad.Array[int, "n"]):
    return sad.sum(x), sad.max(x)


@sad.graph
def joined(x: sad.Array[float, "n"], y: sad.Array[float, "n"]):
    return sad.concatenate([x[:4], y[2:]]) * 2.0
