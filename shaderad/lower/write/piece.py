"""Generated text as lines, each with its place in the Python source."""

from __future__ import annotations

from collections.abc import Sequence

from shaderad.diagnostics import Span

LINE_LENGTH = 100
"""Calls beyond it are broken; other lines may be longer."""


class Piece:
    """A part of a module's text at global level."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Span | None]] = []
        self._depth = 0
        self.span: Span | None = None

    def add(self, text: str = "") -> None:
        """Adds a line at the current depth; braces change the depth of later lines."""
        if text.startswith("}"):
            self._depth -= 1
        self.lines.append((("    " * self._depth + text).rstrip(), self.span))
        if text == "{":
            self._depth += 1

    def indented(self, text: str) -> None:
        """Adds an indented line: the only statement of an if or loop."""
        self._depth += 1
        self.add(text)
        self._depth -= 1

    def call(self, head: str, arguments: Sequence[str]) -> None:
        """Adds ``head(arguments);``, with one argument a line if one line would be too long."""
        line = f"{head}({', '.join(arguments)});"
        if 4 * self._depth + len(line) <= LINE_LENGTH:
            self.add(line)
            return
        self.add(f"{head}(")
        for argument in arguments[:-1]:
            self.indented(f"{argument},")
        self.indented(f"{arguments[-1]});")

    def open(self, head: str) -> None:
        self.add(head)
        self.add("{")

    def close(self) -> None:
        self.add("}")
