"""mkdocs hook: ``SR0207`` anywhere on the site leads to its row of the page of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_PAGE = "errors.md"
# What is no prose, or else a code.
_PIECE = re.compile(r"<(pre|code|a|h\d)\b.*?</\1>|<[^>]*>|\b(SR\d{4})\b", re.DOTALL)


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    errors = files.get_file_from_path(_PAGE)
    if errors is None or page.file is errors:
        return html
    table = errors.url_relative_to(page.file)
    return _PIECE.sub(lambda piece: _linked(piece[0], table) if piece[2] else piece[0], html)


def _linked(code: str, table: str) -> str:
    return f'<a href="{table}#{code}">{code}</a>'
