"""Hand-written Slang gradients dispatched by raw slangpy: what shaderad is measured against.

    python benchmarks/opponents.py W1    # times the opponent alone and checks it against float64

A workload is its inputs, its gradient in float64 by formula, and the best Slang that we could
write for it by hand.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Workload:
    """A loss of many samples whose gradient by one argument is wanted."""

    inputs: dict[str, Floats]
    reference: Floats
    """The gradient in float64."""


def interpolation() -> Workload:
    """W1: 2M samples of a mesh with colours at its vertices, in random order.

    ``loss = sum(|interpolated - target|^2)``, by the vertex attributes: 99,102 triangles over a
    grid of 250 x 200 vertices.
    """
    rng = np.random.default_rng(0)
    columns, rows, count = 250, 200, 2_000_000
    x, y = np.meshgrid(np.arange(columns - 1), np.arange(rows - 1))
    low = (y * columns + x).ravel()
    triangles = np.concatenate(
        [
            np.stack([low, low + 1, low + columns], 1),
            np.stack([low + 1, low + columns + 1, low + columns], 1),
        ]
    )
    attributes = rng.standard_normal((columns * rows, 3)).astype(np.float32)
    face = rng.integers(0, len(triangles), count).astype(np.int32)
    uv = rng.random((count, 2)).astype(np.float32)
    uv[uv.sum(1) > 1] = 1 - uv[uv.sum(1) > 1]
    target = rng.standard_normal((count, 3)).astype(np.float32)

    corner = triangles[face]
    weight = np.stack([1 - uv.sum(1, dtype=np.float64), uv[:, 0], uv[:, 1]], 1)
    miss = (attributes.astype(np.float64)[corner] * weight[..., None]).sum(1) - target
    gradient = np.zeros(attributes.shape)
    for k in range(3):
        for c in range(3):
            terms = 2 * miss[:, c] * weight[:, k]
            gradient[:, c] += np.bincount(corner[:, k], terms, len(gradient))
    inputs = {
        "attributes": attributes,
        "triangles": triangles.astype(np.int32),
        "face": face,
        "uv": uv,
        "target": target,
    }
    return Workload(inputs, gradient)


def parabola() -> Workload:
    """W2: a parabola through 4M points.

    ``loss = sum((a x^2 + b x + c - y)^2)``, by the three parameters, which every thread reads.
    """
    rng = np.random.default_rng(0)
    count = 4_000_000
    x = rng.uniform(-1, 1, count).astype(np.float32)
    noise = 0.1 * rng.standard_normal(count)
    y = (0.3 * x * x - 0.5 * x + 0.2 + noise).astype(np.float32)
    parameters = np.array([1.0, 0.5, -0.25], np.float32)
    x64 = x.astype(np.float64)
    miss = parameters[0] * x64 * x64 + parameters[1] * x64 + parameters[2] - y
    gradient = np.array([(2 * miss * x64 * x64).sum(), (2 * miss * x64).sum(), (2 * miss).sum()])
    return Workload({"parameters": parameters, "x": x, "y": y}, gradient)


WORKLOADS: dict[str, Callable[[], Workload]] = {"W1": interpolation, "W2": parabola}

INTERPOLATION_SLANG = """
StructuredBuffer<float> attributes;
StructuredBuffer<int> triangles;
StructuredBuffer<int> face;
StructuredBuffer<float> uv;
StructuredBuffer<float> target;
RWStructuredBuffer<Atomic<float>> gradient;

[BackwardDerivative(loadBwd)]
float load(int i) { return attributes[i]; }
void loadBwd(int i, float d) { gradient[i].add(d); }

[Differentiable]
float3 vertex(int v) { return float3(load(3 * v), load(3 * v + 1), load(3 * v + 2)); }

[Differentiable]
float loss(no_diff uint i)
{
    int f = no_diff(face[i]);
    float u = no_diff(uv[2 * i]);
    float v = no_diff(uv[2 * i + 1]);
    int a = no_diff(triangles[3 * f]);
    int b = no_diff(triangles[3 * f + 1]);
    int c = no_diff(triangles[3 * f + 2]);
    float3 wanted = no_diff(float3(target[3 * i], target[3 * i + 1], target[3 * i + 2]));
    float3 r = vertex(a) * (1 - u - v) + vertex(b) * u + vertex(c) * v - wanted;
    return dot(r, r);
}

