"""The types of what stands in a manifest, with the bounds that every document of ours keeps.

A document that does not is refused when it is decoded, so that whoever reads it meets no number
that overflows and no name that writes to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

# As JSON Schema and Python read it alike: `$` alone lets a line break at the end pass.
Name = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)")]
"""One line."""
Text = Annotated[str, msgspec.Meta(max_length=65536, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]
"""Of several lines."""
Path = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=32)]
"""A parameter, and fields."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A count, or a position."""
Word = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
"""32 bits."""
Slot = Annotated[int, msgspec.Meta(ge=0, le=65535)]
"""Where something is bound."""
Threads = Annotated[int, msgspec.Meta(ge=1, le=1024)]
"""Of a workgroup, along an axis."""
SizeText = (
    Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    | Annotated[str, msgspec.Meta(max_length=4096)]
)
"""A whole number, or an expression of sizes; see size_text.py."""


def one_of(names: Iterable[str]) -> msgspec.Meta:
    """The names there are; another version may know more."""
    return msgspec.Meta(extra_json_schema={"enum": sorted(names)})
