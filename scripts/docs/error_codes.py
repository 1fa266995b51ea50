"""mkdocs hook: the messages of `shaderad.diagnostics` -> tables, and links from codes to rows.

Every message stands once, in the code. A line ``<!-- errors: SR02 -->`` of a page becomes the table
of that group: code, class, what is wrong, what to do. Elsewhere ``SR0207`` leads to its row.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Any

from shaderad.diagnostics import MESSAGES, Message

if TYPE_CHECKING:
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_PLACE = re.compile(r"<!-- errors: (SR\d\d) -->")
_PAGE = "errors.md"
# What is no prose, or else a code.
_PIECE = re.compile(r"<(pre|code|a|h\d)\b.*?</\1>|<[^>]*>|\b(SR\d{4})\b", re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _PLACE.sub(lambda place: table_of(place[1]), markdown)


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    errors = files.get_file_from_path(_PAGE)
    if errors is None or page.file is errors:
        return html
    table = errors.url_relative_to(page.file)
    return _PIECE.sub(lambda piece: _linked(piece[0], table) if piece[2] else piece[0], html)


def _linked(code: str, table: str) -> str:
    return f'<a href="{table}#{code}">{code}</a>'


def table_of(group: str) -> str:
    """The messages whose codes begin with `group`, by code."""
    codes = sorted(code for code in MESSAGES if code.startswith(group))
    head = ["| Code | Class | What is wrong | What to do |", "|---|---|---|---|"]
    return "\n".join([*head, *(_row(code, MESSAGES[code]) for code in codes)])


def _row(code: str, message: Message) -> str:
    wrong = _told(message.message)
    why = _told(message.note)
    remedy = _told(message.help)
    cells = [f"{code} {{#{code}}}", f"`{message.kind.__name__}`", _joined(wrong, why), remedy]
    return "| " + " | ".join(cells) + " |"


def _joined(wrong: str, why: str) -> str:
    return f"{wrong}: {why}" if why else wrong


def _told(template: str) -> str:
    """A template with its values as words in capitals; nothing where it is one value alone."""
    parts = list(Formatter().parse(template))
    if not any(text.strip() for text, *_ in parts):
        return ""
    told = "".join(text + (_word(name, form) if name else "") for text, name, form, _ in parts)
    return told.replace("|", "\\|").replace("\n", " ")


def _word(name: str, form: str | None) -> str:
    _, bar, many = (form or "").partition("|")
    return f"{name.upper()} {many}" if bar else name.upper()
