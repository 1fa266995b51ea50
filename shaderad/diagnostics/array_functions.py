"""SR08: random numbers and convolutions."""

from __future__ import annotations

from functools import partial

from shaderad.diagnostics.errors import Message, ShapeError

_shape = partial(Message, ShapeError)

MESSAGES: dict[str, Message] = {
    "SR0801": _shape(
        "`{name}` is a whole number from 0 to below 2**{bits}, and is `{found}`",
        help="give it an int in this range, or an array of ints",
    ),
    "SR0802": _shape(
        "a draw takes one key, and got keys of shape {shape}",
        help="select one, `keys[0]`; `sad.map(draw, keys)` draws by each",
    ),
    "SR0803": _shape(
        "`conv` of shapes {left} and {right}: {why}",
        note="`x` is (.., channels, spatial axes..), `w` (output channels, channels / groups, "
        "kernel axes..)",
        help="reshape them, or move axes with `sad.transpose`",
    ),
    "SR0804": _shape(
        "`{name}` of `conv` is {wanted}, and is `{found}`",
        help="write numbers of the Python program: the axes of `w` say how many spatial axes "
        "there are",
    ),
}
