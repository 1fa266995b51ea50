"""Results -> HTML, which notebooks show in place of the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class ShownText(str):
    """A text of several lines that a notebook shows as ``print`` does."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(self)


def preformatted(text: str) -> str:
    """The lines of `text` in a fixed-width font."""
    return f"<pre>{escape(text)}</pre>"


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts and numbers below a title."""
    body = "".join(_row(row, "td") for row in rows)
    top = _row(head, "th") if head else ""
    return f"<div>{escape(title)}</div><table>{top}{body}</table>"


def _row(cells: Sequence[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
