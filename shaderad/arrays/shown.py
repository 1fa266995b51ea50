"""Arrays as text, and in notebooks as a picture or a table of values.

Invariant: only the displayed elements are read, so a large array is as quick as a small one.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any, Protocol

import numpy as np

from shaderad.device.devices import Device
from shaderad.diagnostics.notebook import preformatted, table
from shaderad.ir import types

END = 4
"""Number of elements that are shown at each end of an axis."""
PICTURE_SIDES = range(4, 2049)
"""Side lengths shown as a picture: smaller arrays become tables, larger ones would take long."""
READ_LIMIT = 1 << 20
"""Most elements that are read for a table or a text."""
_PRECISION = 6
"""Digits after the point."""
_SMALL = 192
"""Most pixels per side of a picture that is shown enlarged."""

Values = np.ndarray[Any, np.dtype[Any]]


class Readable(Protocol):
    """The members of `Array` that are needed to show it."""

    device: Device
    element: types.Type

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    def __summary__(self) -> str: ...
    def numpy(self) -> Values: ...
    def __getitem__(self, key: slice, /) -> Readable: ...


def array_text(array: Readable) -> str:
    """The values as NumPy prints them; the shape alone if there are very many."""
    if array.size > READ_LIMIT:
        return array_repr(array)
    return np.array2string(array.numpy(), precision=_PRECISION)


def array_repr(array: Readable) -> str:
    """The summary, with the values in front unless there are very many."""
    summary = array.__summary__()
    if array.size > READ_LIMIT:
        return summary
    opening = "Array("
    values = np.array2string(array.numpy(), precision=_PRECISION, separator=", ", prefix=opening)
    return f"{opening}{values}, {summary.removeprefix(opening)}"


def array_html(array: Readable) -> str:
    """A title line, and the content if its size is suitable."""
    capabilities = array.device.capabilities
    title = (
        f"{array.element}, shape {array.shape}, on {capabilities.runtime} ({capabilities.adapter})"
    )
    if is_picture(array):
        return f"<div>{escape(title)}</div>{_image(array.numpy())}"
    head, tail = _ends(array)
    if head.size + (tail.size if tail is not None else 0) > READ_LIMIT:
        return f"<div>{escape(title)}</div>"
    return _values(title, head.numpy(), None if tail is None else tail.numpy())


def is_picture(array: Readable) -> bool:
    """True for two axes of three or four floats, such as a rendered image."""
    t = array.element
    is_color = isinstance(t, types.Vector) and types.is_float(t) and t.count > 2
    return is_color and len(array.shape) == 2 and all(n in PICTURE_SIDES for n in array.shape)


def _ends(array: Readable) -> tuple[Readable, Readable | None]:
    """The first and the last elements; the whole array if it is short."""
    if not array.shape or array.shape[0] <= 2 * END:
        return array, None
    return array[:END], array[-END:]


def _values(title: str, head: Values, tail: Values | None) -> str:
    """One row per position of the first axis, one column per position of the second or field."""
    if head.ndim > 2:
        text = np.array2string(head, threshold=2 * END, precision=_PRECISION)
        return f"<div>{escape(title)}</div>{preformatted(text if tail is None else text + ' ...')}"
    rows = [_cells(row) for row in np.atleast_1d(head)]
    if tail is not None:
        rows += [["..."] * len(rows[0]), *(_cells(row) for row in tail)]
    return table(title, head.dtype.names or (), rows)


def _cells(row: Any) -> list[str]:
    if isinstance(row, np.void):
        return [str(row[name]) for name in row.dtype.names or ()]
    cells = [f"{value:.6g}" if isinstance(value, np.floating) else str(value)
             for value in np.atleast_1d(row)]  # fmt: skip
    return cells if len(cells) <= 2 * END else [*cells[:END], "...", *cells[-END:]]


# -- pictures -----------------------------------------------------------------------------------


def _image(pixels: Values) -> str:
    """Colours from 0 to 1 without a transfer curve; rows from top to bottom."""
    height, width, _ = pixels.shape
    data = base64.b64encode(png(pixels)).decode("ascii")
    scale = max(1, _SMALL // max(height, width))
    return (
        f'<img width="{scale * width}" height="{scale * height}" '
        f'style="image-rendering: pixelated" src="data:image/png;base64,{data}">'
    )


def png(pixels: Values) -> bytes:
    """Three or four channels of floats as a PNG with 8 bits per channel; NaN becomes 0."""
    height, width, channels = pixels.shape
    finite = np.nan_to_num(pixels.astype(np.float32), nan=0.0)
    levels = np.rint(np.clip(finite, 0.0, 1.0) * 255.0).astype(np.uint8)
    # Each row begins with the number of its filter: 0, none.
    rows = np.pad(levels.reshape(height, width * channels), ((0, 0), (1, 0)))
    color_type = 2 if channels == 3 else 6
    head = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
