"""Pictures with hard outlines -> pictures whose outlines have coverage, and so derivatives.

Between two neighbouring pixels that show different triangles, the nearer triangle ends. Where it
ends at a silhouette, one of the two pixels is covered by both in part, and their colours mix by the
place where the line between the centres crosses the edge. That place moves with the vertices.

Source: Laine et al., *Modular primitives for high-performance differentiable rendering*, SIGGRAPH
Asia 2020, section 3.6.
"""

from __future__ import annotations

from typing import Any

import shaderad as sad
from shaderad import int3
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.functions.array_function import array_function
from shaderad.functions.elements import as_array, as_floats, conform
from shaderad.ir.types import FLOAT, INT, Vector
from shaderad.render.kernels.silhouettes import find_mates, find_outlines, find_shares
from shaderad.render.rasterization import Fragments
from shaderad.trace.primitives import known_shape

__all__ = ["adjacency", "antialias"]


@array_function
def adjacency(triangles: Any) -> sad.Array:
    """For each side of a triangle, the side of another triangle along the same edge.

    Component k of element t belongs to the side across from corner k of triangle t, which has the
    number ``3 t + k``. Sides are sorted to find it: the calls of `antialias` for one mesh, such as
    the steps of a fit, can share it.

    Args:
        triangles: ``int3`` of shape [triangles].

    Returns:
        ``int3`` of shape [triangles]; -1 where an edge does not belong to exactly two sides.

    Raises:
        ShapeError: SR0330 for other elements.

    Constant: without derivatives.
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
    """A picture with analytic coverage at silhouettes, and so with derivatives by positions there.

    A silhouette crosses the line between the centres of two neighbouring pixels at the share s of
    the way from the first to the second. Then the second pixel takes on ``s - 1/2`` of the
    difference to the first one, or the first takes on ``1/2 - s`` of the difference to the second.

    Args:
        color: The picture: floats or float vectors in the shape of the fragments, or with an axis
            more, of channels.
        fragments: The result of `rasterize` for `clip` and `triangles`.
        clip: ``float4`` of shape [vertices] or [views, vertices].
        triangles: ``int3`` of shape [triangles]. An edge that two of them share is a silhouette
            where one of the two is seen from the front, the other from behind; any other edge is
            one always.
        adjacency: The result of `adjacency` for `triangles`; each call finds it anew if `None`.

    Returns:
        The picture, like `color`.

    Raises:
        ShapeError: SR0330 for other elements, SR0808 for a picture of another shape, SR0820 for an
            adjacency of another shape.
        BoundsError: SR0660 where a face is none of `triangles`, or a corner beside it none of
            `clip`.

    Differentiable in `color` and `clip`; which silhouettes lie between which pixels is constant.

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


def _mates(triangles: Any, known: Any) -> Any:
    """The adjacency of a mesh, computed unless it is known."""
    if known is None:
        return adjacency(triangles)
    known = conform(known, Vector(INT, 3), "adjacency")
    if known.extents != triangles.extents:
        shapes = {"shape": known_shape(known.extents), "of": known_shape(triangles.extents)}
        raise error("SR0820", user_span(), **shapes)
    return known
