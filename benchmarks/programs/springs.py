"""Chains of four masses on springs that fall on the ground, 100 steps each, by where they begin."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad
from shaderad import float2

MASSES = 4
STEPS = 100


@sad.struct
class Chain:
    height: float
    speed: float2
    stiffness: float
    length: float


@sad.function
def pull(a: float2, b: float2, stiffness: float, length: float) -> float2:
    d = b - a
    distance = sad.length(d) + 1e-6
    return d * (stiffness * (distance - length) / distance)


@sad.kernel
def kernel(i: sad.Index, chains: sad.In[Chain], damping: float, end: sad.Out[float2]):
    chain = chains[i]
    position = sad.LocalArray[float2, MASSES]()
    velocity = sad.LocalArray[float2, MASSES]()
    for k in range(MASSES):
        position[k] = float2(chain.length * float(k), chain.height)
        velocity[k] = chain.speed
    dt = 0.01
    for _step in range(STEPS):
        for k in range(MASSES):
            force = float2(0.0, -9.8) - damping * velocity[k]
            if k > 0:
                force += pull(position[k], position[k - 1], chain.stiffness, chain.length)
            if k < MASSES - 1:
                force += pull(position[k], position[k + 1], chain.stiffness, chain.length)
            if position[k].y < 0.0:
                force += float2(-2.0 * velocity[k].x, -500.0 * position[k].y)
            velocity[k] = velocity[k] + dt * force
        for k in range(MASSES):
            position[k] = position[k] + dt * velocity[k]
    end[i] = position[MASSES - 1]


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared chains."""
    rng = np.random.default_rng(3)
    count = size * size
    chains = {
        "height": rng.uniform(0.2, 1.0, count).astype(np.float32),
        "speed": rng.normal(0.0, 1.0, (count, 2)).astype(np.float32),
        "stiffness": rng.uniform(50.0, 200.0, count).astype(np.float32),
        "length": rng.uniform(0.1, 0.3, count).astype(np.float32),
    }
    return (sad.array(chains, dtype=Chain), 0.5), {"dim": count}
