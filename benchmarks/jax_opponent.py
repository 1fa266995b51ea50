"""The gradient of W4 by JAX, where that is installed; shaderad itself does not need it."""

from __future__ import annotations

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
