"""The workloads' gradients by other libraries, on the best device that each has here.

A library takes part if it can be imported and runs the workload; `sides` tells why others do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Floats


def losses(library: Any) -> dict[str, Callable[..., Any]]:
    """The workloads in the functions that `torch` and `jax.numpy` have in common."""

    def interpolation(attributes: Any, triangles: Any, face: Any, uv: Any, target: Any) -> Any:
        corner = triangles[face]
        u, v = uv[:, :1], uv[:, 1:]
        color = attributes[corner[:, 0]] * (1 - u - v)
        color = color + attributes[corner[:, 1]] * u + attributes[corner[:, 2]] * v
        return ((color - target) ** 2).sum()

    def parabola(parameters: Any, x: Any, y: Any) -> Any:
        miss = parameters[0] * x * x + parameters[1] * x + parameters[2] - y
        return (miss * miss).sum()

    def chain(x: Any) -> Any:
        for _ in range(4):
            x = library.tanh(library.exp(0.5 * library.sin(x)))
        return x.sum()

    def products(x: Any) -> Any:
        return (library.cumprod(x, 0) * x).sum()

    return {"W1": interpolation, "W2": parabola, "W3": chain, "W4": products}


class TorchGradient:
    """The gradient by the first input; on CUDA where PyTorch has it."""

    def __init__(self, name: str, inputs: dict[str, Floats], *, is_compiled: bool) -> None:
        import torch

        self._is_on_gpu = torch.cuda.is_available()
        place = "cuda" if self._is_on_gpu else "cpu"
        loss = losses(torch)[name]
        self._loss = torch.compile(loss) if is_compiled else loss
        self._inputs = [torch.from_numpy(x).to(place) for x in inputs.values()]
        # Indices are 64 bits wide there.
        self._inputs = [x if x.is_floating_point() else x.long() for x in self._inputs]
        self._inputs[0].requires_grad_()
        self._gradient: Any = None

    def step(self) -> None:
        import torch

        (self._gradient,) = torch.autograd.grad(self._loss(*self._inputs), self._inputs[:1])
        if self._is_on_gpu:
            torch.cuda.synchronize()

    def gradient(self) -> Floats:
        return self._gradient.cpu().numpy()


class TorchTexture:
    """The gradient of texels from bilinear lookups; on CUDA where PyTorch has it."""

    def __init__(self, texels: Floats, uv: Floats, target: Floats) -> None:
        import torch

        self._is_on_gpu = torch.cuda.is_available()
        place = "cuda" if self._is_on_gpu else "cpu"
        self._texels = torch.from_numpy(texels[None, None]).to(place).requires_grad_()
        # From -1 to 1 over the picture.
        self._grid = torch.from_numpy(2 * uv[None, None] - 1).to(place)
        self._target = torch.from_numpy(target).to(place)
        self.gradient: Any = None

    def step(self) -> None:
        import torch

        seen = torch.nn.functional.grid_sample(
            self._texels, self._grid, padding_mode="border", align_corners=False
        )
        loss = ((seen.flatten() - self._target) ** 2).mean()
        (self.gradient,) = torch.autograd.grad(loss, (self._texels,))
        if self._is_on_gpu:
            torch.cuda.synchronize()


class JaxGradient:
    """The gradient by the first input, compiled, on JAX's default device."""

    def __init__(self, name: str, inputs: dict[str, Floats]) -> None:
        import jax

        self._run = jax.jit(jax.grad(losses(jax.numpy)[name]))
        self._inputs = jax.device_put(list(inputs.values()))
        self._gradient: Any = None

    def step(self) -> None:
        self._gradient = self._run(*self._inputs).block_until_ready()

    def gradient(self) -> Floats:
        return np.asarray(self._gradient)


def _compiled_torch(name: str, inputs: dict[str, Floats]) -> TorchGradient:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("compiled for CUDA only, which it has not")
    return TorchGradient(name, inputs, is_compiled=True)


def _warp(name: str, inputs: dict[str, Floats]) -> Any:
    from warp_gradients import WarpGradient

    return WarpGradient(name, inputs)


def _drjit(name: str, inputs: dict[str, Floats]) -> Any:
    from drjit_gradients import DrJitGradient

    return DrJitGradient(name, inputs)


LIBRARIES: dict[str, Callable[[str, dict[str, Floats]], Any]] = {
    "torch": lambda name, inputs: TorchGradient(name, inputs, is_compiled=False),
    "torch.compile": _compiled_torch,
    "jax": JaxGradient,
    "warp": _warp,
    "drjit": _drjit,
}


def sides(name: str, inputs: dict[str, Floats]) -> tuple[dict[str, Any], dict[str, str]]:
    """The libraries that give the gradient of a workload, and by name why others do not."""
    able: dict[str, Any] = {}
    unable: dict[str, str] = {}
    for library, make in LIBRARIES.items():
        try:
            side = make(name, inputs)
            side.step()
        except Exception as failure:  # Whatever ails another library, the rest is compared.
            unable[library] = f"{type(failure).__name__}: {failure}".splitlines()[0]
        else:
            able[library] = side
    return able, unable
