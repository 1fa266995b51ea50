"""The kernels with which hosts train a texture: lookups at points, and a step.

The texture unit of the GPU filters the lookups of `squared_difference`, between two mip levels if
there are several. The gradient goes to the four texels around each point on each of these levels,
and comes back as an array of the texels of all levels.
"""

from __future__ import annotations

import shaderad as sad
from shaderad import float2, float4


@sad.kernel
def squared_difference(
    i: sad.Index,
    picture: sad.Texture2D[float4],
    smooth: sad.Sampler,
    at: sad.In[float2],
    target: sad.In[float4],
    total: sad.Add[float],
):
    """The sum over all points of the squared distance to the target's colour."""
    miss = picture.sample_level(smooth, at[i], 0.25) - target[i]
    total[0] += sad.dot(miss, miss)


@sad.kernel
def descended(
    i: sad.Index,
    texels: sad.In[float4],
    gradient: sad.In[float4],
    rate: float,
    result: sad.Out[float4],
):
    """The texels after one step of gradient descent."""
    result[i] = texels[i] - rate * gradient[i]
