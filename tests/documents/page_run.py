"""Runs the blocks of a page as a reader would: in order, in one folder, in one Python.

- ``python`` is executed; with a title it becomes that file, for later blocks to import or run, or
  is an excerpt of the repository's file of that name.
- ``sh`` is run by `tests/documents/commands.py`.
- ``text`` is what the block before it printed, with ``...`` for anything; nothing else may print.
- ``slang``, ``wgsl``, ``c`` stand in a file of that kind that the page had built, ``json`` in the
  value of one.
"""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.documents.blocks import Block
from tests.documents.commands import run_commands
from tests.samples.loading import ROOT

_FILES = {"slang": "*.slang", "wgsl": "*.wgsl", "c": "*.h"}
"""What excerpts of a language are looked for in."""


class PageRun:
    """A page's folder and the module that its Python runs in; ends with :meth:`close`."""

    def __init__(self, name: str, folder: Path) -> None:
        self._folder = folder
        self._file = f"{name}.py"
        self._module = ModuleType(f"page_{name}")
        self._printed: str | None = None
        self._path, self._modules = sys.path[:], set(sys.modules)
        sys.modules[self._module.__name__] = self._module
        sys.path.insert(0, str(folder))

    def close(self) -> None:
        """Forgets the page's files and samples: other pages and tests have some of those names."""
        sys.path[:] = self._path
        own = (str(self._folder), str(ROOT / "samples"))
        for name in set(sys.modules) - self._modules:
            file = getattr(sys.modules[name], "__file__", None)
            if name == self._module.__name__ or (file and file.startswith(own)):
                del sys.modules[name]

    def do(self, block: Block) -> None:
        """Runs or checks one block."""
        if block.language != "text":
            assert not self._printed, (
                f"the block before prints what the page leaves out:\n{self._printed}"
            )
        if block.language == "text":
            assert self._printed is not None, "no block before it prints this"
            assert matches(block.text, self._printed), self._printed
            self._printed = None
        elif (ROOT / block.title).is_file():
            assert found_in((ROOT / block.title).read_text(encoding="utf-8"), block.text)
        elif block.title:
            path = self._folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._printed = self._said(self._run_python(block))
        elif block.language == "sh":
            self._printed = self._said(run_commands(block.text, self._folder))
        elif block.language == "json":
            shown = json.loads(block.text)
            assert any(holds(json.loads(text), shown) for text in self._texts("*.json"))
        else:
            assert any(found_in(text, block.text) for text in self._texts(_FILES[block.language]))

    def finish(self) -> None:
        """The last block, too, printed only what the page shows."""
        assert not self._printed, (
            f"the page leaves out what its last block prints:\n{self._printed}"
        )

    def _run_python(self, block: Block) -> str:
        # Kernels are read from their file: all blocks so far stand there at the page's lines.
        path = self._folder / self._file
        above = path.read_text(encoding="utf-8") if path.exists() else ""
        text = above + "\n" * (block.first_line - 1 - above.count("\n")) + block.text
        path.write_text(text, encoding="utf-8")
        code = "\n" * (block.first_line - 1) + block.text
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, self._file, "exec"), self._module.__dict__)
        return printed.getvalue()

    def _said(self, printed: str) -> str:
        """What was printed, with paths as a reader in the folder would write them."""
        return printed.replace(f"{self._folder}/", "")

    def _texts(self, pattern: str) -> list[str]:
        return [path.read_text(encoding="utf-8") for path in self._folder.rglob(pattern)]


def matches(shown: str, printed: str) -> bool:
    """Whether `shown` is what was printed, ``...`` being anything; space at line ends apart."""
    return re.fullmatch(_pattern(shown), _stripped(printed), re.DOTALL) is not None


def found_in(text: str, shown: str) -> bool:
    """Whether `shown` stands in a file, at any indent."""
    return re.search(_pattern(_unindented(shown)), _unindented(text), re.DOTALL) is not None


def holds(actual: Any, shown: Any) -> bool:
    """Whether `shown` is a part of a JSON value: objects may have more fields than it shows."""
    if _is_shown(actual, shown):
        return True
    parts = actual.values() if isinstance(actual, dict) else actual
    return isinstance(actual, dict | list) and any(holds(part, shown) for part in parts)


def _is_shown(actual: Any, shown: Any) -> bool:
    if isinstance(shown, dict) and isinstance(actual, dict):
        return all(key in actual and _is_shown(actual[key], shown[key]) for key in shown)
    if isinstance(shown, list) and isinstance(actual, list):
        return len(actual) == len(shown) and all(map(_is_shown, actual, shown))
    return actual == shown


def _pattern(shown: str) -> str:
    return re.escape(_stripped(shown)).replace(r"\.\.\.", ".*?")


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip("\n").splitlines())
