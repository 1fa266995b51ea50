"""Gradients by JAX on the CPU, where that is installed; shaderad itself does not need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from timing import Floats


class JaxOpponent:
    """``sum(cumprod(x) * x)``, compiled and differentiated on the CPU."""

    def __init__(self, inputs: dict[str, Floats]) -> None:
        import jax

        def loss(x: Any) -> Any:
            return jax.numpy.sum(jax.numpy.cumprod(x) * x)

        self._gradient_of = jax.jit(jax.grad(loss))
        self._x = jax.device_put(inputs["x"], jax.devices("cpu")[0])
        self._gradient: Any = None

    def step(self) -> None:
        self._gradient = self._gradient_of(self._x).block_until_ready()

    def gradient(self) -> Floats:
        return np.asarray(self._gradient)


def jax_opponent(name: str, inputs: dict[str, Floats]) -> JaxOpponent | None:
    """JAX for the workload that it is asked for; says so where it is not installed."""
    if name != "W4":
        return None
    try:
        return JaxOpponent(inputs)
    except ImportError:
        print(f"{name} jax not here: `pip install -e .[benchmarks]` adds it")
        return None


class JaxNetwork:
    """The network of `arrays.py`: its loss and gradient, compiled."""

    def __init__(
        self, inputs: Sequence[Floats], weights: Sequence[int], *, is_on_cpu: bool = True
    ) -> None:
        """`weights` are the positions of what the gradient is taken by."""
        import jax

        def loss(points: Any, wanted: Any, *layers: Any) -> Any:
            hidden = points
            for k in range(0, len(layers) - 2, 2):
                hidden = jax.numpy.maximum(hidden @ layers[k] + layers[k + 1], 0.0)
            miss = hidden @ layers[-2] + layers[-1] - wanted
            return jax.numpy.mean(miss * miss)

        self._run = jax.jit(jax.value_and_grad(loss, argnums=tuple(weights)))
        place = jax.devices("cpu")[0] if is_on_cpu else None
        self._inputs = jax.device_put(list(inputs), place)
        self._found: Any = None

    def step(self) -> None:
        import jax

        self._found = jax.block_until_ready(self._run(*self._inputs))

    def gradients(self) -> list[Floats]:
        return [np.asarray(x) for x in self._found[1]]


def jax_network(inputs: Sequence[Floats], weights: Sequence[int]) -> JaxNetwork | None:
    """The network by JAX; says so where it is not installed."""
    try:
        return JaxNetwork(inputs, weights)
    except ImportError:
        print("jax not here: `pip install -e .[benchmarks]` adds it")
        return None
