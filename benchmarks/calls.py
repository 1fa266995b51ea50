"""The host's time for a call: graphs against `jax.jit`, kernels against slangpy's functional API.

    python benchmarks/calls.py [--rounds 31] [wgpu|slangpy ...]

Each side calls `CALLS` times over 1,000 elements without waiting, submissions included, then waits
untimed; sides that read results wait for them in each call. A program of `calls_programs.py`
records as many steps as fit into one submission. Sides take turns in one process, and ratios are
medians over the pairs of a round. A line says where a side is above its bar; bars in microseconds
are for two cores with lavapipe. Without JAX the graphs stand alone. The last lines count the
objects that a warm step of a program creates.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from calls_programs import created_by, programs, steps_per_submission
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
    """One of the calls that take turns."""

    call: Callable[[], Any]
    wait: Callable[[], Any]
    count: int = CALLS
    """Calls per round."""

    def round(self) -> None:
        for _ in range(self.count):
            self.call()


class Bar(NamedTuple):
    """The most that a side may take, as a multiple of another side's time."""

    side: str
    other: str
    ratio: float


BARS = (
    Bar("graph", "jax.jit", 4.0),
    Bar("value_and_grad graph", "jax.jit of value_and_grad", 9.0),
    Bar("kernel", "slangpy function", 1.0),
    Bar("by PyTorch, read", "by NumPy, read", 1.2),
    Bar("by JAX, read", "by NumPy, read", 1.2),
)
LIMIT_BY_SIDE = {
    "graph": {"wgpu": 12.0, "slangpy": 12.0},
    "value_and_grad graph": {"wgpu": 25.0, "slangpy": 25.0},
    "vjp and pullback": {"wgpu": 45.0, "slangpy": 45.0},
    "grad outside a graph": {"wgpu": 250.0, "slangpy": 250.0},
    "mesh step": {"wgpu": 235.0, "slangpy": 145.0},
    "W2 value and gradient": {"wgpu": 97.0, "slangpy": 57.0},
    "ode": {"wgpu": 275.0, "slangpy": 815.0},
}
"""The most microseconds of a side, by runtime. The limits of the last three are a fifth, a third,
and a quarter of the least times at commit 6a0186f7."""


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


def of_programs(device: sad.Device) -> dict[str, Side]:
    """Programs that record as many steps as fit into one submission, which ends a round."""
    return {
        name: Side(step, device.synchronize, steps_per_submission(device, step))
        for name, step in programs(device).items()
    }


def compare(rounds: int, runtime: str) -> None:
    """Prints the microseconds of each side, its bars, and the objects that programs create."""
    with sad.open_device(runtime) as device:
        steps = of_programs(device)
        sides = {**ours(device), **steps, **across(device), **of_jax(), **of_slangpy()}
        times = alternated(
            {name: side.round for name, side in sides.items()},
            rounds,
            {name: side.wait for name, side in sides.items()},
        )
        print(f"{runtime}: microseconds per call, median and least")
        for name, side in sides.items():
            microseconds = [1e3 * took / side.count for took in times[name]]
            median, least = statistics.median(microseconds), min(microseconds)
            verdicts = limit_text(name, runtime, median) + ratio_text(times, name)
            print(f"  {name:26} {median:7.1f} {least:7.1f}{verdicts}", flush=True)
        print(f"{runtime}: objects that a warm step creates")
        for name, side in steps.items():
            print(f"  {name:26} {created_text(created_by(device, side.call, side.count))}")


def limit_text(name: str, runtime: str, microseconds: float) -> str:
    limit = LIMIT_BY_SIDE.get(name, {}).get(runtime, math.inf)
    return f"   above {limit:g} us" if microseconds > limit else ""


def ratio_text(times: Mapping[str, list[float]], name: str) -> str:
    texts: list[str] = []
    for side, other, limit in BARS:
        if side == name and other in times:
            ratio = median_ratio(times[side], times[other])
            verdict = f"   above {limit:g}x" if ratio > limit else ""
            texts.append(f"   {ratio:5.2f}x of {other}{verdict}")
    return "".join(texts)


def created_text(count_by_kind: Mapping[str, float]) -> str:
    counts = "   ".join(f"{kind} {count:.3g}" for kind, count in count_by_kind.items())
    return f"{counts}   above 0" if any(count_by_kind.values()) else counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runtimes", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=31)
    given = parser.parse_args()
    on_each(given.runtimes, partial(compare, given.rounds))


if __name__ == "__main__":
    main()
