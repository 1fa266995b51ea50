"""The types of manifest fields, with bounds that decoding enforces.

Readers of a decoded manifest meet no number that overflows and no name with control characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

# JSON Schema and Python read this pattern alike; `$` alone accepts a line break at the end.
Name = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)")]
"""One line."""
Text = Annotated[str, msgspec.Meta(max_length=65536, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
"""Text of several lines."""
Path = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=32)]
"""A parameter and the fields below it."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A count or a position."""
Word = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
"""An unsigned 32-bit word."""
Slot = Annotated[int, msgspec.Meta(ge=0, le=65535)]
"""The number of a binding."""
Threads = Annotated[int, msgspec.Meta(ge=1, le=1024)]
"""Threads of a workgroup along an axis."""
SizeText = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=4096)]
)
"""A whole number, or an expression of sizes; see size_text.py."""


def one_of(names: Iterable[str]) -> msgspec.Meta:
    """Documents `names` in the schema as the valid names; later versions may add names."""
    return msgspec.Meta(extra_json_schema={"enum": sorted(names)})
