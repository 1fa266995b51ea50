"""What a call costs the host: graphs against `jax.jit`, kernels against slangpy's functional API.

    python benchmarks/calls.py [--rounds 31] [wgpu|slangpy ...]

Each side calls `CALLS` times over 1,000 elements without waiting, submissions included, then waits
untimed; sides that read results wait for them in each call. Sides take turns in one process. Ratios
are medians over the pairs of a round, and a line says where one is above its bar. Without JAX the
graphs stand alone.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from timing import alternated, median_ratio, on_each

import shaderad as sad

ELEMENTS = 1000
CALLS = 128
"""A round: enough for the submissions among them to count as they do in a long run."""

X = np.linspace(0.1, 1.0, ELEMENTS, dtype=np.float32)
Y = X[::-1].copy()
LINE = {"slope": 0.5, "offset": 0.25}


def elementwise(x: Any, y: Any) -> Any:
    return (x * 2.0 + y) * x - y


def loss(line: Any, x: Any, y: Any, mean: Callable[[Any], Any] = sad.mean) -> Any:
    miss = line["slope"] * x + line["offset"] - y
    return mean(miss * miss)


@sad.kernel
def blended(i: sad.Index, x: sad.In[float], y: sad.In[float], z: sad.Out[float]):
    z[i] = x[i] * 2.0 + y[i]


BLENDED = "float blended(float x, float y) { return x * 2.0 + y; }"


class Side(NamedTuple):
    """One of what takes turns."""

    call: Callable[[], Any]
    wait: Callable[[], Any]


class Bar(NamedTuple):
    """How many times as long as another a side may take."""

    side: str
    other: str
    ratio: float


BARS = (
    Bar("graph", "jax.jit", 4.0),
    Bar("value_and_grad graph", "jax.jit of value_and_grad", 9.0),
    Bar("kernel", "slangpy function", 1.4),
    Bar("vjp and pullback", "kernel", 2.0),
    Bar("by PyTorch, read", "by NumPy, read", 1.5),
    Bar("by JAX, read", "by NumPy, read", 2.0),
)


def ours(device: sad.Device) -> dict[str, Side]:
    x, y = sad.array(X), sad.array(Y)
    line = {name: sad.array(value) for name, value in LINE.items()}
    graph = sad.graph(elementwise)
    both = sad.graph(sad.value_and_grad(loss))
    gradient = sad.grad(loss)
    z = blended(x, y)

    def pulled() -> Any:
        _, pullback = sad.vjp(blended, x, y)
        return pullback(z)

    calls: dict[str, Callable[[], Any]] = {
        "graph": lambda: graph(x, y),
        "value_and_grad graph": lambda: both(line, x, y),
        "kernel": lambda: blended(x, y),
        "vjp and pullback": pulled,
        "grad outside a graph": lambda: gradient(line, x, y),
    }
    return {name: Side(call, device.synchronize) for name, call in calls.items()}


def across(device: sad.Device) -> dict[str, Side]:
    """A kernel with its gradient from host arrays to host arrays: by NumPy, PyTorch, and JAX."""

    def by_numpy() -> Any:
        z, pullback = sad.vjp(blended, X, Y)
        return z.numpy(), [gradient.numpy() for gradient in pullback(X)]

    calls = {"by NumPy, read": by_numpy, **by_torch(), **by_jax()}
    return {name: Side(call, device.synchronize) for name, call in calls.items()}


def by_torch() -> dict[str, Callable[[], Any]]:
    try:
        import torch
    except ImportError:
        print("PyTorch not here: `pip install -e .[torch]` adds it")
        return {}

    wrapped = sad.torch.wrap(blended)
    x, y = (torch.tensor(content, requires_grad=True) for content in (X, Y))
    z_bar = torch.tensor(X)

    def call() -> Any:
        z = wrapped(x, y)
        return z, torch.autograd.grad(z, (x, y), z_bar)

    return {"by PyTorch, read": call}


def by_jax() -> dict[str, Callable[[], Any]]:
    """Compiled once."""
    try:
        import jax
    except ImportError:
        return {}

    wrapped = sad.jax.wrap(blended)

    @jax.jit
    def with_gradient(x: Any, y: Any, z_bar: Any) -> Any:
        z, pullback = jax.vjp(wrapped, x, y)
        return z, pullback(z_bar)

    x, y = jax.device_put((X, Y), jax.devices("cpu")[0])
    return {"by JAX, read": lambda: jax.block_until_ready(with_gradient(x, y, x))}


def of_jax() -> dict[str, Side]:
    try:
        import jax
    except ImportError:
        print("jax not here: `pip install -e .[benchmarks]` adds it")
        return {}

    x, y, line = jax.device_put((X, Y, LINE), jax.devices("cpu")[0])
    graph = jax.jit(elementwise)
    both = jax.jit(jax.value_and_grad(partial(loss, mean=jax.numpy.mean)))

    def wait() -> None:
        jax.block_until_ready((graph(x, y), both(line, x, y)))

    return {
        "jax.jit": Side(lambda: graph(x, y), wait),
        "jax.jit of value_and_grad": Side(lambda: both(line, x, y), wait),
    }


def of_slangpy() -> dict[str, Side]:
    """A function into a tensor that is there, and, as ours does, into one that it makes."""
    try:
        import slangpy as spy
    except ImportError:
        print("slangpy not here")
        return {}
    device = spy.create_device(type=spy.DeviceType.vulkan, include_paths=[spy.SHADER_PATH])
    module = spy.Module(device.load_module_from_source("blended", BLENDED))
    x, y = (spy.Tensor.from_numpy(device, content) for content in (X, Y))
    function: Any = module.find_function("blended")
    z = function(x, y)
    np.testing.assert_allclose(z.to_numpy(), X * 2.0 + Y, rtol=1e-6)
    return {
        "slangpy function": Side(lambda: function(x, y, _result=z), device.wait),
        "slangpy, new result": Side(lambda: function(x, y), device.wait),
    }


def repeated(call: Callable[[], Any]) -> None:
    for _ in range(CALLS):
        call()


def compare(rounds: int, runtime: str) -> None:
    """Prints the microseconds of each side, and the ratios that have bars."""
    with sad.open_device(runtime) as device:
        sides = {**ours(device), **across(device), **of_jax(), **of_slangpy()}
        steps = {name: partial(repeated, side.call) for name, side in sides.items()}
        waits = {name: side.wait for name, side in sides.items()}
        times = alternated(steps, rounds, waits)
    print(f"{runtime}: microseconds a call")
    others = {bar.side: bar for bar in BARS if bar.other in sides}
    for name, took in times.items():
        text = ratio_text(times, others[name]) if name in others else ""
        print(f"  {name:26} {1e3 * statistics.median(took) / CALLS:7.1f}{text}", flush=True)


def ratio_text(times: Mapping[str, list[float]], bar: Bar) -> str:
    ratio = median_ratio(times[bar.side], times[bar.other])
    verdict = f"   above {bar.ratio:g}x" if ratio > bar.ratio else ""
    return f"   {ratio:5.2f}x of {bar.other}{verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runtimes", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    on_each(given.runtimes, partial(compare, given.rounds))


if __name__ == "__main__":
    main()
