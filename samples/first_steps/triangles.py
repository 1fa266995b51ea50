"""An array of structs, and a number that every thread reads.

Each triangle holds its own three corners, so its gradient is a triangle as well. `exposure` is a
uniform, so its gradient is summed over all threads.
"""

from __future__ import annotations

import numpy as np

import shaderad as sad
from shaderad import float2, float3, float4


@sad.struct
class Triangle:
    v0: float4
    v1: float4
    v2: float4

    def interpolate(self, uv: float2) -> float3:
        return self.v0.xyz * uv.x + self.v1.xyz * uv.y + self.v2.xyz * (1.0 - uv.x - uv.y)


@sad.kernel
def shade(
    i: sad.Index,
    triangles: sad.In[Triangle],
    face: sad.In[int],
    uv: sad.In[float2],
    exposure: float,
    color: sad.Out[float3],
):
    color[i] = exposure * triangles[face[i]].interpolate(uv[i])


TRIANGLES = {
    "v0": np.float32([[1, 0, 0, 1], [0, 1, 1, 1]]),
    "v1": np.float32([[0, 1, 0, 1], [1, 0, 1, 1]]),
    "v2": np.float32([[0, 0, 1, 1], [1, 1, 0, 1]]),
}
FACE = np.int32([1, 1, 0])
UV = np.float32([[0.5, 0.25], [0.0, 0.5], [1.0, 0.0]])


def main() -> None:
    color, pullback = sad.vjp(shade, TRIANGLES, FACE, UV, 2.0, dim=3)
    by_triangles, _, _, by_exposure = pullback(np.ones((3, 3)))
    print("color:      ", *color.numpy())
    for triangle in by_triangles.numpy():
        print("by triangle:", *triangle)  # w is not read: its gradient is 0
    print("by exposure:", float(by_exposure))


if __name__ == "__main__":
    main()
