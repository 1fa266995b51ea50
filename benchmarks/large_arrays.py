"""Arrays of 1 GiB, which are larger than a binding, against arrays of 100 MiB: seconds a byte.

    python benchmarks/large_arrays.py [--runtime wgpu] [--mebibytes 1024] [NAME ...]

Each program runs in a process of its own, whose peak memory is printed. The largest array of a
program has the size; 100 MiB fit a binding of every driver that was tried. Both sizes take turns,
and the best of their times count, because new memory costs more than a program.
Errors are those of samples of the result of the large array, against float64, as a share of the
largest sample.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from timing import Floats, alternated

import shaderad as sad
from shaderad import float2, float3

SMALL = 100 << 20
ROUNDS = 7
SAMPLES = 1000
CHUNK = 1 << 22
"""Elements of a reference that are computed at one time."""
TRIANGLES = 1000


class Program(NamedTuple):
    """A program at one size."""

    run: Callable[[], Any]
    error: Callable[[Any], float]
    """Of what it gave."""


def floats(count: int) -> Floats:
    """Numbers between -1 and 1."""
    rng = np.random.default_rng(1)
    return 2 * rng.random(count, np.float32) - 1


def worst(found: Floats, exact: Floats) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def samples(count: int) -> np.ndarray[Any, Any]:
    """Positions, the first and the last among them, in order."""
    inner = np.random.default_rng(2).integers(0, count, SAMPLES)
    return np.unique([0, *inner, count - 1])


def elementwise(byte_count: int) -> Program:
    x = floats(byte_count // 4)
    at = samples(len(x))
    exact = np.sqrt(x[at].astype(np.float64) ** 2 + 1)
    on_device = sad.array(x)

    @sad.graph
    def graph(x: sad.Array[float]) -> sad.Array[float]:
        return sad.sqrt(x * x + 1.0)

    return Program(lambda: graph(on_device), lambda y: worst(y.numpy()[at], exact))


def total(byte_count: int) -> Program:
    x = floats(byte_count // 4) + 0.5
    exact = sum(part.astype(np.float64).sum() for part in np.array_split(x, len(x) // CHUNK))
    on_device = sad.array(x)
    return Program(lambda: sad.sum(on_device), lambda y: abs(y.item() - exact) / abs(exact))


def scan(byte_count: int) -> Program:
    x = floats(byte_count // 4)
    at = samples(len(x))
    before, exact = 0.0, np.zeros(len(at))
    for start in range(0, len(x), CHUNK):
        sums = before + np.cumsum(x[start : start + CHUNK], dtype=np.float64)
        is_here = (at >= start) & (at < start + CHUNK)
        exact[is_here] = sums[at[is_here] - start]
        before = sums[-1]
    on_device = sad.array(x)
    return Program(lambda: sad.scan(sad.add, on_device), lambda y: worst(y.numpy()[at], exact))


@sad.kernel
def shade(
    i: sad.Index,
    vertices: sad.In[float3],
    face: sad.In[int],
    uv: sad.In[float2],
    color: sad.Out[float3],
):
    first, here = 3 * face[i], uv[i]
    inner = vertices[first + 1] * here.x + vertices[first + 2] * here.y
    color[i] = inner + vertices[first] * (1.0 - here.x - here.y)


def mesh(byte_count: int) -> Program:
    """The colours of pixels, and the gradient of half the sum of their squares by the vertices."""
    rng = np.random.default_rng(3)
    count = byte_count // 12
    vertices = rng.random((3 * TRIANGLES, 3), np.float32)
    face = rng.integers(0, TRIANGLES, count, np.int32)
    uv = rng.random((count, 2), np.float32)
    arrays = sad.array(vertices, sad.float3), sad.array(face), sad.array(uv, sad.float2)
    at, exact = samples(count), np.zeros((3 * TRIANGLES, 3))
    colors: list[Floats] = []
    for start in range(0, count, CHUNK):
        here = slice(start, start + CHUNK)
        weights = np.stack([1 - uv[here].sum(1, dtype=np.float64), *uv[here].T.astype(np.float64)])
        corners = [vertices[3 * face[here] + k].astype(np.float64) for k in range(3)]
        color = sum(w[:, None] * c for w, c in zip(weights, corners, strict=True))
        colors.append(color[at[(at >= start) & (at < start + CHUNK)] - start])
        for k, w in enumerate(weights):
            for axis in range(3):
                sums = np.bincount(face[here], w * color[:, axis], TRIANGLES)
                exact[k::3, axis] += sums

    def run() -> tuple[Any, Any]:
        color, pullback = sad.vjp(shade, *arrays, dim=count)
        return color, pullback(color)[0]

    def error(found: tuple[Any, Any]) -> float:
        color, gradient = found
        return max(worst(color.numpy()[at], np.concatenate(colors)),
                   worst(gradient.numpy(), exact))  # fmt: skip

    return Program(run, error)


PROGRAMS = {"elementwise": elementwise, "sum": total, "scan": scan, "mesh": mesh}


def compare(name: str, byte_count: int, device: sad.Device) -> None:
    """Prints the line of one program."""
    large, small = PROGRAMS[name](byte_count), PROGRAMS[name](SMALL)

    def step(program: Program) -> Callable[[], None]:
        def run() -> None:
            result = program.run()
            device.synchronize()
            del result

        return run

    times = alternated({"large": step(large), "small": step(small)}, ROUNDS)
    seconds = {key: min(each) / 1e3 for key, each in times.items()}
    ratio = seconds["large"] / seconds["small"] * SMALL / byte_count
    error = large.error(large.run())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{name:<12} {seconds['large']:8.2f} s {seconds['small']:8.3f} s "
          f"{ratio:8.2f} x a byte  error {error:.0e}  peak {peak:.1f} GiB", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Arrays that are larger than a binding.")
    parser.add_argument("--runtime", default="wgpu", choices=("wgpu", "slangpy"))
    parser.add_argument("--mebibytes", type=int, default=1024)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", default=list(PROGRAMS), metavar="NAME")
    options = parser.parse_args()
    if options.alone:
        with sad.open_device(options.runtime) as device:
            compare(options.names[0], options.mebibytes << 20, device)
        return
    print(f"{'':<12} {options.mebibytes:6} MiB {SMALL >> 20:6} MiB")
    for name in options.names:
        arguments = ["--alone", "--runtime", options.runtime, f"--mebibytes={options.mebibytes}"]
        subprocess.run([sys.executable, __file__, *arguments, name], check=True)


if __name__ == "__main__":
    main()
