"""The kernels that hosts train a texture with: what a picture shows at places, and a step.

The unit of the GPU filters what `squared_difference` reads, between two mip levels where there are
several. Its gradient goes to the four texels around each place on each of them, and comes back as
an array of the texels of all levels.
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
    """The sum over all places of the squared distance to the target's colour."""
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
    """Texels a step down the gradient."""
    result[i] = texels[i] - rate * gradient[i]
