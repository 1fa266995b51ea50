"""The workloads W1 to W3 as kernels of Warp, differentiated by its tape."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from timing import Floats

wp.config.quiet = True


@wp.kernel
def interpolation(
    attributes: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    face: wp.array(dtype=int),
    uv: wp.array(dtype=wp.vec2),
    target: wp.array(dtype=wp.vec3),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    corner = triangles[face[i]]
    w = uv[i]
    color = (
        attributes[corner[0]] * (1.0 - w[0] - w[1])
        + attributes[corner[1]] * w[0]
        + attributes[corner[2]] * w[1]
    )
    miss = color - target[i]
    wp.atomic_add(loss, 0, wp.dot(miss, miss))


@wp.kernel
def parabola(
    parameters: wp.array(dtype=float),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    miss = parameters[0] * x[i] * x[i] + parameters[1] * x[i] + parameters[2] - y[i]
    wp.atomic_add(loss, 0, miss * miss)


@wp.kernel
def chain(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    v = x[i]
    for _ in range(4):
        v = wp.tanh(wp.exp(0.5 * wp.sin(v)))
    wp.atomic_add(loss, 0, v)


KERNELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "W1": (interpolation, (wp.vec3, wp.vec3i, int, wp.vec2, wp.vec3)),
    "W2": (parabola, (float, float, float)),
    "W3": (chain, (float,)),
}
"""Kernels, and the element types of their inputs."""


class WarpGradient:
    """The gradient by the first input, on Warp's default device."""

    def __init__(self, name: str, inputs: dict[str, Floats]) -> None:
        if name not in KERNELS:
            raise NotImplementedError("Warp has no derivative of its scan")
        self._kernel, types = KERNELS[name]
        arrays = zip(inputs.values(), types, strict=True)
        self._inputs = [wp.array(x, dtype=t) for x, t in arrays]
        self._inputs[0].requires_grad = True
        self._loss = wp.zeros(1, dtype=float, requires_grad=True)
        self._count = len(self._inputs[-1])
        self._one = wp.array(np.ones(1, np.float32), dtype=float)

    def step(self) -> None:
        self._inputs[0].grad.zero_()
        with wp.Tape() as tape:
            wp.launch(self._kernel, dim=self._count, inputs=[*self._inputs, self._loss])
        tape.backward(grads={self._loss: self._one})
        wp.synchronize()

    def gradient(self) -> Floats:
        return self._inputs[0].grad.numpy()
