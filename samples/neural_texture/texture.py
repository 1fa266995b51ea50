"""A picture as a neural network: features of a hash grid, and a small network from them to colours.

`encode` is a kernel, the network consists of array products, and a step of Adam is one graph.
`shaderad build` compiles this file for the web page.

Müller et al., "Instant Neural Graphics Primitives with a Multiresolution Hash Encoding", 2022.
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any, TypedDict

import shaderad as sad
from shaderad import float2, float3, int2, uint2

COARSEST, GROWTH = 16.0, 1.486
"""Cells along an edge of the first grid, and the factor from each grid to the next."""
BATCH = 4096
"""The number of random pixels per step."""
RATE, DECAY = 0.02, 0.997
"""The learning rate of the first step, and its factor per step."""
ADAM = sad.optim.Adam(RATE, beta2=0.99)


class Model(TypedDict):
    """The fitted numbers: the features of all grids, one row per grid, and the network's layers."""

    table: sad.Array[float2, "levels", "entries"]
    w1: sad.Array[float, "features", "width"]
    b1: sad.Array[float, "width"]
    w2: sad.Array[float, "width", "width"]
    b2: sad.Array[float, "width"]
    w3: sad.Array[float, "width", 3]
    b3: sad.Array[float, 3]


class State(TypedDict):
    """The state of `ADAM` between steps."""

    mean: Model
    square: Model
    mean_weight: float
    square_weight: float


@sad.function
def entry(corner: int2, count: int) -> int:
    """The index of a corner's features in a row of `count`; distant corners may share them."""
    key = sad.uint(corner.x) ^ (sad.uint(corner.y) * sad.uint(2654435761))
    return int(key % sad.uint(count))


@sad.kernel
def encode(
    i: sad.Index,
    level: sad.Index,
    places: sad.In[float2],
    table: sad.In[float2, 2],
    features: sad.Out[float, 2],
):
    """The features of a grid at a point, bilinear between the corners of its cell."""
    count = table.shape[1]
    place = places[i] * COARSEST * sad.pow(GROWTH, float(level))
    low = sad.floor(place)
    share = place - low
    corner = int2(low)
    here = table[level, entry(corner, count)]
    right = table[level, entry(corner + int2(1, 0), count)]
    below = table[level, entry(corner + int2(0, 1), count)]
    across = table[level, entry(corner + int2(1, 1), count)]
    found = sad.lerp(sad.lerp(here, right, share.x), sad.lerp(below, across, share.x), share.y)
    features[i, 2 * level] = found.x
    features[i, 2 * level + 1] = found.y


def color(model: Any, places: Any) -> Any:
    """Red, green and blue at points of the unit square."""
    (count,), table = places.shape, model["table"]
    shapes = {"features": (count, model["w1"].shape[0])}
    x = encode(places, table, dim=(count, table.shape[0]), shapes=shapes)
    x = sad.relu(x @ model["w1"] + model["b1"])
    x = sad.relu(x @ model["w2"] + model["b2"])
    x = x @ model["w3"] + model["b3"]
    return float3(x[:, 0], x[:, 1], x[:, 2])


def error(model: Any, places: Any, wanted: Any) -> Any:
    """The mean squared difference of colours, over points and channels."""
    miss = color(model, places) - wanted
    return sad.mean(sad.dot(miss, miss)) / 3.0


def centers(x: Any, y: Any, size: Any) -> Any:
    """The centres of the pixels with indices x and y, for `size` pixels along an edge."""
    return float2((sad.cast(x, float) + 0.5) / size, (sad.cast(y, float) + 0.5) / size)


@sad.graph
def step(
    target: sad.Array[float3, "size", "size"],
    model: Model,
    state: State,
    key: sad.Array[uint2, ()],
    rate: float,
) -> Any:
    """The error at random pixels of `target`, and the arguments of the next step."""
    size, keys = target.shape[0], sad.random.split(key)
    x, y = sad.cast(size * sad.random.uniform(keys[0], (2, BATCH)), int)
    value, gradient = sad.value_and_grad(error)(model, centers(x, y, size), target[y, x])
    model, state = ADAM.step(model, gradient, state, rate)
    return value, model, state, keys[1], DECAY * rate


@sad.graph
def painted(model: Model, target: sad.Array[float3, "size", "size"]) -> sad.Array[float3]:
    """The picture that a model makes, in the shape of `target`."""
    size = target.shape[0]
    pixels = sad.arange(size * size)
    return sad.reshape(color(model, centers(pixels % size, pixels // size, size)), target.shape)


@sad.graph
def missed(model: Model, target: sad.Array[float3, "size", "size"]) -> sad.Array[float3]:
    """The difference between `painted` and `target` in each channel, five times as bright."""
    return 5.0 * abs(painted(model, target) - target)


@sad.graph
def wanted(target: sad.Array[float3, "size", "size"]) -> sad.Array[float3]:
    """The target itself."""
    return target
