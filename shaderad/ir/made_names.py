"""Synthetic names, for the values that compiler passes introduce.

Invariant: a synthetic name holds a prime, which no Python identifier does, so it never collides
with a name of the user. `lower/write/names.py` spells it without the prime.
"""

from __future__ import annotations

from collections.abc import Container

_PRIME = "'"


def made_name(stem: str, taken: Container[str] = ()) -> str:
    """A synthetic name that starts with `stem` and is not in `taken`."""
    name, number = f"{stem}{_PRIME}", 1
    while name in taken:
        number += 1
        name = f"{stem}{_PRIME}{number}"
    return name


def stem_of(name: str) -> str:
    """The stem of a synthetic name; any other name itself."""
    return name.partition(_PRIME)[0]
