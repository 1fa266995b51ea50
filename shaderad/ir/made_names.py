"""Names that stages make up, beside those of the user.

Invariant: a made-up name holds a prime, which no Python identifier does, so it is no name of the
user's. `lower/names.py` spells it without.
"""

from __future__ import annotations

from collections.abc import Container

_PRIME = "'"


def made_name(stem: str, taken: Container[str] = ()) -> str:
    """A made-up name like `stem` that is not among `taken`."""
    name, number = f"{stem}{_PRIME}", 1
    while name in taken:
        number += 1
        name = f"{stem}{_PRIME}{number}"
    return name


def stem_of(name: str) -> str:
    """What a made-up name is like; any other name itself."""
    return name.partition(_PRIME)[0]
