"""Templates of messages -> sentences, with singular and plural nouns.

``{count:index|indices}`` becomes ``1 index`` or ``2 indices``. Very long names are cut.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping


def counted(count: object, singular: str, plural: str = "") -> str:
    """The count and its noun; the default plural adds an s.

    Any count other than the number 1, such as the text ``1 or 2``, takes the plural.
    """
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def sentence(template: str, values: Mapping[str, object]) -> str:
    """`template` with its ``{names}`` filled in."""
    return shortened(_Sentence().vformat(template, (), values))


def shortened(text: str) -> str:
    """`text` with very long words cut."""
    return _LONG_WORD.sub(r"\1..", text)


_LONG_WORD = re.compile(r"(\w{100})\w{20,}")


def one_line(text: str) -> str:
    """`text` with escapes for control characters, which file names may contain."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class _Sentence(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        singular, bar, plural = format_spec.partition("|")
        return counted(value, singular, plural) if bar else super().format_field(value, format_spec)
