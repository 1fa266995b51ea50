"""Pictures with hard outlines -> pictures with antialiased outlines, which have derivatives.

If two neighbouring pixels show different triangles, the nearer triangle ends between them. If it
ends at a silhouette, both triangles cover part of one of the two pixels. The colours mix by the
point at which the line between the pixel centres crosses the edge, and this point moves with the
vertices.

Source: Laine et al., *Modular primitives for high-performance differentiable rendering*, SIGGRAPH
Asia 2020, section 3.6.
"""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import int3
from shaderad.calls.array_function import array_function
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.render.kernels.silhouettes import find_mates, find_outlines, find_shares
from shaderad.render.rasterization import Fragments
from shaderad.trace.elements import as_array, as_floats, conform
from shaderad.trace.primitives import known_shape

__all__ = ["adjacency", "antialias"]


@array_function
def adjacency(triangles: Any) -> sad.Array:
    """For each side of a triangle, the side of another triangle along the same edge.

    Component k of element t belongs to the side opposite to corner k of triangle t. The number of
    this side is ``3 t + k``. `adjacency` sorts the sides, so compute it once for all calls of
    `antialias` with the same mesh, such as the steps of a fit.

    Args:
        triangles: ``int3`` of shape [triangles].

    Returns:
        ``int3`` of shape [triangles]; -1 for an edge that does not belong to exactly two sides.

    Raises:
        ShapeError: SR0330 for other elements.

    Constant: it has no derivatives.
    """
    i = conform(triangles, Vector(INT, 3), "triangles")
    starts, ends = sad.stack([i.y, i.z, i.x], axis=1), sad.stack([i.z, i.x, i.y], axis=1)
    low, high = (sad.reshape(f(starts, ends), -1) for f in (sad.min, sad.max))
    by_high = sad.argsort(high)
    order = by_high[sad.argsort(low[by_high])]
    mates = find_mates(low, high, order, dim=order.shape[0])
    x, y, z = (mates[k::3] for k in range(3))
    return int3(x, y, z)


@array_function
def antialias(
    color: Any, fragments: Any, clip: Any, triangles: Any, adjacency: Any = None
) -> sad.Array:
    """Antialiases silhouettes by analytic coverage, which gives them derivatives by positions.

    A silhouette crosses the line between the centres of two neighbouring pixels at the fraction s
    of the way from the first to the second. Then the second pixel takes on ``s - 1/2`` of the
    difference to the first one, or the first takes on ``1/2 - s`` of the difference to the second.

    Args:
        color: The picture: floats or float vectors in the shape of the fragments, or with one
            more axis for channels.
        fragments: The result of `rasterize` for `clip` and `triangles`.
        clip: ``float4`` of shape [vertices] or [views, vertices].
        triangles: ``int3`` of shape [triangles]. An edge that two triangles share is a silhouette
            if one of them is seen from the front and the other from behind. Any other edge is
            always a silhouette.
        adjacency: The result of `adjacency` for `triangles`; if `None`, it is computed.

    Returns:
        The picture, like `color`.

    Raises:
        ShapeError: SR0330 for other elements, SR0808 for a picture of another shape, SR0820 for an
            adjacency of another shape.
        BoundsError: SR0660 if a face is not an index into `triangles`, or a corner of a triangle
            beside it not an index into `clip`.

    Differentiable in `color` and `clip`; the choice of silhouettes between pixels is constant.

    Source: Laine et al., *Modular primitives for high-performance differentiable rendering*,
    SIGGRAPH Asia 2020, section 3.6.
    """
    color = as_floats(as_array(color))
    clip = conform(clip, Vector(FLOAT, 4), "clip")
    triangles = conform(triangles, Vector(INT, 3), "triangles")
    fragments = Fragments(*map(as_array, fragments))
    pictured = color.extents[: len(fragments.face.shape)]
    if pictured != fragments.face.extents or len(color.extents) > len(pictured) + 1:
        shapes = {"shape": known_shape(color.extents), "of": known_shape(fragments.face.extents)}
        raise error("SR0808", user_span(), **shapes)
    face, depth = fragments.face, sad.detach(fragments.depth)
    has_views = len(face.shape) == 3
    views = clip if has_views else clip[None]
    if not has_views:
        face, depth = face[None], depth[None]
    mates, axis = _mates(triangles, adjacency), 1 if has_views else 0
    result = color
    for down in (0, 1):
        outline = find_outlines(sad.detach(views), triangles, mates, face, depth, down)
        share = find_shares(views, outline, down)
        share, along = share if has_views else share[0], axis + 1 - down
        if len(color.shape) > len(share.shape):
            share = share[..., None]
        from_next, from_last = sad.relu(-share), sad.roll(sad.relu(share), 1, axis=along)
        result = result + from_next * (sad.roll(color, -1, axis=along) - color)
        result = result + from_last * (sad.roll(color, 1, axis=along) - color)
    return result


def _mates(triangles: Any, mates: Any) -> Any:
    """The adjacency of a mesh, computed if `mates` is `None`."""
    if mates is None:
        return adjacency(triangles)
    mates = conform(mates, Vector(INT, 3), "adjacency")
    if mates.extents != triangles.extents:
        shapes = {"shape": known_shape(mates.extents), "of": known_shape(triangles.extents)}
        raise error("SR0820", user_span(), **shapes)
    return mates
