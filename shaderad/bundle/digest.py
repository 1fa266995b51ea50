"""The hash that a manifest carries of itself, so that no change of it goes unnoticed.

It is the SHA-256 of the file's bytes with 64 zeros where the hash stands. Hashes guard against
accidents: whoever changes a manifest on purpose can write the hash that fits.
"""

from __future__ import annotations

import hashlib
import re

BLANK = "0" * 64

_FIELD = re.compile(rb'"digest": ?"([0-9a-f]{64})"')


def with_digest(text: bytes) -> bytes:
    """A manifest with its own hash in its first ``digest``."""
    blank, (start, end) = _blank(text)
    return blank[:start] + hashlib.sha256(blank).hexdigest().encode() + blank[end:]


def is_intact(text: bytes) -> bool:
    """Whether a manifest has the hash that it carries."""
    return _FIELD.search(text) is not None and with_digest(text) == text


def _blank(text: bytes) -> tuple[bytes, tuple[int, int]]:
    found = _FIELD.search(text)
    if found is None:
        raise ValueError("a manifest without a field `digest`")
    start, end = found.span(1)
    return text[:start] + BLANK.encode() + text[end:], (start, end)
