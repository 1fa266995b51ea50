"""Functions on arrays: matrix products against tilings by hand, a network against JAX.

    python benchmarks/arrays.py [--runtime wgpu slangpy] [NAME ...]

Inputs are resident, and each side waits for its result. By hand are the kernels of `products.py`,
dispatched by raw slangpy: the best tilings, and a thread a result. Where a product is as long as
its matrix, bytes count: those of the matrix in a second, against those that the driver reads and
writes in a second when it copies the matrix. JAX takes part where it is installed. Ratios are
medians over pairs that ran one after the other.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import products
from jax_opponent import jax_network
from raw_slang import ByHand, RawCopy, RawSlang
from timing import Floats, alternated, median_ratio, on_each, relative_error

import shaderad as sad

ROUNDS = 9
POINTS = 65536


def plain(x: Any, y: Any) -> Any:
    return x @ y


def transposed(x: Any, y: Any) -> Any:
    return sad.transpose(x) @ y


class Product(NamedTuple):
    """A matrix product as users write it."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    by_hand: Callable[[Floats, Floats], ByHand] | None = products.product
    """The tiling."""
    ours: Callable[[Any, Any], Any] = plain
    is_beside_threads: bool = False
    """True if a kernel with a thread a result takes part."""
    is_beside_copy: bool = False
    """True if a copy of the matrix does."""

    def exact(self, x: Floats, y: Floats) -> Floats:
        left = x.astype(np.float64)
        return (left.T if self.ours is transposed else left) @ y.astype(np.float64)

    def others(self, x: Floats, y: Floats, exact: Floats) -> dict[str, Callable[[], None]]:
        """What the product is compared with, once each has given the right result."""
        kernels = {"by hand": self.by_hand} if self.by_hand is not None else {}
        if self.is_beside_threads:
            kernels[THREADS] = products.thread_a_result
        sides: dict[str, Callable[[], None]] = {}
        for name, kernel in kernels.items():
            hand = RawSlang(*kernel(x, y))
            hand.step()
            assert relative_error(hand.found("z"), exact) < 1e-5
            sides[name] = hand.step
        if self.is_beside_copy:
            sides[COPY] = RawCopy(y).step
        return sides


THREADS, COPY = "a thread a result", "a copy"
PRODUCTS = {
    "512^3": Product(((512, 512), (512, 512))),
    "65536x32x32": Product(((POINTS, 32), (32, 32))),
    "32x65536x32": Product(((POINTS, 32), (POINTS, 32)), products.transposed_product, transposed),
    "1024^3": Product(((1024, 1024), (1024, 1024)), is_beside_threads=True),
    "64 of 64^3": Product(((64, 64, 64), (64, 64, 64)), None, is_beside_threads=True),
    "1x4096x4096": Product(((1, 4096), (4096, 4096)), None, is_beside_copy=True),
}
NETWORK = "network"


def drawn(*shapes: tuple[int, ...]) -> list[Floats]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def run_product(name: str, runtime: str) -> None:
    product = PRODUCTS[name]
    x, y = drawn(*product.shapes)
    exact = product.exact(x, y)
    with sad.open_device(runtime) as device:
        graph, given = sad.graph(product.ours), (sad.array(x), sad.array(y))

        def step() -> None:
            graph(*given)
            device.synchronize()

        sides = {"ours": step, **product.others(x, y, exact)}
        error = relative_error(graph(*given).numpy(), exact)
        times = alternated(sides, ROUNDS)
    count = x.size // exact.shape[-2] if product.ours is transposed else x.shape[-1]
    rate = 2e-6 * exact.size * count / statistics.median(times["ours"])
    text = f"{rate:5.1f} GFLOP/s   error {error:.0e}"
    if copies := times.pop(COPY, None):
        rates = [1e-6 * y.nbytes * count / statistics.median(one)
                 for count, one in ((1, times["ours"]), (2, copies))]  # fmt: skip
        share = 0.5 * median_ratio(copies, times["ours"])
        text += f"   {rates[0]:.1f} GB/s, {share:.2f}x of a copy's {rates[1]:.1f} GB/s"
    report(name, runtime, times, text)


# -- a network ----------------------------------------------------------------------------------


def loss(points: Any, wanted: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    """Of a network of 2, 32, 32 and 3 neurons; the mean over all points."""
    hidden = sad.max(points @ w1 + b1, 0.0)
    hidden = sad.max(hidden @ w2 + b2, 0.0)
    miss = hidden @ w3 + b3 - wanted
    return sad.mean(miss * miss)


WEIGHTS = ((2, 32), (32,), (32, 32), (32,), (32, 3), (3,))


def run_network(runtime: str) -> None:
    shapes = [(POINTS, 2), (POINTS, 3), *WEIGHTS]
    inputs = drawn(*shapes)
    weights = tuple(range(2, len(shapes)))

    def value_and_gradient(
        points: Any, wanted: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any
    ) -> Any:
        run = sad.value_and_grad(loss, argnums=weights)
        return run(points, wanted, w1, b1, w2, b2, w3, b3)

    with sad.open_device(runtime) as device:
        graph, given = sad.graph(value_and_gradient), [*map(sad.array, inputs)]

        def step() -> None:
            graph(*given)
            device.synchronize()

        sides: dict[str, Callable[[], None]] = {"ours": step}
        opponent = jax_network(inputs, weights)
        _, gradients = graph(*given)
        error = 0.0
        if opponent is not None:
            opponent.step()
            pairs = zip(gradients, opponent.gradients(), strict=True)
            error = max(relative_error(found.numpy(), other) for found, other in pairs)
            sides["JAX"] = opponent.step
        times = alternated(sides, ROUNDS)
    report(NETWORK, runtime, times, f"gradients differ by {error:.0e}" if opponent else "")


def report(name: str, runtime: str, times: dict[str, list[float]], text: str) -> None:
    ratios = [
        f"   {median_ratio(times['ours'], took):.2f}x of {side}"
        for side, took in times.items()
        if side != "ours"
    ]
    took = statistics.median(times["ours"])
    print(f"{name:12} {runtime:8} {took:8.2f} ms   {text}{''.join(ratios)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*PRODUCTS, NETWORK]
    parser.add_argument("names", nargs="*", default=names, metavar="NAME")
    parser.add_argument("--runtime", nargs="*", default=[])
    given = parser.parse_args()
    for name in given.names:
        run = run_network if name == NETWORK else partial(run_product, name)
        on_each(given.runtime, run)


if __name__ == "__main__":
    main()
