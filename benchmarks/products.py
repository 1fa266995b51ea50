"""Matrix products by hand in Slang: tilings with wave broadcasts, the best of those tried.

Lanes lie along columns, four adjacent ones each; a wave's lanes load eight elements of a row of
the left matrix, which the others read by broadcast. Sizes are constants, multiples of the tiles;
waves have eight lanes. Beside them stands the plain kernel, in which a thread computes a result.
"""

from __future__ import annotations

import numpy as np
from raw_slang import ByHand, Pass
from timing import Floats

ROWS = 8
PARTS = 64
"""Parts of a long sum, which are added atomically."""


def product(x: Floats, y: Floats) -> ByHand:
    """``x @ y``."""
    (m, k), n = x.shape, y.shape[1]
    group = min(64, n // 4)
    text = f"""
[[vk::binding(0, 0)]] StructuredBuffer<float> x;
[[vk::binding(1, 0)]] StructuredBuffer<float4> y;
[[vk::binding(2, 0)]] RWStructuredBuffer<float4> z;

[shader("compute")]
[numthreads({group}, 1, 1)]
void entry(uint3 g : SV_GroupID, uint index : SV_GroupIndex)
{{
    uint across = {n // 4 // group};
    uint row = (g.x / across) * {ROWS}, column = (g.x % across) * {group} + index;
    uint lane = WaveGetLaneIndex() & 7;
    float4 sums[{ROWS}];
    [ForceUnroll] for (int r = 0; r < {ROWS}; r++) sums[r] = 0.0;
    for (uint first = 0; first < {k}; first += 8)
    {{
        float left[{ROWS}];
        [ForceUnroll] for (int r = 0; r < {ROWS}; r++) left[r] = x[(row + r) * {k} + first + lane];
        [ForceUnroll] for (uint q = 0; q < 8; q++)
        {{
            float4 right = y[(first + q) * {n // 4} + column];
            [ForceUnroll] for (int r = 0; r < {ROWS}; r++)
                sums[r] = mad(float4(WaveReadLaneAt(left[r], q)), right, sums[r]);
        }}
    }}
    [ForceUnroll] for (int r = 0; r < {ROWS}; r++) z[(row + r) * {n // 4} + column] = sums[r];
}}"""
    arrays = {"x": x, "y": y, "z": np.zeros((m, n), np.float32)}
    return ByHand([Pass(text, m // ROWS * n // 4, arrays)], arrays, ())


def transposed_product(x: Floats, y: Floats) -> ByHand:
    """``transpose(x) @ y`` of many rows and few columns."""
    (k, m), n = x.shape, y.shape[1]
    group = n // 4
    text = f"""
[[vk::binding(0, 0)]] StructuredBuffer<float4> x;
[[vk::binding(1, 0)]] StructuredBuffer<float4> y;
[[vk::binding(2, 0)]] RWStructuredBuffer<Atomic<float>> z;

[shader("compute")]
[numthreads({group}, 1, 1)]
void entry(uint3 g : SV_GroupID, uint column : SV_GroupIndex)
{{
    uint row = (g.x % {m // ROWS}) * {ROWS}, part = g.x / {m // ROWS};
    uint lane = WaveGetLaneIndex() & 7;
    float4 sums[{ROWS}];
    [ForceUnroll] for (int r = 0; r < {ROWS}; r++) sums[r] = 0.0;
    for (uint k = part * {k // PARTS}; k < (part + 1) * {k // PARTS}; k++)
    {{
        float4 right = y[k * {n // 4} + column], left = x[k * {m // 4} + row / 4 + (lane & 1)];
        [ForceUnroll] for (uint r = 0; r < {ROWS}; r++)
            sums[r] = mad(float4(WaveReadLaneAt(left[r & 3], r >> 2)), right, sums[r]);
    }}
    [ForceUnroll] for (int r = 0; r < {ROWS}; r++)
        [ForceUnroll] for (int c = 0; c < 4; c++)
            z[(row + r) * {n} + column * 4 + c].add(sums[r][c]);
}}"""
    arrays = {"x": x, "y": y, "z": np.zeros((m, n), np.float32)}
    return ByHand([Pass(text, PARTS * (m // ROWS) * group, arrays)], arrays, ("z",))


def thread_a_result(x: Floats, y: Floats) -> ByHand:
    """``x @ y``, also of batches; the number of results is a multiple of 64."""
    *batch, m, k = x.shape
    n, count = y.shape[-1], int(np.prod(batch)) * m * y.shape[-1]
    text = f"""
[[vk::binding(0, 0)]] StructuredBuffer<float> x;
[[vk::binding(1, 0)]] StructuredBuffer<float> y;
[[vk::binding(2, 0)]] RWStructuredBuffer<float> z;

[shader("compute")]
[numthreads(64, 1, 1)]
void entry(uint3 thread : SV_DispatchThreadID)
{{
    uint row = thread.x / {n}, column = thread.x % {n};
    uint first = row / {m} * {k * n} + column;
    float sum = 0.0;
    for (uint i = 0; i < {k}; i++) sum = mad(x[row * {k} + i], y[first + i * {n}], sum);
    z[thread.x] = sum;
}}"""
    arrays = {"x": x, "y": y, "z": np.zeros((*batch, m, n), np.float32)}
    return ByHand([Pass(text, count, arrays)], arrays, ())
