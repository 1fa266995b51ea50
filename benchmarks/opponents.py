"""Hand-written Slang gradients: what shaderad is measured against.

    python benchmarks/opponents.py W1    # times the opponent alone and checks it against float64

Each is the best Slang that we could write for its workload by hand.
"""

from __future__ import annotations

import re
import statistics
import sys

import numpy as np
from dispatched import dispatched
from raw_slang import ByHand, Pass, RawSlang
from timing import Floats, alternated, relative_error
from workloads import WORKLOADS, Workload

import shaderad as sad


def in_threads(slang: str, threads: int) -> Pass:
    """A dispatch whose text knows the number of its threads as `threads`."""
    text = f"static const uint threads = {threads};\n{slang}"
    return Pass(text, threads, re.findall(r"Buffer<[\w<>]+> (\w+);", slang))


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
void entry(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x < threads)
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
void entry(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x >= threads)
        return;
    float3 g = 0;
    for (uint k = 0; k < 64; k++)
    {
        var a = diffPair(parameters[0], 0.f);
        var b = diffPair(parameters[1], 0.f);
        var c = diffPair(parameters[2], 0.f);
        bwd_diff(loss)(a, b, c, thread.x + k * threads, 1.f);
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

CHAIN_SLANG = """
StructuredBuffer<float> x;
RWStructuredBuffer<float> gradient;

[Differentiable]
float chain(float v)
{
    [ForceUnroll]
    for (int k = 0; k < 4; k++)
        v = tanh(exp(sin(v) * 0.5f));
    return v;
}

[shader("compute")]
[numthreads(64, 1, 1)]
void entry(uint3 thread : SV_DispatchThreadID)
{
    if (thread.x >= threads)
        return;
    var v = diffPair(x[thread.x], 0.f);
    bwd_diff(chain)(v, 1.f);
    gradient[thread.x] = v.d;
}
"""

CHUNK = 250
"""Elements that one thread of W4 walks through."""

# The products of chunks; of all chunks before each; all products, and the sums of chunks; of all
# chunks behind each; the gradient.
PRODUCTS_BODIES = (
    "float p = 1; for (uint k = 0; k < chunk; k++) p *= x[i * chunk + k]; c[i] = p;",
    "float p = 1; for (uint k = 0; k < chunks; k++) { float q = c[k]; c[k] = p; p *= q; }",
    "float p = c[i]; float a = 0; for (uint k = 0; k < chunk; k++)"
    " { uint j = i * chunk + k; p *= x[j]; m[j] = p; a += p * x[j]; } s[i] = a;",
    "float a = 0; for (uint q = 0; q < chunks; q++)"
    " { uint k = chunks - 1 - q; float v = s[k]; s[k] = a; a += v; }",
    "float a = s[i]; for (uint q = 0; q < chunk; q++)"
    " { uint j = i * chunk + chunk - 1 - q; a += m[j] * x[j]; gradient[j] = m[j] + a / x[j]; }",
)


def products_passes(count: int) -> list[Pass]:
    """W4 over chunks that a thread each walks through."""
    chunks = count // CHUNK
    found: list[Pass] = []
    for body in PRODUCTS_BODIES:
        used = [name for name in ("c", "m", "s", "gradient") if f"{name}[" in body]
        declared = [f"RWStructuredBuffer<float> {name};" for name in used]
        declared += ["StructuredBuffer<float> x;"] if "x[" in body else []
        text = f"""
static const uint chunks = {chunks};
static const uint chunk = {CHUNK};
{" ".join(declared)}

[shader("compute")]
[numthreads(8, 1, 1)]
void entry(uint3 thread : SV_DispatchThreadID)
{{
    uint i = thread.x;
    if (i >= threads)
        return;
    {body}
}}
"""
        found.append(in_threads(text, chunks if "i * chunk" in body else 1))
    return found


def passes_of(name: str, inputs: dict[str, Floats]) -> list[Pass]:
    """How a workload is differentiated by hand.

    W2 takes multiples of 64 samples, W4 multiples of `CHUNK`.
    """
    if name == "W1":
        return [in_threads(INTERPOLATION_SLANG, len(inputs["face"]))]
    count = len(inputs["x"])
    if name == "W2":
        return [in_threads(PARABOLA_SLANG, count // 64)]
    return [in_threads(CHAIN_SLANG, count)] if name == "W3" else products_passes(count)


def gradient_by_hand(name: str, workload: Workload) -> ByHand:
    """The gradient of a workload."""
    arrays = {**workload.inputs, "gradient": np.zeros(workload.reference.shape, np.float32)}
    if name == "W4":
        count = len(workload.inputs["x"])
        lengths = {"m": count, "c": count // CHUNK, "s": count // CHUNK}
        arrays |= {key: np.zeros(length, np.float32) for key, length in lengths.items()}
    added_to = ("gradient",) if name in ("W1", "W2") else ()
    return ByHand(passes_of(name, workload.inputs), arrays, added_to)


class Opponent:
    """One workload's gradient.

    Args:
        name: The workload's.
        workload: With its inputs.
        device: Of shaderad, whose adapter it shares; `None` for the first of slangpy by Vulkan.
    """

    def __init__(self, name: str, workload: Workload, device: sad.Device | None = None) -> None:
        by_hand = gradient_by_hand(name, workload)
        self._dispatched = RawSlang(*by_hand) if device is None else dispatched(by_hand, device)

    def step(self) -> None:
        """One gradient, to the end of its computation."""
        self._dispatched.step()

    def gradient(self) -> Floats:
        """The gradient of the last step."""
        return self._dispatched.found("gradient")


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "W1"
    workload = WORKLOADS[name]()
    opponent = Opponent(name, workload)
    times = alternated({name: opponent.step})[name]
    error = relative_error(opponent.gradient(), workload.reference)
    print(f"{name} by hand: {statistics.median(times):.1f} ms, error {error:.1e}")


if __name__ == "__main__":
    main()
