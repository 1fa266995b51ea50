"""A program of a user: kernels, graphs and their gradients, as pyright sees them."""

# ruff: noqa: UP037, F821
from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float3


@sad.struct
class Lamp:
    center: sad.In[float3]
    power: float

    def at(self, point: float3) -> float:
        away = point - self.center[0]
        return self.power * falloff(sad.length(away))


@sad.function
def falloff(d: float) -> float:
    return sad.exp(-d * d)


@sad.kernel
def shade(i: sad.Index, lamp: Lamp, points: sad.In[float3], light: sad.Out[float]):
    for k in range(points.shape[0]):
        light[i] += lamp.at(points[k] + points[i].zyx)


@sad.graph
def loss(light: sad.Array[float, "n"], target: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum((light - target) ** 2.0)


def cubes(light: sad.Array) -> sad.Array:
    return sad.sum(light * light * light)


def main() -> None:
    lamp = Lamp(center=[[0.0, 0.0, 0.0]], power=2.0)
    points = sad.array(np.eye(3, dtype=np.float32), dtype=float3)
    light, pullback = sad.vjp(shade, lamp, points, dim=3)
    value, by_light = sad.value_and_grad(loss)(light, np.zeros(3))
    by_lamp, by_points = pullback(by_light)
    shape: tuple[int, ...] = light.shape
    print(shape, by_points.numpy().shape)
    # The loss is a square of what is proportional to the power.
    print(round(float(by_lamp.power) / float(value), 3))
    print(sad.gradcheck(shade, lamp, points, dim=3))
    curved = sad.hvp(cubes, light, by_light)
    pushed = sad.jvp(loss, (light, by_light), (by_light, None))
    print(curved.shape, len(pushed))


if __name__ == "__main__":
    main()
