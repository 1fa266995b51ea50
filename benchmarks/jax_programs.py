"""The programs of `many_steps.py` by JAX, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    jax: Any = None

SWEEPS = 20
DT = 0.8


class JaxProgram:
    """A program, compiled, with its inputs where it runs."""

    def __init__(
        self, program: Callable[..., Any], inputs: tuple[Any, ...], *, is_on_gpu: bool = False
    ) -> None:
        """It runs on the CPU unless `is_on_gpu` and JAX has a GPU."""
        self._run = jax.jit(program)
        place = jax.devices(None if is_on_gpu else "cpu")[0]
        self.place: str = place.platform
        self._inputs = jax.device_put(inputs, place)
        self._results: Any = None

    def step(self) -> None:
        self._results = jax.block_until_ready(self._run(*self._inputs))

    def results(self) -> Any:
        """Of the last step, a tree of arrays."""
        return self._results


def parabola(parameters: Any, x: Any, y: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.sum((p[0] * x * x + p[1] * x + p[2] - y) ** 2)

    return jax.value_and_grad(loss)(parameters)


def training(points: Any, wanted: Any, layers: Any, state: Any) -> Any:
    def loss(layers: Any) -> Any:
        hidden = points
        for w, b in layers[:-1]:
            hidden = jax.nn.relu(hidden @ w + b)
        w, b = layers[-1]
        return jnp.mean((hidden @ w + b - wanted) ** 2)

    value, gradients = jax.value_and_grad(loss)(layers)
    return value, *adam(layers, gradients, state)


def adam(layers: Any, gradients: Any, state: Any) -> Any:
    """A step with the defaults of `sad.optim.Adam`, at a learning rate of 0.001."""
    each = jax.tree_util.tree_map
    mean = each(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
    square = each(lambda v, g: 0.999 * v + 0.001 * g * g, state["square"], gradients)
    w1 = 0.9 * state["mean_weight"] + 0.1
    w2 = 0.999 * state["square_weight"] + 0.001
    layers = each(
        lambda p, m, v: p - 0.001 * (m / w1) / (jnp.sqrt(v / w2) + 1e-8), layers, mean, square
    )
    state = {"mean": mean, "square": square, "mean_weight": w1, "square_weight": w2}
    return layers, state


def bilinear(a: Any, px: Any, py: Any) -> Any:
    n = a.shape[0]
    bx, by = jnp.floor(px), jnp.floor(py)
    fx, fy = px - bx, py - by
    x, y = bx.astype(int) % n, by.astype(int) % n
    x1, y1 = (x + 1) % n, (y + 1) % n
    if a.ndim == 3:
        fx, fy = fx[..., None], fy[..., None]
    low = a[y, x] + (a[y, x1] - a[y, x]) * fx
    high = a[y1, x] + (a[y1, x1] - a[y1, x]) * fx
    return low + (high - low) * fy


def pressure(b: Any, count: int) -> Any:
    def sweep(_: int, p: Any) -> Any:
        beside = jnp.roll(p, -1, 1) + jnp.roll(p, 1, 1)
        return 0.25 * (beside + jnp.roll(p, -1, 0) + jnp.roll(p, 1, 0) - b)

    return lax.fori_loop(0, count, sweep, jnp.zeros_like(b))


def smoke(count: int, v: Any, d: Any, wanted: Any) -> Any:
    grid_y, grid_x = jnp.mgrid[0 : d.shape[0], 0 : d.shape[1]]

    def step(carry: Any, _: None) -> Any:
        v, d = carry
        px, py = grid_x - DT * v[..., 0], grid_y - DT * v[..., 1]
        v, d = bilinear(v, px, py), bilinear(d, px, py)
        across = jnp.roll(v[..., 0], -1, 1) - jnp.roll(v[..., 0], 1, 1)
        along = jnp.roll(v[..., 1], -1, 0) - jnp.roll(v[..., 1], 1, 0)
        p = pressure(0.5 * (across + along), SWEEPS)
        across = jnp.roll(p, -1, 1) - jnp.roll(p, 1, 1)
        along = jnp.roll(p, -1, 0) - jnp.roll(p, 1, 0)
        return (v - 0.5 * jnp.stack([across, along], -1), d), None

    (_, d), _ = lax.scan(jax.checkpoint(step), (v, d), None, length=count)
    return jnp.mean((d - wanted) ** 2)


def smoke_gradient(count: int, v: Any, d: Any, wanted: Any) -> Any:
    return jax.value_and_grad(lambda v: smoke(count, v, d, wanted))(v)


def sweeps(count: int, b: Any) -> Any:
    return jnp.mean(pressure(b, count) ** 2)


def sweeps_gradient(count: int, b: Any) -> Any:
    return jax.value_and_grad(lambda b: sweeps(count, b))(b)


def lstm(xs: Any, wanted: Any, layers: Any) -> Any:
    def cell(x: Any, state: Any, w: Any, b: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ w + b, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def loss(layers: Any) -> Any:
        def step(states: Any, x: Any) -> Any:
            new = []
            for (w, b), state in zip(layers, states, strict=True):
                new.append(cell(x, state, w, b))
                x = new[-1][0]
            return tuple(new), x

        zeros = jnp.zeros(wanted.shape[1])
        _, ys = lax.scan(step, tuple((zeros, zeros) for _ in layers), xs)
        return jnp.mean((ys - wanted) ** 2)

    return jax.grad(loss)(layers)


def kmeans(points: Any, centres: Any) -> Any:
    def cost(centres: Any) -> Any:
        distances = jnp.sum((points[:, None] - centres[None]) ** 2, axis=2)
        return jnp.sum(jnp.min(distances, axis=1))

    gradient, diagonal = jax.jvp(jax.grad(cost), (centres,), (jnp.ones_like(centres),))
    return gradient / diagonal


def ode(count: int, x: Any) -> Any:
    def f(x: Any) -> Any:
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0

    def step(_: int, x: Any) -> Any:
        h = 0.01
        k1 = f(x)
        k2 = f(x + 0.5 * h * k1)
        k3 = f(x + 0.5 * h * k2)
        k4 = f(x + h * k3)
        return x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return jax.grad(lambda x: jnp.mean(lax.fori_loop(0, count, step, x) ** 2))(x)