[shader("compute")]
[numthreads(64, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x < 2000000)
        bwd_diff(loss)(thread.x, 1.0f);
}
"""

# 64 samples a thread in registers, then the wave, then one atomic add.
PARABOLA_SLANG = """
StructuredBuffer<float> parameters;
StructuredBuffer<float> x;
StructuredBuffer<float> y;
RWStructuredBuffer<Atomic<float>> gradient;

[Differentiable]
float loss(float a, float b, float c, no_diff uint i)
{
    float X = no_diff(x[i]);
    float r = a * X * X + b * X + c - no_diff(y[i]);
    return r * r;
}

[shader("compute")]
[numthreads(64, 1, 1)]
void main(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x >= 62500)
        return;
    float3 g = 0;
    for (uint k = 0; k < 64; k++)
    {
        var a = diffPair(parameters[0], 0.f);
        var b = diffPair(parameters[1], 0.f);
        var c = diffPair(parameters[2], 0.f);
        bwd_diff(loss)(a, b, c, thread.x + k * 62500, 1.f);
        g += float3(a.d, b.d, c.d);
    }
    float3 s = float3(WaveActiveSum(g.x), WaveActiveSum(g.y), WaveActiveSum(g.z));
    if (WavePrefixSum(1u) == 0u)
    {
        gradient[0].add(s.x);
        gradient[1].add(s.y);
        gradient[2].add(s.z);
    }
}
"""

PROGRAMS = {"W1": (INTERPOLATION_SLANG, 2_000_000), "W2": (PARABOLA_SLANG, 62_500)}
"""Slang and the number of its threads."""


class Opponent:
    """One workload's hand-written gradient on slangpy's Vulkan device."""

    def __init__(self, name: str, workload: Workload) -> None:
        import slangpy as spy

        slang, threads = PROGRAMS[name]
        usage = spy.BufferUsage
        flags = usage.shader_resource | usage.unordered_access
        flags |= usage.copy_source | usage.copy_destination
        self._device = spy.create_device(type=spy.DeviceType.vulkan)
        self._shape = workload.reference.shape
        module = self._device.load_module_from_source(name, slang)
        program = self._device.link_program([module], [module.entry_point("main")])
        self._kernel = self._device.create_compute_kernel(program)
        self._threads = [threads, 1, 1]
        zeros = np.zeros(self._shape, np.float32)
        self._buffers = {
            key: self._device.create_buffer(
                element_count=data.size, struct_size=4, usage=flags, data=data.ravel()
            )
            for key, data in {**workload.inputs, "gradient": zeros}.items()
        }

    def step(self) -> None:
        """One gradient: zero, dispatch, wait."""
        encoder = self._device.create_command_encoder()
        encoder.clear_buffer(self._buffers["gradient"])
        self._kernel.dispatch(
            thread_count=self._threads, vars=self._buffers, command_encoder=encoder
        )
        self._device.submit_command_buffer(encoder.finish())
        self._device.wait()

    def gradient(self) -> Floats:
        """What the last step found."""
        found = self._buffers["gradient"].to_numpy().view(np.float32)
        return found.reshape(self._shape)


def alternated(steps: dict[str, Callable[[], None]], rounds: int = 15) -> dict[str, list[float]]:
    """Milliseconds of each step, a round after the other so that all meet the same machine."""
    for step in steps.values():
        step()
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            times[name].append(1e3 * (time.perf_counter() - start))
    return times


def relative_error(gradient: Floats, reference: Floats) -> float:
    """The largest difference, relative to the largest element of the gradient."""
    return float(np.abs(gradient - reference).max() / np.abs(reference).max())


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "W1"
    workload = WORKLOADS[name]()
    opponent = Opponent(name, workload)
    times = alternated({name: opponent.step})[name]
    error = relative_error(opponent.gradient(), workload.reference)
    print(f"{name} by hand: {statistics.median(times):.1f} ms, error {error:.1e}")


if __name__ == "__main__":
    main()
