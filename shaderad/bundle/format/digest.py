"""The hash of a manifest in its own field `digest`: the SHA-256 of its bytes with 64 zeros there.

It detects accidental changes only: an attacker can write the matching hash.
"""

from __future__ import annotations

import hashlib
import re

BLANK = "0" * 64

_FIELD = re.compile(rb'"digest": ?"([0-9a-f]{64})"')


def with_digest(text: bytes) -> bytes:
    """The manifest `text` with its hash in its first field `digest`."""
    field = _FIELD.search(text)
    if field is None:
        raise ValueError("a manifest without a field `digest`")
    start, end = field.span(1)
    blank = text[:start] + BLANK.encode() + text[end:]
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[end:]


def is_intact(text: bytes) -> bool:
    """True if the hash in the manifest `text` is its own."""
    return _FIELD.search(text) is not None and with_digest(text) == text
