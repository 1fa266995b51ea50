"""Structs: as uniforms that hold arrays and other structs, and as elements of arrays."""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import float3
from tests.conformance.programs.program import Program


@sad.struct
class Curve:
    a: sad.In[float]
    k: float


@sad.struct
class Scene:
    curve: Curve
    v: float3


@sad.struct
class Particle:
    p: float3
    w: float


@sad.kernel
def evaluate(i: sad.Index, scene: Scene, y: sad.Out[float]):
    element = scene.curve.a[i]
    y[i] = element * element * scene.curve.k + scene.v.x


def nested(a: Any, k: Any, v: Any) -> dict[str, Any]:
    return {"y": evaluate(Scene(Curve(a, k), v), dim=3)}


@sad.kernel
def pack(i: sad.Index, p: sad.In[float3], w: sad.In[float], particles: sad.Out[Particle]):
    particles[i].p = p[i]
    particles[i].w = w[i]


@sad.kernel
def weigh(i: sad.Index, particles: sad.In[Particle], y: sad.Out[float]):
    particle = particles[i]
    y[i] = sad.dot(particle.p, particle.p) * particle.w


def array_of_structs(p: Any, w: Any) -> dict[str, Any]:
    return {"y": weigh(pack(p, w, dim=2), dim=2)}


PROGRAMS = {
    "own-struct-nested-buffers": Program(nested),
    "own-struct-array-of-structs": Program(array_of_structs),
}
