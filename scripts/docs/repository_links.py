"""mkdocs hook: links from docs/ to other files of the repository -> pages of the site.

``[kernels](../samples/mesh/kernels.py)`` leads to the file on disk, and in the site to the page
``source/samples/mesh/kernels.py.html``, which shows the code. Markdown outside of docs/ becomes a
page, too, and so does what it links to. Files of other kinds are copied. A link of a page of docs/
to what is no file is a warning, which fails a strict build.
"""

from __future__ import annotations

import logging
import re
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_LOG = logging.getLogger("mkdocs.hooks")
_ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^):#]+)(#[^)]*)?\)")
_LANGUAGES = {
    ".py": "python", ".cpp": "cpp", ".h": "cpp", ".js": "js", ".slang": "hlsl", ".html": "html",
}  # fmt: skip
"""Code that is shown as a page, by its suffix."""
_UNSEARCHED = "---\nsearch: {exclude: true}\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    open_files = [
        (page.src_uri, path)
        for page in files.documentation_pages()
        for path in _linked(f"docs/{page.src_uri}", page.content_string)
    ]
    done: set[str] = set()
    while open_files:
        page, path = open_files.pop()
        if path.startswith("docs/") or path in done:
            continue
        done.add(path)
        if not (_ROOT / path).is_file():
            if not page.startswith("source/"):
                _LOG.warning("%s links to %s, which is no file", page, path)
            continue
        files.append(_file(path, config))
        if path.endswith(".md"):
            text = (_ROOT / path).read_text(encoding="utf-8")
            open_files += [(_place(path), linked) for linked in _linked(path, text)]
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    source = _source(page.file.src_uri)
    folder = PurePosixPath(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        path = _resolved(source, link[1])
        is_in_docs = path.startswith("docs/")
        if (is_in_docs and source.startswith("docs/")) or not (_ROOT / path).exists():
            return link[0]
        place = path.removeprefix("docs/") if is_in_docs else _place(path)
        if files.get_file_from_path(place) is None:  # a folder, which has no page
            return "]"
        return f"]({relpath(place, folder)}{link[2] or ''})"

    return markdown if _is_code(source) else _LINK.sub(moved, markdown)


def _file(path: str, config: MkDocsConfig) -> File:
    if not path.endswith(".md") and not _is_code(path):
        return File.generated(config, _place(path), abs_src_path=str(_ROOT / path))
    text = (_ROOT / path).read_text(encoding="utf-8")
    if _is_code(path):
        text = f"# `{path}`\n\n~~~~{_LANGUAGES[Path(path).suffix]}\n{text}\n~~~~\n"
    return File.generated(config, _place(path), content=_UNSEARCHED + text)


def _is_code(path: str) -> bool:
    return Path(path).suffix in _LANGUAGES


def _place(path: str) -> str:
    """The source of a page or file of the site, for a file of the repository."""
    return f"source/{path}.md" if _is_code(path) else f"source/{path}"


def _source(place: str) -> str:
    """The file of the repository that a page of the site was made from."""
    if not place.startswith("source/"):
        return f"docs/{place}"
    path = place.removeprefix("source/")
    return path.removesuffix(".md") if _is_code(path.removesuffix(".md")) else path


def _linked(source: str, text: str) -> list[str]:
    return [_resolved(source, match[1]) for match in _LINK.finditer(text)]


def _resolved(source: str, link: str) -> str:
    """The path in the repository that a relative link of `source` leads to."""
    return normpath(PurePosixPath(source).parent / link)
