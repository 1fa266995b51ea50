"""Templates of messages -> sentences, with counts in good English.

``{count:index|indices}`` becomes ``1 index`` or ``2 indices``. Names of more letters than anyone
reads are cut.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping


def counted(count: object, one: str, many: str = "") -> str:
    """The count and its noun; `many` is the plural where an s does not make it.

    What is no single 1 (``1 or 2`` is not) takes the plural.
    """
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def sentence(template: str, values: Mapping[str, object]) -> str:
    """`template` with its ``{names}`` filled in."""
    return shortened(_Sentence().vformat(template, (), values))


def shortened(text: str) -> str:
    """`text` without the ends of words that fill lines."""
    return _LONG_WORD.sub(r"\1..", text)


_LONG_WORD = re.compile(r"(\w{100})\w{20,}")


def one_line(text: str) -> str:
    """`text` with escapes for characters that end lines or move cursors, as file names may hold."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class _Sentence(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        return counted(value, one, many) if bar else super().format_field(value, format_spec)
