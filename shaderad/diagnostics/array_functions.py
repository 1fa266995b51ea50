"""SR08: random numbers, convolutions, rendering, textures."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import Error, LanguageError, Message, ShapeError

_language = partial(Message, LanguageError)
_shape = partial(Message, ShapeError)

MESSAGES: dict[str, Message] = {
    "SR0801": _shape(
        "`{name}` must be a whole number from 0 to below 2**{bits}, not `{found}`",
        help="pass an int in this range, or an array of ints",
    ),
    "SR0802": _shape(
        "a draw takes one key, but got keys of shape {shape}",
        help="select one, such as `keys[0]`, or draw with each key by `sad.map(draw, keys)`",
    ),
    "SR0803": _shape(
        "`conv` of shapes {left} and {right}: {why}",
        note="`x` is (..., channels, spatial axes...), `w` (output channels, channels / groups, "
        "kernel axes...)",
        help="reshape them, or move axes with `sad.transpose`",
    ),
    "SR0804": _shape(
        "`{name}` of `conv` must be {wanted}, not `{found}`",
        help="pass Python numbers; the axes of `w` determine the number of spatial axes",
    ),
    "SR0805": _shape(
        "`values` of `interpolate` have shape {shape}",
        help="give an array of shape [vertices], or [views, vertices] for fragments of several "
        "views; `sad.array(values, dtype=float3)` makes vectors of rows",
    ),
    "SR0806": _shape(
        "`size` of `rasterize` must be (height, width), at most {limit} each, not `{found}`",
        help="write a tuple of two whole numbers or sizes, in pixels",
    ),
    "SR0807": _shape(
        "`clip` of `rasterize` has shape {shape}",
        help="give `float4` of shape [vertices], or [views, vertices] for several pictures",
    ),
    "SR0808": _shape(
        "`color` of `antialias` has shape {shape}, but the fragments have shape {of}",
        help="give a picture with the shape of the fragments, or with one more axis for channels",
    ),
    "SR0809": _shape(
        "`{name}` of `texture` must be one of {known}, not `{found}`",
        help="write one of these words",
    ),
    "SR0810": _shape(
        "the bytes of a texture have shape {shape}",
        help="the last axis holds one to four channels",
    ),
    "SR0811": _shape(
        "a texture of shape {shape} with texels of `{element}` cannot be looked up by `{place}`",
        note="texels are floats or float vectors: of shape [width] for `float` coordinates, "
        "[height, width] for `float2`, [depth, height, width], or [6, n, n] for a cube, for "
        "`float3`",
        help="`sad.array(texels, dtype=float3)` makes vectors of rows",
    ),
    "SR0812": _shape(
        "`texture` got a level and a footprint",
        help="pass only one of them, because a footprint determines the level",
    ),
    "SR0813": Message(
        Error,
        "`{path}` cannot be read: {reason}",
        help="give the path of a file that trimesh can read, or pillow for pictures",
    ),
    "SR0814": _shape(
        "a texture with {count:level|levels} has no level {level}",
        help="levels count from 0; `sad.texture(image, mips=True)` makes a mip chain",
    ),
    "SR0815": _shape(
        "`{name}` of a texture or sampler must be one of {known}, not `{found}`",
        help="write one of these words; the wrap mode `border` works only in `render.texture`, "
        "because some devices lack it",
    ),
    "SR0816": _shape(
        "an image of shape {shape} cannot become a texture: {why}",
        help="give (h, w), (h, w, channels), (d, h, w, channels), or an array of vectors; "
        '`dimension="1d"`, "2d-array", "3d" or "cube" reads the axes of a line, of layers, of a '
        "volume or of six faces",
    ),
    "SR0817": _shape(
        "texels are bytes (`numpy.uint8`), half or float",
        label="found {found}",
        help="convert them: bytes stand for 0 to 1, as in `(255.0 * x).astype(numpy.uint8)`",
    ),
    "SR0818": _shape(
        "these levels do not form a texture: {why}",
        help="give one image, or a list of levels, each half as large as the one before along each "
        "axis, rounded down, and at least 1",
    ),
    "SR0820": _shape(
        "`adjacency` of `antialias` has shape {shape}, but `triangles` has shape {of}",
        help="give what `render.adjacency(triangles)` returns, or leave it out",
    ),
    "SR0821": _shape(
        "a texture of shape {shape} has more than {limit} texels along an axis",
        help="float32 coordinates cannot resolve more; look up parts of it, or read it by index",
    ),
    "SR0831": _shape(
        "`sad.{name}` of an array and the int `{axis}` can mean an axis or an operand",
        note="NumPy reduces axis {axis} here; a kernel compares each element with {axis}",
        help="write `sad.{name}(x, axis={axis})` to reduce an axis, or `{by_element}(x, "
        "{axis})` to compare each element; the positive part is `sad.relu(x)`",
    ),
    "SR0832": _shape(
        "`sad.norm` of `{element}` without `axis` would be one norm per component",
        label="found {element} of shape {shape}",
        help="{help}; give `axis` for one norm per component",
    ),
    "SR0833": _shape(
        "`sad.{name}` of an array with several axes needs `axis`",
        label="found shape {shape}",
        note="NumPy, JAX and PyTorch do not agree on what this call means",
        help="name the axis: `axis=0` is the first one, `axis=-1` the last one; `x.ravel()` "
        "makes one axis of all",
    ),
    "SR0834": _language(
        "`sad.{name}` {found} looks like JAX's `scan(f, init, xs)`",
        note="here `scan(op, x, init)` combines the elements of `x` by an associative operator",
        help="write `sad.loop(f, init, xs)`, or `sad.fori_loop(length, body, init)` without rows; "
        "an associative operator of your own is a `@sad.function`",
    ),
    "SR0835": _shape(
        "`x.T` reverses the axes of an array, and this one holds `{element}` and has shape {shape}",
        help="write `sad.transpose(x)` to transpose each matrix",
    ),
}
