"""mkdocs hook: links from docs/ to other files of the repository -> copies in the site.

``[kernels](../samples/mesh/kernels.py)`` leads to the file on disk; in the site to
``source/samples/mesh/kernels.py``, the same bytes. Pages outside of docs/ are copied as plain text.
A link to what is no file is a warning, which fails a strict build.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_LOG = logging.getLogger("mkdocs.hooks")
_ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(\.\./([^)#]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    linked = {
        path for page in files.documentation_pages() for path in _LINK.findall(page.content_string)
    }
    for path in sorted(linked):
        if not (_ROOT / path).is_file():
            _LOG.warning("a page links to %s, which is no file", path)
            continue
        copied = File.generated(config, _place(path), abs_src_path=str(_ROOT / path))
        files.append(copied)
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _LINK.sub(lambda link: f"]({_place(link[1])})", markdown)


def _place(path: str) -> str:
    return f"source/{path}.txt" if path.endswith(".md") else f"source/{path}"
