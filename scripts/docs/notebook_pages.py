"""mkdocs hook: docs/notebooks/NAME.ipynb -> the page notebook_NAME, with the outputs that it has.

Cells of Markdown stay what they are, code becomes a fenced block, and what it shows stands below:
HTML as it is, text in a block. The notebook itself is in the site, too, to be opened in Jupyter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_NOTEBOOK = re.compile(r"\]\(notebooks/(\w+)\.ipynb\)")
_LINK = re.compile(r"\]\((?:\.\./)?([^):]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted(Path(config.docs_dir).glob("notebooks/*.ipynb")):
        content = page_of(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"notebook_{path.stem}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links of other pages to a notebook lead to its page."""
    is_notebook = page.file.src_uri.startswith("notebook_")
    return markdown if is_notebook else _NOTEBOOK.sub(r"](notebook_\1.md)", markdown)


def page_of(notebook: dict[str, Any], name: str) -> str:
    """The Markdown of a notebook; its first cell begins with the title."""
    title, *rest = (part for cell in notebook["cells"] for part in _parts(cell))
    about = f"*A notebook: [{name}](notebooks/{name}).*"
    return "\n\n".join([title, about, *rest]) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield _LINK.sub(_moved, source)
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield _shown(output)


def _moved(link: re.Match[str]) -> str:
    """A link of a notebook, from the folder above; to another notebook, that notebook's page."""
    stem, _, suffix = link[1].rpartition(".")
    return f"](notebook_{stem}.md)" if suffix == "ipynb" else f"]({link[1]})"


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in data:
        # A blank line would end the block of HTML.
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
        return f"<div>{html}</div>"
    text = "".join(data["text/plain"])
    return f"```text\n{text.rstrip()}\n```"
