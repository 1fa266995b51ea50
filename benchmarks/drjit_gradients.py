"""The workloads W1 to W3 by Dr.Jit, on CUDA where it has it, else through LLVM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import drjit as dr
import numpy as np
from timing import Floats

if dr.has_backend(dr.JitBackend.CUDA):
    from drjit.cuda.ad import Array3f, Float, Int, TensorXf
else:
    from drjit.llvm.ad import Array3f, Float, Int, TensorXf


def _interpolation(inputs: dict[str, Floats]) -> Callable[[Any], Any]:
    triangles = Int(np.ascontiguousarray(inputs["triangles"]).ravel())
    face = Int(inputs["face"])
    u, v = (Float(np.ascontiguousarray(inputs["uv"][:, k])) for k in range(2))
    target = Array3f(np.ascontiguousarray(inputs["target"].T))

    def loss(attributes: Any) -> Any:
        corners = [dr.gather(Int, triangles, 3 * face + k) for k in range(3)]
        a, b, c = (dr.gather(Array3f, attributes, corner) for corner in corners)
        miss = a * (1 - u - v) + b * u + c * v - target
        return dr.sum(dr.dot(miss, miss))

    return loss


def _parabola(inputs: dict[str, Floats]) -> Callable[[Any], Any]:
    x, y = Float(inputs["x"]), Float(inputs["y"])

    def loss(parameters: Any) -> Any:
        a, b, c = (dr.gather(Float, parameters, Int(k)) for k in range(3))
        miss = a * x * x + b * x + c - y
        return dr.sum(miss * miss)

    return loss


def _chain(inputs: dict[str, Floats]) -> Callable[[Any], Any]:
    del inputs

    def loss(x: Any) -> Any:
        for _ in range(4):
            x = dr.tanh(dr.exp(0.5 * dr.sin(x)))
        return dr.sum(x)

    return loss


LOSSES = {"W1": _interpolation, "W2": _parabola, "W3": _chain}


class DrJitGradient:
    """The gradient by the first input."""

    def __init__(self, name: str, inputs: dict[str, Floats]) -> None:
        if name not in LOSSES:
            raise NotImplementedError("Dr.Jit has no derivative of a product's scan")
        self._loss = LOSSES[name](inputs)
        first = next(iter(inputs.values()))
        self._shape = first.shape
        self._x = Float(first.ravel())
        self._gradient: Any = None

    def step(self) -> None:
        x = Float(self._x)
        dr.enable_grad(x)
        dr.backward(self._loss(x))
        self._gradient = dr.grad(x)
        dr.eval(self._gradient)
        dr.sync_thread()

    def gradient(self) -> Floats:
        return np.asarray(TensorXf(self._gradient)).reshape(self._shape)
